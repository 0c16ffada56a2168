//! What handlers share.

use std::sync::Arc;

use axum::extract::FromRef;
use outflow_control::Control;

use crate::events::Events;

/// What handlers share.
#[derive(Debug, Clone)]
pub struct Http {
    control: Control,
    events: Arc<Events>,
}

impl Http {
    /// What handlers of this relay share.
    pub(crate) fn new(control: Control) -> Self {
        Http { control, events: Arc::new(Events::new()) }
    }
}

impl FromRef<Http> for Control {
    fn from_ref(http: &Http) -> Self {
        http.control.clone()
    }
}

impl FromRef<Http> for Arc<Events> {
    fn from_ref(http: &Http) -> Self {
        http.events.clone()
    }
}
