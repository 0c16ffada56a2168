//! What is read, and what is refused at once.

#![allow(clippy::disallowed_methods, reason = "a test of files")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outflow_file::{Stamp, Unreadable, open, read, read_stream, read_text};
use rustix::fs::{CWD, FileType, Mode, mknodat};

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    path
}

#[test]
fn a_regular_file_is_read_up_to_the_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    fs::write(&path, "hello").expect("written");
    assert_eq!(read(&path, 5).expect("five"), b"hello");
    assert_eq!(read_text(&path, 6).expect("five"), "hello");
    assert!(matches!(read(&path, 4), Err(Unreadable::Bytes(4))));
    fs::write(&path, [0xff]).expect("written");
    assert!(matches!(read_text(&path, 5), Err(Unreadable::Text)));
    assert!(open(&path).is_ok());
}

#[test]
fn what_is_no_regular_file_is_refused_at_once_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = pipe(folder.path());
    for (path, kind) in
        [(pipe.as_path(), "a pipe"), (folder.path(), "a directory"), (Path::new("/dev/zero"), "a device")]
    {
        let error = read(path, 5).expect_err("no file").to_string();
        assert!(error.contains(kind), "{error}");
    }
    assert!(matches!(read(&folder.path().join("none"), 5), Err(Unreadable::System(_))));
}

#[test]
fn a_stream_is_waited_for_no_longer_than_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = pipe(folder.path());
    let within = Duration::from_millis(50);
    assert!(matches!(read_stream(&path, 5, within), Err(Unreadable::Late(_))), "nothing writes to it");
    assert!(matches!(read_stream(Path::new("/dev/zero"), 5, within), Err(Unreadable::Bytes(5))));
    let theirs = path.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = fs::OpenOptions::new().write(true).open(theirs).expect("opened");
        pipe.write_all(b"two").and_then(|()| pipe.write_all(b"parts")).expect("written");
    });
    let began = Instant::now();
    let text = read_stream(&path, 20, Duration::from_secs(20)).expect("it ends");
    assert_eq!(text, "twoparts");
    assert!(began.elapsed() < Duration::from_secs(20));
    writer.join().expect("ended");
}

#[test]
fn a_stamp_is_another_one_when_the_file_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, beside) = (folder.path().join("file"), folder.path().join("beside"));
    assert_eq!(Stamp::at(&path), None);
    fs::write(&path, "one").expect("written");
    let first = Stamp::at(&path);
    assert!(first.is_some() && first == Stamp::at(&path));
    fs::write(&beside, "two").expect("written");
    fs::rename(&beside, &path).expect("renamed");
    assert_ne!(Stamp::at(&path), first);
}
