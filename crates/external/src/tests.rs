use std::time::{Duration, Instant};

use outflow_graph::Setting;

use super::*;

fn element(command: &[&str]) -> External {
    with(command, "mpegts")
}

fn with(command: &[&str], gives: &str) -> External {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let settings = Settings::default().with("command", Setting::Texts(command));
    External::new(&settings.with("gives", Setting::Text(gives.to_owned()))).expect("a program")
}

/// Gives null packets until `enough` says so; what came out of it.
fn run(element: &mut External, enough: impl Fn(&[Item], &Tally) -> bool) -> (Vec<Item>, Tally) {
    let mut null = [0xff; 188];
    null[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
    let (mut out, mut tally) = (Vec::new(), Tally::default());
    let until = Instant::now() + Duration::from_secs(30);
    while !enough(&out, &tally) && Instant::now() < until {
        let mut item = Item::empty();
        item.packet.bytes = Bytes::from(null.repeat(7));
        let mut batch = vec![item];
        element.work(Time::ZERO, &mut batch, &mut tally);
        out.extend(batch);
        std::thread::sleep(Duration::from_millis(1));
    }
    (out, tally)
}

#[test]
fn what_a_program_writes_goes_on() {
    let mut cat = element(&["cat"]);
    assert_eq!(cat.bind(&Format::Ts), Ok(Format::Ts));
    let (out, tally) = run(&mut cat, |out, _| out.len() > 20);
    assert!(out.len() > 20 && tally.faults == 0, "{} came out, {tally:?}", out.len());
    assert!(out.iter().all(|item| item.packet.bytes[0] == 0x47));
    // Another element of that name goes on with the same program.
    let state = cat.state().expect("it runs");
    let mut next = element(&["cat"]);
    next.resume(state);
    assert!(next.running.is_some());
    let mut other = element(&["cat", "-u"]);
    other.resume(next.state().expect("it runs"));
    assert!(other.running.is_none());
}

#[test]
fn images_that_a_program_writes_are_packets() {
    let script = r"while head -c 1316 >/dev/null; do printf 'P5\n2 1\n255\nab'; done";
    let mut images = with(&["sh", "-c", script], "ppm");
    assert_eq!(images.bind(&Format::Ts), Ok(Format::Images));
    let (out, tally) = run(&mut images, |out, _| out.len() > 5);
    assert!(out.len() > 5 && tally.drops.total() == 0, "{} came out, {tally:?}", out.len());
    assert!(out.iter().all(|item| &item.packet.bytes[..] == b"P5\n2 1\n255\nab"));
    let mut other = with(&["sh", "-c", script], "mpegts");
    other.resume(images.state().expect("it runs"));
    assert!(other.running.is_none(), "what it writes would be taken for something else");
}

#[test]
fn a_program_that_ends_is_a_fault_and_one_that_is_missing_too() {
    let script = "echo 'no such encoder' >&2; exit 3";
    let (_, tally) = run(&mut element(&["sh", "-c", script]), |_, tally| tally.faults > 0);
    let fault = tally.fault.expect("a fault");
    assert!(fault.contains("ended: exit status: 3; its last words: no such encoder"), "{fault}");
    let (_, tally) = run(&mut element(&["/no/such/program"]), |_, tally| tally.faults > 0);
    assert!(tally.fault.is_some_and(|fault| fault.contains("cannot be started")));
    let (_, tally) = run(&mut element(&["no-such-program"]), |_, tally| tally.faults > 0);
    assert!(tally.fault.is_some_and(|fault| fault.contains("No such file")));
    let error = External::new(&Settings::default()).expect_err("nothing to run");
    assert!(error.to_string().contains("command ="), "{error}");
}

#[test]
fn what_comes_while_no_program_runs_is_counted() {
    let (_, tally) = run(&mut element(&["false"]), |_, tally| tally.faults > 1);
    assert!(tally.drops.get(DropReason::ElementFault) > 10, "{tally:?}");
    assert_eq!(tally.drops.get(DropReason::ContextFull), 0);
}

#[test]
fn a_program_may_say_as_much_as_it_likes() {
    // More lines, and more without an end, than a pipe holds; then it goes on with its work.
    let script = "seq 100000 >&2; head -c 1000000 /dev/zero >&2; exec cat";
    let (out, tally) = run(&mut element(&["sh", "-c", script]), |out, _| !out.is_empty());
    assert!(!out.is_empty() && tally.faults == 0, "{tally:?}");
}

#[test]
fn what_a_program_has_started_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
    let mut element = element(&["sh", "-c", &script]);
    let pid = || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
    run(&mut element, |_, _| pid().is_some());
    drop(element);
    let stat = format!("/proc/{}/stat", pid().expect("it was started").trim());
    // The process that inherits it reaps it in its own time, but it runs no more.
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
    let until = Instant::now() + Duration::from_secs(30);
    while runs() {
        assert!(Instant::now() < until, "{stat}: it still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_has_the_memory_and_the_variables_that_it_is_given_and_no_capabilities() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("found");
    // What is given is bounded by now: packets come through the pipe.
    let script = "head -c 1316 >/dev/null; (env; cat /proc/self/status /proc/self/limits) >$FOUND.new";
    let script = format!("{script}; mv $FOUND.new $FOUND; exec cat");
    let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let env = vec![format!("FOUND={}", file.display())];
    let settings = Settings::default().with("command", Setting::Texts(command));
    let settings = settings.with("env", Setting::Texts(env)).with("memory", Setting::Size(1 << 30));
    let mut element = External::new(&settings).expect("a program");
    run(&mut element, |_, _| file.exists());
    let found = std::fs::read_to_string(&file).expect("it was written");
    let has = |key: &str, value: &str| {
        let line = found.lines().find(|line| line.starts_with(key));
        assert!(line.is_some_and(|line| line[key.len()..].trim_start().starts_with(value)), "{key}: {found}");
    };
    for key in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        has(key, "0000000000000000");
    }
    has("NoNewPrivs:", "1");
    has("Max data size", "1073741824");
    assert!(!found.contains("CARGO_"), "what the relay's environment has is not passed on: {found}");
    let named = Settings::default().with("command", Setting::Texts(vec!["cat".to_owned()]));
    let error = External::new(&named.with("env", Setting::Texts(vec!["=1".to_owned()])));
    assert!(error.expect_err("no name").to_string().contains("NAME=VALUE"));
}
