//! WebRTC: streams out to browsers, by WHEP, and in from them and from encoders, by WHIP.
//!
//! A viewer posts an offer (`play`), of which tracks of the stream are chosen (`negotiate`). Its session is a state
//! machine that its worker drives (`viewer`). So does a publisher (`publish`, `accept`), whose state machine a task
//! drives (`ingest`). All of them come to one port (`port`), whose task hands on what comes; those whose networks have no
//! UDP do so by TCP (`tcp`).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod accept;
mod addresses;
mod cross_origin;
mod handover;
mod hosts;
mod identity;
mod ingest;
mod limits;
mod negotiate;
mod offered;
mod page;
mod play;
mod port;
mod publish;
mod repairs;
mod restart;
mod saved;
mod sessions;
mod settings;
mod site;
mod tcp;
mod viewer;

use std::sync::Arc;

use outflow_api::{Page, Pages, StreamPages};
use outflow_config::Protocol;
use outflow_control::{Control, Front, Part, Started, Task, Upgrade, datagrams};

use handover::{PARTS, Taken};
use settings::NAME;
pub use settings::WebRtc;
use site::{Open, Site};

/// WebRTC: `[listen] webrtc`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Browsers)
}

#[derive(Debug)]
struct Browsers;

impl Front for Browsers {
    fn protocol(&self) -> Protocol {
        settings::protocol()
    }

    fn attach(&self, control: &Control) {
        let measure = Some(tcp::measure as outflow_api::Measure);
        let pages = control.shared::<Pages>();
        pages.add(Page { open: play::open(), measure, ..Page::default() });
        pages.add(Page { measure: Some(repairs::measure), ..Page::default() });
        if control.config().listen.at(NAME).is_some() {
            control.shared::<StreamPages>().add(&page::PAGES);
        }
    }

    fn listen(&self, control: Control) -> Started {
        Box::pin(async move {
            let config = control.config();
            let Some(at) = config.listen.at(NAME) else { return Ok(Vec::new()) };
            let taken = control.shared::<Taken>().take();
            let identity = match config.section::<WebRtc>().identity_file.as_deref() {
                None if let Some(taken) = &taken => taken.identity()?,
                file => identity::load(file)?,
            };
            let (port, reading) = port::open(datagrams(&control, "WebRTC", at)?);
            let by_tcp = tcp::listen(&control, &port.gateways)?;
            let value = handover::value(identity.clone());
            let site = control.shared::<Open>().set(Site::new(&control, port, identity)?);
            if let Some(taken) = taken {
                handover::go_on(&control, &site, taken);
            }
            let member = control.shared::<Upgrade>().join(PARTS);
            let by_udp = Box::pin(port::read(reading, member, value)) as Task<()>;
            Ok(by_tcp.chain([by_udp]).collect())
        })
    }

    fn parts(&self) -> &'static [&'static str] {
        &[PARTS]
    }

    fn take(&self, control: Control, _: &'static str, parts: Vec<Part>) {
        parts.into_iter().for_each(|part| control.shared::<Taken>().put(&part));
    }
}
