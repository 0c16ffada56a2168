//! What goes on through a process that has handed the relay over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As long as there is one, this process lives, even if another one has the relay.
#[derive(Debug)]
pub struct Lingering(Arc<AtomicUsize>);

impl Lingering {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Lingering(Arc::clone(count))
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_until_it_is_over() {
        let count = Arc::<AtomicUsize>::default();
        let [one, other] = [(); 2].map(|()| Lingering::new(&count));
        drop(one);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(other);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}
