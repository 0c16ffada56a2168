//! Compiles the BPF programs of the kernel's fan-out, and of the filter between routers; `program.rs` and `thin` embed and
//! load them.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    for name in ["fanout", "thin"] {
        compile(name);
    }
}

fn compile(name: &str) {
    let setting = |name| std::env::var(name).unwrap_or_default();
    let object = PathBuf::from(setting("OUT_DIR")).join(format!("{name}.o"));
    let target = if setting("CARGO_CFG_TARGET_ENDIAN") == "big" { "bpfeb" } else { "bpfel" };
    let result = Command::new("clang")
        .args(["-target", target, "-O2", "-g", "-Wall", "-fno-strict-aliasing"])
        // <asm/types.h> lies there on Debian; clang looks there only for its own machine's code.
        .arg(format!("-I/usr/include/{}-linux-gnu", setting("CARGO_CFG_TARGET_ARCH")))
        .args(["-c", &format!("bpf/{name}.c"), "-o"])
        .arg(&object)
        .status();
    match result {
        Ok(status) if status.success() => {}
        Ok(status) => panic!(
            "clang could not compile crates/kernel/bpf/{name}.c ({status}); if a header is missing, run scripts/setup run"
        ),
        Err(error) => panic!("cannot run clang: {error}; run scripts/setup run"),
    }
}
