//! Continuity of a transport stream (ISO/IEC 13818-1, section 2.4.3.3): what is missing in it.

use super::TS_PACKET;

/// Follows the continuity counters of all PIDs.
#[derive(Debug, Clone)]
pub struct Continuity {
    /// The last counter of each PID; 0xFF if none was seen.
    last: Vec<u8>,
    /// Packets seen.
    pub packets: u64,
    /// Places where a counter did not follow the one before.
    pub gaps: u64,
    /// Packets that do not begin with a sync byte, or that are marked as damaged.
    pub malformed: u64,
    /// Packets whose random access indicator is set.
    pub random_access: u64,
}

impl Default for Continuity {
    fn default() -> Self {
        Self { last: vec![0xFF; 8192], packets: 0, gaps: 0, malformed: 0, random_access: 0 }
    }
}

impl Continuity {
    /// Takes whole transport packets.
    pub fn push(&mut self, bytes: &[u8]) {
        for packet in bytes.chunks(TS_PACKET) {
            self.push_one(packet);
        }
    }

    /// Continues with the counts at zero.
    pub fn split(&self) -> Self {
        Self { last: self.last.clone(), ..Self::default() }
    }

    /// Continues with the counts as they are; counters begin anywhere.
    pub(crate) fn of_new_session(&self) -> Self {
        Self { last: Self::default().last, ..self.clone() }
    }

    fn push_one(&mut self, packet: &[u8]) {
        self.packets += 1;
        if packet.len() != TS_PACKET || packet[0] != 0x47 || packet[1] & 0x80 != 0 {
            self.malformed += 1;
            return;
        }
        let pid = usize::from(packet[1] & 0x1F) << 8 | usize::from(packet[2]);
        let (has_field, has_payload) = (packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        let flags = if has_field && packet[4] > 0 { packet[5] } else { 0 };
        self.random_access += u64::from(flags & 0x40 != 0);
        if pid == 0x1FFF || !has_payload {
            return;
        }
        let (counter, last) = (packet[3] & 0x0F, self.last[pid]);
        let announced = flags & 0x80 != 0;
        // A packet may be sent twice with the same counter.
        if last != 0xFF && !announced && counter != last && counter != (last + 1) & 0x0F {
            self.gaps += 1;
        }
        self.last[pid] = counter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(counter: u8) -> [u8; 188] {
        let mut bytes = [0; 188];
        bytes[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10 | counter]);
        bytes
    }

    #[test]
    fn a_missing_packet_is_a_gap_and_a_repeated_one_is_not() {
        let mut continuity = Continuity::default();
        for counter in [14, 15, 0, 0, 1] {
            continuity.push(&packet(counter));
        }
        assert_eq!((continuity.packets, continuity.gaps, continuity.malformed), (5, 0, 0));
        continuity.push(&packet(3));
        assert_eq!(continuity.gaps, 1);
        continuity.push(&[0; 188]);
        continuity.push(&[0x47; 10]);
        assert_eq!(continuity.malformed, 2);
    }
}
