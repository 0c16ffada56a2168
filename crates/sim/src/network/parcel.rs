//! Packets on their way. They are small, as links move them often: what they hold stands apart.

use bytes::Bytes;
use outflow_media::Time;
use slab::Slab;

/// A packet of traffic.
#[derive(Debug, Clone)]
pub(super) struct Parcel {
    pub(super) flow: u32,
    /// How many links it has behind it.
    pub(super) hops: u16,
    /// Within its flow.
    pub(super) number: u64,
    pub(super) sent: Time,
    /// What it holds, if a relay is to look into it.
    pub(super) payload: Option<u32>,
}

/// A packet of IP.
#[derive(Debug, Clone)]
pub(super) struct PacketParcel {
    /// All of it.
    pub(super) packet: u32,
    pub(super) way: u16,
    /// How many links it has behind it.
    pub(super) hops: u16,
    pub(super) flow: u32,
}

/// What packets on their way hold, by number. Copies of a packet have one in common.
#[derive(Debug, Default)]
pub(super) struct Payloads(Slab<Payload>);

#[derive(Debug)]
struct Payload {
    bytes: Bytes,
    /// Packets that hold it.
    copies: u32,
}

impl Payloads {
    /// A packet that holds this sets out.
    pub(super) fn put(&mut self, bytes: Bytes) -> u32 {
        self.0.insert(Payload { bytes, copies: 1 }) as u32
    }

    /// There is one more packet that holds this.
    pub(super) fn copied(&mut self, number: u32) {
        if let Some(payload) = self.0.get_mut(number as usize) {
            payload.copies += 1;
        }
    }

    /// What a packet held that is on its way no more.
    pub(super) fn take(&mut self, number: u32) -> Bytes {
        let payload = &mut self.0[number as usize];
        payload.copies -= 1;
        match payload.copies {
            0 => self.0.remove(number as usize).bytes,
            _ => payload.bytes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_there_until_the_last_copy_is_at_its_end() {
        let mut payloads = Payloads::default();
        let [one, other] = ["one", "other"].map(|text| payloads.put(Bytes::from_static(text.as_bytes())));
        payloads.copied(one);
        assert_eq!([one, other, one].map(|number| payloads.take(number)), ["one", "other", "one"]);
        assert!(payloads.0.is_empty());
    }
}
