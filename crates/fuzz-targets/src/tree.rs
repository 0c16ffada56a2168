//! What relays of a tree say to each other.

use outflow_front_tree::wire::{read, write};

/// What is understood is so again once it was written, in one unit or in several; what is not says why.
pub(crate) fn tree_said(data: &[u8]) {
    let said = match read(data) {
        Ok(said) => said,
        Err(strange) => return assert!(!strange.to_string().is_empty()),
    };
    let (mut rest, mut again) = (said.iter().cloned(), Vec::new());
    while let Some(first) = rest.next() {
        again.extend(read(&write(&first, || rest.next())).expect("what was written can be read"));
    }
    assert_eq!(again, said);
}
