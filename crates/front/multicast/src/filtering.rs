//! What leaves out packets of which less is wanted: the kernel, if it can.

use std::sync::{Arc, OnceLock};

use outflow_multicast::{Filter, open_filter};

use crate::settings::{FilterBy, Multicast};

/// What does so in the kernel; or why nothing does.
pub(crate) type Filtering = Result<Arc<Filter>, String>;

/// It, once it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Opened(OnceLock<Filtering>);

impl Opened {
    /// What these settings have. What is opened first stays: later, privileges may lack.
    pub(crate) fn by(&self, settings: &Multicast) -> Filtering {
        match settings.filter {
            FilterBy::Auto if settings.is_on() => self.0.get_or_init(opened).clone(),
            FilterBy::Auto => Err("no interface takes part".to_owned()),
            FilterBy::User => Err("[multicast] filter is \"user\"".to_owned()),
        }
    }
}

fn opened() -> Filtering {
    open_filter().inspect_err(|why| {
        tracing::warn!(
            "[multicast]: user space leaves out what an interface does not want, not the kernel: {why}"
        );
    })
}
