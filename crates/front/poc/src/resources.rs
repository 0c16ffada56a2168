//! Resources of the listener that are no streams: what other fronts do with connections to them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use outflow_control::Task;
use outflow_door::Permit;
use outflow_poc_socket::Asking;

/// Answers a peer that asks for a resource; the text is the query of what it asks for.
pub type Handler = Arc<dyn Fn(Asking, Permit, &str) -> Task<()> + Send + Sync>;

/// Which there are, by path; shared by [`Control::shared`](outflow_control::Control::shared).
#[derive(Default)]
pub struct Resources(Mutex<BTreeMap<&'static str, Handler>>);

impl Resources {
    /// Peers that ask for this path are answered by this from now on.
    pub fn add(&self, path: &'static str, handler: Handler) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, handler);
    }

    /// What answers peers that ask for a path, if that is no stream.
    pub(crate) fn of(&self, path: &str) -> Option<Handler> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resources")
    }
}
