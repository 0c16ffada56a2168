//! What a program finds that was started as elements' programs are.

#![allow(clippy::disallowed_methods, reason = "a test of processes and threads")]

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use outflow_privilege::{Bounds, Part, apart, confine, environment, give_up, keep, spawn};
use rustix::thread::{CapabilitySet, capabilities, no_new_privs};

const BOUNDS: Bounds = Bounds { nice: 3, memory_bytes: 1 << 30, files: 64 };

/// What a shell says to this, once it has been bounded.
fn said(script: &str, variables: &[&str]) -> String {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("read go; {script}")).stdin(Stdio::piped()).stdout(Stdio::piped());
    environment(&mut command, &variables.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
    let mut child = spawn(&mut command, BOUNDS).expect("started");
    child.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert!(child.wait().expect("it ends").success());
    text
}

/// The value of a line of a status file.
fn value<'t>(status: &'t str, key: &str) -> &'t str {
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {key} in {status}")).trim()
}

#[test]
fn a_program_has_no_capabilities_and_can_get_none() {
    // As root, too, by a program of a program.
    let status = said("sh -c 'cat /proc/self/status'", &[]);
    for key in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(u64::from_str_radix(value(&status, key), 16), Ok(0), "{key} of {status}");
    }
    assert_eq!(value(&status, "NoNewPrivs"), "1");
}

#[test]
fn a_program_is_bounded_and_leads_a_group_of_its_own() {
    let limits = said("cat /proc/self/limits", &[]);
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).expect("it is listed");
        line[name.len()..].split_whitespace().next().expect("a number").to_owned()
    };
    assert_eq!(limit("Max data size"), "1073741824");
    assert_eq!(limit("Max open files"), "64");
    assert_eq!(limit("Max core file size"), "0");
    let numbers = said("echo $$; cut -d' ' -f5,19 /proc/$$/stat", &[]);
    let numbers: Vec<i32> = numbers.split_whitespace().map(|one| one.parse().expect("a number")).collect();
    let ours = rustix::process::getpriority_process(None).expect("known");
    assert_eq!(numbers[1], numbers[0], "its group is its own");
    assert_eq!(numbers[2], (ours + BOUNDS.nice).min(19));
}

#[test]
fn a_program_finds_the_usual_variables_and_those_that_are_named() {
    let variables = said("env", &["OUTFLOW_TEST=a=b", "CARGO_PKG_NAME", "NOT_THERE"]);
    let names: Vec<_> = variables.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // What shells set by themselves.
    let allowed = ["PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_", "OUTFLOW_TEST", "CARGO_PKG_NAME"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{variables}");
    assert!(variables.lines().any(|line| line == "OUTFLOW_TEST=a=b"), "{variables}");
    assert!(variables.contains("CARGO_PKG_NAME=outflow-privilege"), "{variables}");
}

#[test]
fn what_cannot_be_started_is_told() {
    let error = spawn(&mut Command::new("/nonexistent"), BOUNDS).expect_err("it is not there");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn threads_have_what_they_need_and_those_that_they_start_no_more() {
    let has = || capabilities(None).expect("known").permitted;
    let at_first = has();
    // What is given up is so for one thread and those after it alone: this one keeps it for other tests.
    let check = || {
        confine().expect("permitted");
        let start = has();
        assert!(!start.contains(CapabilitySet::SYS_ADMIN) && !start.contains(CapabilitySet::SETPCAP));
        assert!(start.contains(at_first & CapabilitySet::BPF));
        assert!(no_new_privs().expect("known"));
        let apart = apart(|| (has(), std::thread::spawn(has).join().expect("ended"))).expect("a thread");
        assert_eq!(apart, (CapabilitySet::empty(), CapabilitySet::empty()));
        assert_eq!(has(), start);
        keep(Part::Control).expect("permitted");
        let control = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE;
        let reads = CapabilitySet::DAC_READ_SEARCH;
        let reads = if at_first.contains(reads) { reads } else { CapabilitySet::DAC_OVERRIDE };
        assert_eq!(has(), at_first & (control | reads));
        keep(Part::Worker).expect("permitted");
        assert_eq!(has(), at_first & CapabilitySet::NET_ADMIN);
        assert_eq!(capabilities(None).expect("known").inheritable, CapabilitySet::empty());
        give_up().expect("permitted");
        assert_eq!(has(), CapabilitySet::empty());
        keep(Part::Control).expect("nothing is left");
        assert_eq!(has(), CapabilitySet::empty());
    };
    std::thread::scope(|scope| scope.spawn(check).join().expect("it holds"));
    assert_eq!(has(), at_first);
}
