//! What was sent is handed over.

use std::collections::VecDeque;

use outflow_media::Time;

use super::{Entry, Sent, Settings};
use crate::limits::{HISTORY_PACKETS_MAX, SKIPPED_REMEMBERED_MAX};
use crate::recovery::Rtt;
use crate::save::{NUMBER_MOST, SavedContent, SavedPacket, SavedSent, Unfit, check, nanos, time};

const WHAT: &str = "list of sent packets";

impl<T> Sent<T> {
    /// What another one needs to go on. `content` saves what is in a packet.
    pub(crate) fn save(&self, content: impl Fn(&T) -> SavedContent) -> SavedSent {
        let packet = |(number, entry): (u64, &Entry<T>)| {
            let (sent, bytes) = (entry.sent.as_nanos(), entry.bytes);
            Some(SavedPacket { number, sent, bytes, content: content(entry.content.as_ref()?) })
        };
        SavedSent {
            next: self.next,
            measured_from: self.measured_from,
            largest_acked: self.largest_acked,
            packets: (self.oldest..).zip(&self.packets).filter_map(packet).collect(),
            rtt: self.rtt.save(),
            loss_at: nanos(self.loss_at),
            probe_from: self.probe_from.as_nanos(),
            probes: self.probes,
            skipped: self.skipped.iter().copied().collect(),
            marks: self.ecn.into(),
            counts: self.counts.into(),
        }
    }

    /// One that goes on. `content` restores what is in a packet.
    pub(crate) fn restore(
        settings: Settings,
        now: Time,
        saved: &SavedSent,
        mut content: impl FnMut(&SavedContent) -> Result<T, Unfit>,
    ) -> Result<Self, Unfit> {
        check(saved.next < NUMBER_MOST, WHAT, "too high a number")?;
        check(
            saved.largest_acked.is_none_or(|largest| largest < saved.next),
            WHAT,
            "one that was never sent",
        )?;
        check(saved.skipped.len() <= SKIPPED_REMEMBERED_MAX, WHAT, "too many numbers left out")?;
        let oldest = saved.packets.first().map_or(saved.next, |packet| packet.number);
        let count = saved.next.checked_sub(oldest).filter(|count| *count <= HISTORY_PACKETS_MAX as u64);
        let mut packets =
            VecDeque::with_capacity(count.ok_or(Unfit { what: WHAT, why: "too many" })? as usize);
        let mut last = Time::ZERO;
        for saved in &saved.packets {
            let sent = Time::from_nanos(saved.sent);
            let gap = saved.number.checked_sub(oldest + packets.len() as u64);
            check(last <= sent && sent <= now, WHAT, "times in another order")?;
            let room = packets.capacity().saturating_sub(packets.len()) as u64;
            let gap =
                gap.filter(|gap| *gap < room).ok_or(Unfit { what: WHAT, why: "numbers in another order" })?;
            (0..gap).for_each(|_| packets.push_back(Entry { sent: last, bytes: 0, content: None }));
            packets.push_back(Entry { sent, bytes: saved.bytes, content: Some(content(&saved.content)?) });
            last = sent;
        }
        let end = (saved.next - oldest) as usize;
        check(packets.len() <= end, WHAT, "one that was never sent")?;
        packets.extend((packets.len()..end).map(|_| Entry { sent: last, bytes: 0, content: None }));
        let in_flight = packets.iter().filter(|packet| packet.content.is_some());
        Ok(Sent {
            rtt: Rtt::restore(&saved.rtt),
            measured_from: saved.measured_from,
            now,
            in_flight: in_flight.clone().count(),
            bytes_in_flight: in_flight.map(|packet| u64::from(packet.bytes)).sum(),
            packets,
            oldest,
            next: saved.next,
            largest_acked: saved.largest_acked,
            loss_at: time(saved.loss_at),
            probe_from: Time::from_nanos(saved.probe_from),
            probes: saved.probes,
            skipped: saved.skipped.iter().copied().collect(),
            ecn: saved.marks.into(),
            counts: saved.counts.into(),
            ..Sent::new(settings)
        })
    }
}
