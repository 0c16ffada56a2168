#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outflow_fuzz_targets::run("flexfec", data));
