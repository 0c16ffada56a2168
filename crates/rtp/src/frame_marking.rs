//! Frame marking: what a frame is, in a header extension (RFC 9626 section 3).

use outflow_media::Malformed;

/// What a packet says of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameMarking {
    /// The first packet of a frame (S).
    pub first: bool,
    /// The last packet of a frame (E).
    pub last: bool,
    /// The frame refers to none before it (I).
    pub is_independent: bool,
    /// The frame can be left out (D).
    pub is_discardable: bool,
    /// Of which layer it is, in the form for scalable streams.
    pub layer: Option<Layer>,
}

/// Of which layer a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// Of its temporal layers, it refers to none but the lowest one (B).
    pub syncs_with_base: bool,
    /// Temporal layer (TID), 3 bits.
    pub temporal: u8,
    /// Spatial or quality layer (LID), as the codec numbers them.
    pub id: u8,
    /// Number of the last picture of the lowest temporal layer (TL0PICIDX).
    pub base_picture: Option<u8>,
}

impl FrameMarking {
    /// Reads the value of an extension.
    ///
    /// # Errors
    /// It is empty.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let (&flags, rest) =
            data.split_first().ok_or(Malformed { format: "frame marking", offset: 0, reason: "empty" })?;
        let layer = rest.first().map(|id| Layer {
            syncs_with_base: flags & 0x08 != 0,
            temporal: flags & 7,
            id: *id,
            base_picture: rest.get(1).copied(),
        });
        Ok(FrameMarking {
            first: flags & 0x80 != 0,
            last: flags & 0x40 != 0,
            is_independent: flags & 0x20 != 0,
            is_discardable: flags & 0x10 != 0,
            layer,
        })
    }

    /// Writes the value of an extension behind `out`: one byte, or two or three with a layer.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.first) << 7
            | u8::from(self.last) << 6
            | u8::from(self.is_independent) << 5
            | u8::from(self.is_discardable) << 4;
        let Some(layer) = self.layer else { return out.push(flags) };
        out.extend([flags | u8::from(layer.syncs_with_base) << 3 | layer.temporal & 7, layer.id]);
        out.extend(layer.base_picture);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fields_lie_where_they_should() {
        let long = FrameMarking::parse(&[0xaa, 3, 0x45]).unwrap();
        let layer = Layer { syncs_with_base: true, temporal: 2, id: 3, base_picture: Some(0x45) };
        let expected =
            FrameMarking { first: true, is_independent: true, layer: Some(layer), ..Default::default() };
        assert_eq!(long, expected);
        let short = FrameMarking::parse(&[0x50]).unwrap();
        assert_eq!(short, FrameMarking { last: true, is_discardable: true, ..Default::default() });
        assert!(FrameMarking::parse(&[]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            (first, last, is_independent, is_discardable) in any::<(bool, bool, bool, bool)>(),
            layer in prop::option::of((any::<bool>(), 0..8_u8, any::<u8>(), any::<Option<u8>>())),
        ) {
            let layer = layer.map(|(syncs_with_base, temporal, id, base_picture)| {
                Layer { syncs_with_base, temporal, id, base_picture }
            });
            let marking = FrameMarking { first, last, is_independent, is_discardable, layer };
            let mut out = Vec::new();
            marking.emit(&mut out);
            prop_assert_eq!(FrameMarking::parse(&out), Ok(marking));
        }
    }
}
