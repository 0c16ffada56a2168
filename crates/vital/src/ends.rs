//! What the relay cannot do without: threads and tasks of which the first that ends unasked is told, so that the
//! process ends with its reason instead of going on with a part of it dead.

use core::any::Any;
use core::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::watch;

/// Why the relay cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} has ended ({why}): the relay cannot go on without it, and has to be started again")]
pub struct Fatal {
    /// What has ended.
    pub what: String,
    /// Why it has.
    pub why: String,
}

/// Where the end of something vital is told; clones are the same place. It keeps what is told first.
#[derive(Debug, Clone, Default)]
pub struct Vital(Arc<watch::Sender<Option<Fatal>>>);

impl Vital {
    /// Tells that something has ended though it should not have.
    pub fn ended(&self, what: &str, why: impl Display) {
        let fatal = || Fatal { what: what.to_owned(), why: why.to_string() };
        self.0.send_if_modified(|told| {
            let is_first = told.is_none();
            told.get_or_insert_with(fatal);
            is_first
        });
    }

    /// Does work that ends only when it is asked to, and tells if it fails or panics. Answers whether it has ended well:
    /// otherwise what it worked on may be half done.
    pub fn keep<E: Display>(&self, what: &str, work: impl FnOnce() -> Result<(), E>) -> bool {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => self.ended(what, error),
            Err(panic) => self.ended(what, why_panicked(&*panic)),
        }
        false
    }

    /// Waits until something has ended; the first that has.
    pub async fn fatal(&self) -> Fatal {
        let mut told = self.0.subscribe();
        loop {
            if let Some(fatal) = &*told.borrow_and_update() {
                return fatal.clone();
            }
            // The sending end is held here.
            let _ = told.changed().await;
        }
    }
}

/// What a panic has to say.
pub fn why_panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("no text"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io;

    use super::*;

    fn told(vital: &Vital) -> Option<(String, String)> {
        vital.0.borrow().clone().map(|Fatal { what, why }| (what, why))
    }

    #[test]
    fn the_first_end_that_was_not_asked_for_is_told() {
        let vital = Vital::default();
        assert!(vital.keep("asked", || Ok::<_, Infallible>(())));
        assert_eq!(told(&vital), None);
        assert!(!vital.keep("first", || -> Result<(), Infallible> { panic!("number {}", 7) }));
        assert!(!vital.keep("second", || Err(io::Error::other("refused"))));
        assert_eq!(told(&vital), Some(("first".to_owned(), "a panic: number 7".to_owned())));
        let other = Vital::default();
        other.keep("other", || Err(io::Error::other("refused")));
        assert_eq!(told(&other), Some(("other".to_owned(), "refused".to_owned())));
    }
}
