//! Addresses that protocols read.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An address as its protocol reads it. Displayed, it is written in one way, and leaves secrets out.
pub trait Address: Any + fmt::Debug + fmt::Display + Same + Send + Sync {
    /// Where it is, whatever else it says: two that are alike go to one place.
    fn place(&self) -> String {
        self.to_string()
    }

    /// What comes from there, as far as that is known before it comes.
    fn brings(&self) -> Brings {
        Brings::Media
    }

    /// Whether there is anything only while a receiver wants it.
    fn is_on_demand(&self) -> bool {
        false
    }

    /// The same address with files that it names as files beside another one.
    fn beside(&self, file: &Path) -> Option<Arc<dyn Address>> {
        let _ = file;
        None
    }
}

/// What a source brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brings {
    /// A transport stream.
    Ts,
    /// A transport stream, or tracks.
    Media,
}

/// Whether one value of a type that is not known is another one.
pub trait Same {
    /// Whether `other` is of the same type, and the same.
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<T: PartialEq + 'static> Same for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

/// An address and its scheme.
#[derive(Clone)]
pub struct Endpoint {
    /// Name of the scheme.
    pub scheme: &'static str,
    /// The address.
    pub address: Arc<dyn Address>,
}

impl Endpoint {
    /// The address, if it is one of this type.
    pub fn get<T: Address>(&self) -> Option<&T> {
        (&*self.address as &dyn Any).downcast_ref()
    }

    pub(crate) fn beside(&mut self, file: &Path) {
        if let Some(address) = self.address.beside(file) {
            self.address = address;
        }
    }
}

impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.address.is_same(&*other.address as &dyn Any)
    }
}

impl Eq for Endpoint {}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.address, f)
    }
}
