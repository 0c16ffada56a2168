//! The configuration file: read when it is whole, and not taken for meant when it says nothing.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use outflow_config::{Config, Protocols, TEXT_BYTES_MAX};
use outflow_engine::message::ControlError;
use outflow_file::{Stamp, Unreadable, read_stream, read_text};

use crate::limits::{FILE_LOOK, FILE_LOOKS, FILE_STILL};

/// What to do about a file that may be half written.
pub(crate) const WRITE_THE_REST: &str = concat!(
    "write the rest of it; or, if it is meant to be so, say `--allow-empty` to `outflow run`, ",
    r#"or {"allow_empty": true} to POST /api/v1/reload"#
);

/// Reads and checks a configuration file of a program that has these protocols. A file that is being written is
/// waited for, a moment.
///
/// # Errors
/// It cannot be read, is not whole, or is not valid; the text names every line that is wrong.
pub fn load(path: &Path, protocols: &Protocols) -> Result<Config, ControlError> {
    let name = path.display();
    let text = read(path)
        .map_err(|e| {
            ControlError::Configuration(format!("{name}: {e}: give the path of a file that can be read"))
        })?
        .ok_or_else(|| {
            let what = "it is being written all the time: write it beside, and rename it when it is whole";
            ControlError::Configuration(format!("{name}: {what}"))
        })?;
    if !text.is_empty() && !text.ends_with('\n') {
        let what = "its last line has no end, so it may be half written: end it with a line break";
        return Err(ControlError::Configuration(format!("{name}: {what}")));
    }
    Config::parse(&text, &name.to_string(), protocols).map_err(|e| ControlError::Configuration(e.to_string()))
}

/// Refuses a configuration that says nothing of what is to be relayed, as a file does that is empty or cut off.
///
/// # Errors
/// It is one.
pub fn refuse_empty(config: &Config) -> Result<(), ControlError> {
    if !config.is_blank {
        return Ok(());
    }
    let what = "the file is empty or half written: it says nothing of what is to be relayed";
    Err(ControlError::Configuration(format!("{what}: {WRITE_THE_REST}; at the start, [streams] alone does")))
}

/// The text of a file that has been still for a moment; `None` if it never is.
fn read(path: &Path) -> Result<Option<String>, Unreadable> {
    for look in 0..FILE_LOOKS {
        if look > 0 {
            std::thread::sleep(FILE_LOOK);
        }
        let before = std::fs::metadata(path)?;
        // What comes through a pipe comes once.
        if !before.is_file() {
            return read_stream(path, TEXT_BYTES_MAX as u64, FILE_LOOK * FILE_LOOKS).map(Some);
        }
        if !is_still(&before) {
            continue;
        }
        let text = read_text(path, TEXT_BYTES_MAX as u64)?;
        if Some(Stamp::of(&before)) == Stamp::at(path) {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// Whether the last change is a moment ago. One in the future tells of a clock that was set.
fn is_still(file: &Metadata) -> bool {
    let age = file.modified().map(|changed| SystemTime::now().duration_since(changed));
    age.is_ok_and(|age| age.map_or(true, |age| age >= FILE_STILL))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const WHOLE: &str = "[listen]\nrtp_ports = \"8000-8999\"\n[streams.a]\nmax_receivers = 20000\n";

    fn loaded(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("outflow.toml");
        std::fs::write(&path, text).expect("written");
        load(&path, &Protocols::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_that_is_cut_within_a_line_is_not_taken_though_it_is_valid() {
        assert!(loaded(WHOLE).is_ok());
        // 200 receivers are possible, too.
        let error = loaded(&WHOLE[..WHOLE.len() - 3]).expect_err("cut off");
        assert!(error.contains("its last line has no end"), "{error}");
    }

    #[test]
    fn a_file_that_is_being_written_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("outflow.toml");
        let mut file = std::fs::File::create(&path).expect("made");
        let writing = std::thread::spawn(move || {
            for line in WHOLE.split_inclusive('\n') {
                file.write_all(line.as_bytes()).expect("written");
                std::thread::sleep(FILE_STILL / 5);
            }
        });
        let config = load(&path, &Protocols::default()).expect("whole");
        writing.join().expect("written");
        assert_eq!(config.streams.keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn what_says_nothing_is_refused_unless_it_says_so() {
        for blank in ["", "# nothing yet\n", "[listen]\nrtp_ports = \"8000-8999\"\n[limits]\nworkers = 1\n"] {
            let error = refuse_empty(&loaded(blank).expect("valid")).expect_err(blank).to_string();
            assert!(error.contains("--allow-empty"), "{error}");
        }
        for meant in ["[streams]\n", WHOLE] {
            assert!(refuse_empty(&loaded(meant).expect("valid")).is_ok(), "{meant}");
        }
    }
}
