//! Where a receiver is let in: the worker that serves it, by its stream, its link and what others carry.

use std::net::IpAddr;

use outflow_engine::message::{ControlError, ReceiverId, UdpSite};
use outflow_relay::Selection;

use crate::control::Control;
use crate::grants::Wanted;
use crate::links::LinkPlace;
use crate::placing::{Admitted, Placing, Replication, Terms};

impl Control {
    /// The worker that a receiver by UDP is to be served by, and its ports; it has asked at this address.
    /// Branches are made at the stream's owner, and served from there; receivers behind a link are with it.
    ///
    /// # Errors
    /// Unknown stream or link.
    pub fn udp_site(&self, stream: &str, wanted: &Selection, from: IpAddr) -> Result<UdpSite, ControlError> {
        let link = self.stream_link(stream).map(|link| self.links().get(&link)).transpose()?;
        let worker = match (link, wanted.is_all()) {
            (Some(link), _) => link.worker,
            (None, true) => self.registry().place(stream, self.placing())?,
            (None, false) => self.entry(stream)?.owner.worker,
        };
        let (rtp, rtcp) = self.workers().get(worker).rtp_ports();
        Ok(UdpSite { worker, from, rtp, rtcp })
    }

    /// Writes a receiver down with the worker that is to serve it.
    pub(crate) fn admit(
        &self,
        Wanted { stream, grant }: Wanted<'_>,
        receiver: ReceiverId,
        site: Option<UdpSite>,
        (wanted, link): (&Selection, Option<(LinkPlace, &str)>),
    ) -> Result<Admitted, ControlError> {
        let relay_max = self.config().limits.receivers;
        let owner = if wanted.is_all() { None } else { Some(self.entry(stream)?.owner.worker) };
        if let (Some(owner), Some((link, name))) = (owner, link)
            && owner != link.worker
        {
            return Err(ControlError::Unsupported(format!(
                "a branch, view or level of stream '{stream}' cannot be had behind link '{name}', which is \
                 with another worker: put the stream itself behind it ([streams.{stream}] link = \"{name}\") \
                 and restart the relay"
            )));
        }
        let link = link.map(|(link, _)| link.worker);
        let worker = site.map(|site| site.worker).or(link).or(owner);
        let terms = Terms { relay_max, placing: self.placing(), worker };
        let replicate = |replication: Replication| replication.carry_out(stream, self.workers(), false);
        let admitted = self.registry().admit(stream, receiver, terms, || self.new_id(), replicate)?;
        self.registry().keep(receiver, grant.cloned());
        Ok(admitted)
    }

    fn placing(&self) -> Placing {
        Placing { workers: self.workers().count(), split: self.config().limits.split }
    }
}
