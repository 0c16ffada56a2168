//! The end that receives.

use core::net::SocketAddr;

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::service::{Request, Terms};
use outflow_poc::connection::Event;
use outflow_poc::endpoint::{Handle, Notice, Settings};
use outflow_poc::packet::Code;
use outflow_poc::protection::{Plain, ServerHandshake};
use outflow_rtp::RtpHeader;

use super::super::viewer::Viewer;
use super::super::{Figures, Node, Place};
use super::{End, PocReceiverModel};
use crate::source::Source;

/// Takes what any sender on its segments sends, and reads it at once.
#[derive(Debug)]
pub(in crate::network) struct PocReceiver {
    end: End,
    terms: Terms,
    viewer: Viewer,
    /// The sender whose packets of RTP came first: those are what is viewed.
    viewed: Option<SocketAddr>,
    units: u64,
    missed: u64,
    bytes: u64,
    refused: u64,
}

impl PocReceiver {
    /// One that waits to be connected to.
    ///
    /// # Errors
    /// The model cannot be.
    pub(in crate::network) fn new(
        now: Time,
        model: &PocReceiverModel,
        place: &Place<'_>,
    ) -> Result<Self, String> {
        model.check()?;
        let plain = || Some(Box::new(Plain) as Box<dyn ServerHandshake>);
        Ok(PocReceiver {
            end: End::new(Settings::default(), place, Some(Box::new(plain))),
            terms: model.terms(),
            viewer: Viewer::new(now, &Source::format()),
            viewed: None,
            units: 0,
            missed: 0,
            bytes: 0,
            refused: 0,
        })
    }

    /// What follows from what the endpoint was told.
    fn follow(&mut self, now: Time) {
        while let Some((handle, notice)) = self.end.endpoint.poll() {
            match notice {
                Notice::Asked { request, .. } => self.answer(now, handle, &request),
                Notice::Ready => self.read(now, handle),
                Notice::Connected { .. } | Notice::Failed(_) => {}
            }
        }
    }

    fn answer(&mut self, now: Time, handle: Handle, request: &Request) {
        let service = self.terms.answer(request, None);
        let refusal = match &service {
            Ok(service) => self.end.endpoint.accept(now, handle, service).err().map(|why| why.to_string()),
            Err(refusal) => Some(refusal.text.clone()),
        };
        if let Some(text) = refusal {
            self.refused += 1;
            self.end.endpoint.refuse(handle, Code::SERVICE, &text);
        }
    }

    fn read(&mut self, now: Time, handle: Handle) {
        let Some(from) = self.end.endpoint.connection(handle).map(|connection| connection.address()) else {
            return;
        };
        while let Some(event) = self.end.endpoint.read(handle) {
            match event {
                Event::Delivered { data, .. } => self.take(now, from, &data),
                Event::Missed { .. } => self.missed += 1,
                Event::Closed(_) => self.end.endpoint.release(now, handle),
                Event::GivenUp { .. } | Event::Lost { .. } | Event::Writable => {}
            }
        }
    }

    fn take(&mut self, now: Time, from: SocketAddr, unit: &[u8]) {
        // The channel is in front.
        let packet = unit.get(1..).unwrap_or_default();
        self.units += 1;
        self.bytes += packet.len() as u64;
        if RtpHeader::new_checked(packet).is_ok() && *self.viewed.get_or_insert(from) == from {
            self.viewer.handle(now, packet);
        }
    }
}

impl Node for PocReceiver {
    fn handle_packet(&mut self, now: Time, port: usize, packet: &Bytes) {
        self.end.handle_packet(now, port, packet);
        self.follow(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.end.endpoint.handle_timeout(now);
        self.follow(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.end.endpoint.next_timeout()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Bytes)> {
        self.end.poll_transmit(now)
    }

    fn figures(&self, _now: Time) -> Figures {
        let mut figures = Figures::new();
        if self.viewed.is_some() {
            self.viewer.figures(&mut figures);
        }
        let all = (self.units + self.missed) as f64;
        let share = if all == 0.0 { 0.0 } else { self.units as f64 / all };
        figures.extend([
            ("units", self.units as f64),
            ("missed", self.missed as f64),
            ("bytes", self.bytes as f64),
            ("delivered_pct", 100.0 * share),
            ("refused", self.refused as f64),
        ]);
        figures
    }
}
