//! Multicast as a front of the relay: its task, its pages, its keys.

use std::sync::{Arc, Mutex, PoisonError};

use outflow_api::{Page, Pages};
use outflow_config::{Config, Protocol};
use outflow_control::{Control, Front, Started, Task};
use outflow_engine::message::ControlError;
use tokio::sync::mpsc;

use crate::filtering::Opened;
use crate::handle::{Ask, Attached, Handle};
use crate::settings::Multicast;
use crate::{metrics, pages, settings, task};

/// Multicast by IGMP and DVMRP: `[multicast]`.
pub fn front() -> Arc<dyn Front> {
    let (handle, asks) = Handle::new();
    Arc::new(Groups { handle, asks: Mutex::new(Some(asks)), filter: Opened::default() })
}

#[derive(Debug)]
struct Groups {
    handle: Handle,
    /// What the task reads, once it runs.
    asks: Mutex<Option<mpsc::Receiver<Ask>>>,
    filter: Opened,
}

impl Front for Groups {
    fn protocol(&self) -> Protocol {
        settings::protocol()
    }

    fn attach(&self, control: &Control) {
        Attached::set(control, self.handle.clone());
        let measure = Some(metrics::measure as outflow_api::Measure);
        control.shared::<Pages>().add(Page { guarded: pages::guarded(), open: pages::open(), measure });
    }

    fn start(&self, control: Control) -> Started {
        let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner).take();
        let wishes = control.take_demands();
        let run = |asks| Box::pin(task::run(control, asks, wishes)) as Task<()>;
        Box::pin(std::future::ready(Ok(asks.map(run).into_iter().collect())))
    }

    fn stays(&self, config: &Config) -> Option<&'static str> {
        // The system has one router of a table.
        config.section::<Multicast>().is_on().then_some("it is a router of multicast")
    }

    fn configure(&self, config: Arc<Config>) -> Task<Result<(), ControlError>> {
        // Here, and not later: the thread that starts the relay still has the privileges that this takes.
        let (handle, filter) = (self.handle.clone(), self.filter.by(&config.section::<Multicast>()));
        Box::pin(async move { handle.set(&config, filter).await })
    }
}
