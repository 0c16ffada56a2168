//! A receiver at the end of its path.

use core::time::Duration;

use outflow_media::Time;
use outflow_ring::Entry;
use outflow_rtp::HEADER;

/// A byte stream's path: what is on the way drains at the path's rate, and when it is full the
/// sender has to wait until half of it has gone.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    bps: u64,
    buffer_bytes: usize,
    on_the_way: usize,
    drained: Time,
    stalled: bool,
}

impl Path {
    pub(crate) fn new(bps: u64, buffer_bytes: usize, now: Time) -> Self {
        Path { bps, buffer_bytes, on_the_way: 0, drained: now, stalled: false }
    }

    /// From now on nothing is read at its end.
    pub(crate) fn stall(&mut self, now: Time) {
        self.drain(now);
        self.stalled = true;
    }

    /// From now on its end is read again.
    pub(crate) fn resume(&mut self, now: Time) {
        self.drain(now);
        self.stalled = false;
    }

    /// When all that is on the way now will have come through; `None` if never.
    pub(crate) fn through_at(&self, now: Time) -> Option<Time> {
        (!self.stalled).then(|| now + self.time_for(self.on_the_way as u64))
    }

    /// Takes a packet of `bytes` bytes, if there is room for it.
    pub(crate) fn take(&mut self, now: Time, bytes: usize) -> bool {
        self.drain(now);
        let fits = self.on_the_way + bytes <= self.buffer_bytes;
        if fits {
            self.on_the_way += bytes;
        }
        fits
    }

    /// When half of its room will be free again; `None` if never.
    pub(crate) fn writable_at(&mut self, now: Time) -> Option<Time> {
        self.drain(now);
        if self.stalled {
            return None;
        }
        let excess = self.on_the_way.saturating_sub(self.buffer_bytes / 2) as u64;
        Some(now + self.time_for(excess) + Duration::from_nanos(1))
    }

    fn time_for(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * 8_000_000_000 / self.bps)
    }

    fn drain(&mut self, now: Time) {
        if !self.stalled {
            let bits = now.since(self.drained).as_nanos() * u128::from(self.bps) / 1_000_000_000;
            self.on_the_way = self.on_the_way.saturating_sub((bits / 8) as usize);
        }
        self.drained = now;
    }
}

/// What a receiver can show: it decodes a frame if it has all packets of it and could decode the
/// frame before, or the frame is a key frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct Viewer {
    /// When the first packet came to the relay.
    pub(crate) first: Option<Time>,
    /// Frames that it could decode.
    pub(crate) decodable: u64,
    next_sequence: u16,
    intact: bool,
    /// A frame has begun and not ended yet.
    is_open: bool,
}

impl Viewer {
    /// A packet came.
    pub(crate) fn packet(&mut self, entry: &Entry) {
        let Some([_, _, high, low, ..]) = wire(entry).0.first_chunk::<HEADER>() else { return };
        let (tag, sequence) = (entry.packet.tag, u16::from_be_bytes([*high, *low]));
        self.first.get_or_insert(entry.packet.arrived);
        self.intact &= sequence == self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        // In a transport stream, a frame ends where the next one begins.
        self.decodable += u64::from(tag.first && self.is_open && self.intact);
        self.intact |= tag.first && entry.starts_key;
        self.decodable += u64::from(tag.last && self.intact);
        self.is_open = (self.is_open || tag.first) && !tag.last;
    }
}

/// A packet as it goes out by RTP: its header, where that stands apart, and what comes behind.
pub(crate) fn wire(entry: &Entry) -> (&[u8], &[u8]) {
    let bytes = &entry.packet.bytes[..];
    if entry.rtp_header[0] == 0 { (bytes, &[]) } else { (&entry.rtp_header, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_path_takes_more_when_half_of_it_has_drained() {
        let mut path = Path::new(8_000, 100_000, Time::ZERO);
        assert!(path.take(Time::ZERO, 100_000));
        assert!(!path.take(Time::ZERO, 1));
        let at = path.writable_at(Time::ZERO).expect("it drains");
        assert_eq!(at.as_millis(), 50_000);
        assert!(path.take(at, 50_000));
        path.stall(at);
        let later = at + Duration::from_secs(1_000);
        assert_eq!((path.writable_at(later), path.through_at(later)), (None, None));
        path.resume(later);
        assert_eq!(path.through_at(later), Some(later + Duration::from_secs(100)), "nothing went in between");
    }
}
