//! What other relays write to the directory.

use outflow_directory::entry::Malformed;
use outflow_directory::key::Key;
use outflow_directory::{Entry, RelayRecord};

/// What is an entry, a relay's record or a key is so again once it was written; what is none says why.
pub(crate) fn directory(data: &[u8]) {
    match Entry::parse(data) {
        Ok(entry) => assert_eq!(Entry::parse(&entry.to_json()), Ok(entry), "written and read"),
        Err(error) => says_why(&error),
    }
    match RelayRecord::parse(data) {
        Ok(record) => assert_eq!(RelayRecord::parse(&record.to_json()), Ok(record), "written and read"),
        Err(error) => says_why(&error),
    }
    if let Ok(text) = core::str::from_utf8(data)
        && let Some(key) = Key::parse(text)
    {
        assert_eq!(key.to_text().as_deref(), Some(text), "a key is written in one way");
    }
}

fn says_why(error: &Malformed) {
    assert!(!error.to_string().is_empty());
}
