//! What was found in a datagram, to go along with it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Found;
use crate::limits::FINDINGS_LENT_MAX;

/// What a reader found in the packets of one datagram, in their order.
pub type Findings = Arc<Vec<Found>>;

/// Memory for what goes along with datagrams. It is used again once all that had it are gone.
#[derive(Debug, Default)]
pub struct FindingsPool {
    /// The oldest first.
    lent: VecDeque<Findings>,
}

impl FindingsPool {
    /// What was found, to go along.
    pub fn lend(&mut self, found: &[Found]) -> Findings {
        // They come back in about the order in which they went.
        let is_back = self.lent.front_mut().is_some_and(|oldest| Arc::get_mut(oldest).is_some());
        let back = if is_back { self.lent.pop_front() } else { None };
        let mut findings = back.unwrap_or_default();
        if let Some(memory) = Arc::get_mut(&mut findings) {
            memory.clear();
            memory.extend_from_slice(found);
        }
        if self.lent.len() < FINDINGS_LENT_MAX {
            self.lent.push_back(Arc::clone(&findings));
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Content;

    use super::*;

    #[test]
    fn memory_is_used_again_once_it_is_back_and_not_before() {
        let mut pool = FindingsPool::default();
        let (tables, sound) = (Found::put_in(Content::Tables), Found::put_in(Content::Sound));
        let first = pool.lend(&[tables, tables]);
        let second = pool.lend(&[sound]);
        assert_eq!((&first[..], &second[..]), (&[tables, tables][..], &[sound][..]));
        let memory = Arc::as_ptr(&first);
        drop(first);
        let third = pool.lend(&[sound, tables]);
        assert_eq!(
            (Arc::as_ptr(&third), &third[..], &second[..]),
            (memory, &[sound, tables][..], &[sound][..])
        );
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let mut pool = FindingsPool::default();
        let lent: Vec<_> = (0..FINDINGS_LENT_MAX + 2).map(|_| pool.lend(&[])).collect();
        assert_eq!((lent.len(), pool.lent.len()), (FINDINGS_LENT_MAX + 2, FINDINGS_LENT_MAX));
    }
}
