//! Payload descriptor of VP8 (RFC 7741 section 4.2).

use outflow_media::Malformed;

/// What stands in front of each payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// No other frame refers to this one (N).
    pub is_no_reference: bool,
    /// A partition begins in this packet (S).
    pub starts_partition: bool,
    /// Number of the partition (PID), 3 bits.
    pub partition: u8,
    /// Number of the picture: 7 bits, or 15 if it does not fit.
    pub picture: Option<u16>,
    /// Number of the last picture of the lowest temporal layer (TL0PICIDX).
    pub base_picture: Option<u8>,
    /// Temporal layer (TID), 2 bits; and whether the frame refers to no others than those of the lowest
    /// one (Y).
    pub temporal: Option<(u8, bool)>,
    /// Number of the last key frame (KEYIDX), 5 bits.
    pub key_index: Option<u8>,
}

impl Descriptor {
    /// Reads the descriptor of a payload, and gives what is behind it.
    ///
    /// # Errors
    /// It is cut off.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut rest = payload;
        let mut byte = || {
            let (&byte, behind) = rest.split_first().ok_or(Malformed {
                format: "VP8 payload",
                offset: payload.len(),
                reason: "it ends within its descriptor",
            })?;
            rest = behind;
            Ok(byte)
        };
        let first = byte()?;
        let mut descriptor = Descriptor {
            is_no_reference: first & 0x20 != 0,
            starts_partition: first & 0x10 != 0,
            partition: first & 7,
            ..Descriptor::default()
        };
        let extension = if first & 0x80 != 0 { byte()? } else { 0 };
        if extension & 0x80 != 0 {
            let high = byte()?;
            let is_long = high & 0x80 != 0;
            descriptor.picture = Some(match is_long {
                true => u16::from_be_bytes([high & 0x7f, byte()?]),
                false => u16::from(high),
            });
        }
        if extension & 0x40 != 0 {
            descriptor.base_picture = Some(byte()?);
        }
        if extension & 0x30 != 0 {
            let indices = byte()?;
            descriptor.temporal = (extension & 0x20 != 0).then_some((indices >> 6, indices & 0x20 != 0));
            descriptor.key_index = (extension & 0x10 != 0).then_some(indices & 0x1f);
        }
        Ok((descriptor, rest))
    }

    /// Writes the descriptor behind `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let extension = u8::from(self.picture.is_some()) << 7
            | u8::from(self.base_picture.is_some()) << 6
            | u8::from(self.temporal.is_some()) << 5
            | u8::from(self.key_index.is_some()) << 4;
        out.push(
            u8::from(extension != 0) << 7
                | u8::from(self.is_no_reference) << 5
                | u8::from(self.starts_partition) << 4
                | self.partition & 7,
        );
        if extension != 0 {
            out.push(extension);
        }
        match self.picture {
            Some(short @ 0..0x80) => out.push(short as u8),
            Some(long) => out.extend((long | 0x8000).to_be_bytes()),
            None => {}
        }
        out.extend(self.base_picture);
        if self.temporal.is_some() || self.key_index.is_some() {
            let (temporal, syncs) = self.temporal.unwrap_or_default();
            out.push(temporal << 6 | u8::from(syncs) << 5 | self.key_index.unwrap_or(0) & 0x1f);
        }
    }

    /// Whether a frame begins in this packet.
    pub const fn starts_frame(&self) -> bool {
        self.starts_partition && self.partition == 0
    }
}

/// Whether what stands behind the descriptor of a frame's first packet is a key frame (RFC 6386
/// section 9.1).
pub fn is_key(data: &[u8]) -> bool {
    data.first().is_some_and(|first| first & 1 == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fields_lie_where_they_should() {
        let wire = [0xb2, 0xf0, 0x81, 0x23, 0x45, 0xa7, 0x10];
        let (descriptor, rest) = Descriptor::parse(&wire).unwrap();
        let expected = Descriptor {
            is_no_reference: true,
            starts_partition: true,
            partition: 2,
            picture: Some(0x123),
            base_picture: Some(0x45),
            temporal: Some((2, true)),
            key_index: Some(7),
        };
        assert_eq!((descriptor, rest), (expected, &[0x10][..]));
        assert_eq!(Descriptor::parse(&[0x10]).unwrap().0.temporal, None);
        for length in 0..wire.len() - 1 {
            assert!(Descriptor::parse(&wire[..length]).is_err(), "{length}");
        }
        assert!(is_key(&[0x10]) && !is_key(&[0x11]) && !is_key(&[]));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            (is_no_reference, starts_partition, partition) in (any::<bool>(), any::<bool>(), 0..8_u8),
            picture in prop::option::of(0..0x8000_u16),
            base_picture in prop::option::of(any::<u8>()),
            temporal in prop::option::of((0..4_u8, any::<bool>())),
            key_index in prop::option::of(0..32_u8),
        ) {
            let descriptor = Descriptor {
                is_no_reference, starts_partition, partition, picture, base_picture, temporal, key_index,
            };
            let mut out = Vec::new();
            descriptor.emit(&mut out);
            out.push(9);
            prop_assert_eq!(Descriptor::parse(&out), Ok((descriptor, &[9][..])));
        }
    }
}
