//! What fronts have in common, one value a type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One value of each type, made when it is asked for first.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Shared {
    /// The value of this type.
    pub(crate) fn get<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::<T>::default());
        Arc::clone(value).downcast().expect("it is kept under its own type")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_of_each_type() {
        let shared = Shared::default();
        *shared.get::<Mutex<u8>>().lock().expect("not poisoned") = 7;
        assert_eq!(*shared.get::<Mutex<u8>>().lock().expect("not poisoned"), 7);
        assert_eq!(*shared.get::<Mutex<u16>>().lock().expect("not poisoned"), 0);
    }
}
