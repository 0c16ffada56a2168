//! Descriptors that stand beside a value, which names them by number.

use std::os::fd::OwnedFd;

/// Descriptors by number. Those that are left when it goes are closed.
#[derive(Debug, Default)]
pub struct Descriptors(Vec<Option<OwnedFd>>);

impl Descriptors {
    /// Adds one. Returns its number, by which a value names it.
    pub fn put(&mut self, descriptor: OwnedFd) -> u32 {
        self.0.push(Some(descriptor));
        self.0.len() as u32 - 1
    }

    /// The one of that number; none if there is no such number, or if it has been taken.
    pub fn take(&mut self, number: u32) -> Option<OwnedFd> {
        self.0.get_mut(number as usize)?.take()
    }

    /// All that have not been taken, by their numbers. To be sent, none may have been taken: numbers would be others.
    pub fn into_vec(self) -> Vec<OwnedFd> {
        self.0.into_iter().flatten().collect()
    }
}

impl From<Vec<OwnedFd>> for Descriptors {
    fn from(descriptors: Vec<OwnedFd>) -> Self {
        Descriptors(descriptors.into_iter().map(Some).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;

    #[test]
    fn each_is_taken_once_by_its_number() {
        let any = || memfd::file().expect("a file").into();
        let mut some = Descriptors::default();
        assert_eq!((some.put(any()), some.put(any())), (0, 1));
        let mut some = Descriptors::from(some.into_vec());
        assert!(some.take(1).is_some());
        assert!(some.take(1).is_none() && some.take(2).is_none());
        assert_eq!(some.into_vec().len(), 1);
    }
}
