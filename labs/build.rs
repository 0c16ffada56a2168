//! Builds what the labs have in C: the BPF programs that measure, and the relays that Outflow is
//! compared with. Both are for this machine and its compiler: as one would build them by hand.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    for name in ["drain", "core"] {
        let mut clang = Command::new("clang");
        clang.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"]);
        // Where Debian has the headers that differ between architectures; other systems need none.
        clang.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
        compile(clang.arg("-c"), &format!("bpf/{name}.c"), &out.join(format!("{name}.o")));
    }
    // A library that is loaded into a relay.
    let library = ["-O2", "-Wall", "-Werror", "-shared", "-fPIC"];
    compile(Command::new("cc").args(library), "chaos/clock.c", &out.join("clock.so"));
    for (name, level) in [("udp", "-O2"), ("tcp", "-O2"), ("images", "-O3"), ("primitives", "-O2")] {
        let mut cc = Command::new("cc");
        compile(
            cc.args([level, "-Wall", "-Werror"]),
            &format!("baseline/{name}.c"),
            &out.join(format!("baseline-{name}")),
        );
    }
}

fn compile(command: &mut Command, source: &str, to: &Path) {
    println!("cargo:rerun-if-changed={source}");
    let compiler = command.get_program().to_string_lossy().into_owned();
    match command.arg(source).arg("-o").arg(to).status() {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("{compiler} could not compile labs/{source}"),
        Err(error) => panic!("cannot run {compiler} ({error}): scripts/setup test installs it"),
    }
}
