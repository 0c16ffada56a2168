//! Real programs that make and read transport streams.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Whether `program` is installed; says so if not.
pub(crate) fn has(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if version.is_err() {
        outflow_skip::skipped(&format!("transport streams of {program}"), "it is not installed");
    }
    version.is_ok()
}

/// Runs a program with `input` on its standard input; gives its standard output and error.
pub(crate) fn run(program: &str, arguments: &[&str], input: &[u8]) -> (Vec<u8>, String) {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().expect("piped");
    let mut stderr = child.stderr.take().expect("piped");
    let mut output = Vec::new();
    let errors = std::thread::scope(|scope| {
        // A program that reads no further closes its end.
        scope.spawn(move || drop(stdin.write_all(input)));
        let errors = scope.spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        child.stdout.take().expect("piped").read_to_end(&mut output).expect("its output");
        errors.join().expect("no panic").expect("text")
    });
    let status = child.wait().expect("its end");
    assert!(status.success(), "{program} {arguments:?}: {status}\n{errors}");
    (output, errors)
}

/// Four seconds of a test picture of `rate` frames/s, and sound that is a little shorter, as these
/// arguments have ffmpeg code them.
pub(crate) fn clip(rate: &str, coding: &[&str]) -> Vec<u8> {
    let picture = format!("testsrc2=size=320x240:rate={rate}:duration=4,format=yuv420p");
    let mut arguments = vec!["-v", "error", "-f", "lavfi", "-i", &picture];
    arguments.extend(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=3.9"]);
    arguments.extend(coding);
    arguments.extend(["-f", "mpegts", "-"]);
    run("ffmpeg", &arguments, &[]).0
}

/// The packets of a stream that ffprobe finds, by its selector: what it says of these fields.
pub(crate) fn probe(stream: &[u8], selector: &str, fields: &str) -> Vec<Vec<String>> {
    let entries = format!("packet={fields}");
    let arguments = [
        "-v",
        "error",
        "-f",
        "mpegts",
        "-select_streams",
        selector,
        "-show_entries",
        &entries,
        "-of",
        "csv=p=0",
        "-",
    ];
    let (table, errors) = run("ffprobe", &arguments, stream);
    assert_eq!(errors, "", "ffprobe");
    let table = String::from_utf8(table).expect("text");
    let rows = table.lines().filter(|line| !line.is_empty());
    rows.map(|row| row.trim_end_matches(',').split(',').map(str::to_owned).collect()).collect()
}

/// Decodes all of a stream; ffmpeg must have nothing to say.
pub(crate) fn decode(stream: &[u8], what: &str) {
    let arguments = ["-v", "warning", "-f", "mpegts", "-i", "-", "-map", "0", "-f", "null", "-"];
    let (_, errors) = run("ffmpeg", &arguments, stream);
    assert_eq!(errors, "", "ffmpeg, {what}");
}
