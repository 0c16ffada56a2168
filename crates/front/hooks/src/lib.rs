//! Hooks: an HTTP address is told what happens at the relay (`[hooks]`).
//!
//! | step | module |
//! |---|---|
//! | what the configuration says | `settings` |
//! | events wait for their turn, and for another one after a failure | `delivery` |
//! | one is told, signed | `tell` |
//! | what became of them | `counts` |

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod counts;
mod delivery;
mod limits;
mod settings;
mod tell;

use std::sync::Arc;

use outflow_api::{Page, Pages};
use outflow_config::Protocol;
use outflow_control::{Control, Front, Started, Task};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use counts::Counts;
use delivery::{Delivery, Outcome};
use settings::Hooks;
use tell::Teller;

/// `[hooks]`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Hook)
}

#[derive(Debug)]
struct Hook;

impl Front for Hook {
    fn protocol(&self) -> Protocol {
        settings::protocol()
    }

    fn attach(&self, control: &Control) {
        control.shared::<Pages>().add(Page { measure: Some(counts::measure), ..Page::default() });
    }

    fn start(&self, control: Control) -> Started {
        Box::pin(async move { Ok(vec![Box::pin(run(control)) as Task<()>]) })
    }
}

/// Tells what happens until the relay ends, one event after the other.
async fn run(control: Control) {
    let (mut events, counts) = (control.events().follow(), control.shared::<Counts>());
    let (mut delivery, teller) = (Delivery::default(), Arc::new(Teller::new()));
    let mut telling: Option<JoinHandle<Outcome>> = None;
    // As they are configured at the moment.
    let hooks = || control.config().section::<Hooks>();
    loop {
        let now = Instant::now();
        let at = if telling.is_none() { delivery.at() } else { None };
        if let (true, Some(event)) = (at.is_some_and(|at| at <= now), delivery.next()) {
            let (teller, hooks) = (Arc::clone(&teller), hooks());
            telling = Some(spawn_blocking(move || teller.tell(&hooks, &event)));
            continue;
        }
        tokio::select! {
            event = events.recv() => match event {
                Ok(event) if hooks().wants(event.what.kind()) => counts.lost.add(delivery.push(now, event)),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => counts.lost.add(missed),
                Err(RecvError::Closed) => return,
            },
            outcome = over(&mut telling) => {
                telling = None;
                let outcome = outcome.unwrap_or_else(|error| Outcome::Failed(error.to_string()));
                counts.count(&outcome);
                if let Some(why) = delivery.done(Instant::now(), outcome) {
                    counts.lost.add(1);
                    tracing::warn!(why, "a hook was not told of an event");
                }
            }
            () = sleep_until(at.unwrap_or(now)), if at.is_some() => {}
        }
    }
}

/// Waits until an event is told, if one is.
async fn over(telling: &mut Option<JoinHandle<Outcome>>) -> Result<Outcome, JoinError> {
    match telling {
        Some(telling) => telling.await,
        None => std::future::pending().await,
    }
}
