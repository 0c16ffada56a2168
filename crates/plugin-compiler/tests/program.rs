//! The program as the relay runs it.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn compile(plugin: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outflow-plugin-compiler"));
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it is built");
    child.stdin.take().expect("it is a pipe").write_all(plugin).expect("it reads");
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_plug_in_becomes_machine_code() {
    let watermark = include_bytes!("../../../examples/plugins/prebuilt/watermark.wasm");
    let Output { status, stdout, stderr } = compile(watermark);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert!(stdout.starts_with(b"\x7fELF"));
}

#[test]
fn what_is_no_plug_in_is_refused_with_what_to_do() {
    let module_without_interfaces = b"\0asm\x01\0\0\0";
    let component_of_nothing_known = b"\0asm\x0d\0\x01\0\xff";
    for (plugin, words) in [
        (&b"#!/bin/sh\n"[..], "no WebAssembly"),
        (module_without_interfaces, "no element"),
        (component_of_nothing_known, "no valid WebAssembly"),
    ] {
        let Output { status, stdout, stderr } = compile(plugin);
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(1) && stdout.is_empty(), "{status}: {said}");
        let (what, help) = said.trim_end().rsplit_once('\n').expect("what is wrong, and what to do");
        assert!(what.contains(words) && !help.is_empty(), "{said}");
    }
}
