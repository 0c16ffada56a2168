//! Payload descriptor of VP9 (RFC 9628 section 4.2).

use arrayvec::ArrayVec;

use outflow_media::Malformed;

/// Spatial layers, at most.
pub const SPATIAL_LAYERS_MAX: usize = 8;
/// Pictures that one refers to, at most.
pub const REFERENCES_MAX: usize = 3;

/// The number of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureId {
    /// The number, wrapping.
    pub value: u16,
    /// It has 15 bits, and not 7.
    pub is_long: bool,
}

impl PictureId {
    /// The number of the picture `distance` before it.
    pub const fn back(self, distance: u8) -> u16 {
        let bits = if self.is_long { 0x7fff } else { 0x7f };
        self.value.wrapping_sub(distance as u16) & bits
    }
}

/// Of which layer a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// Temporal layer (TID), 3 bits.
    pub temporal: u8,
    /// No later frame of a higher temporal layer refers to one of those before this frame (U).
    pub switches_up: bool,
    /// Spatial layer (SID), 3 bits.
    pub spatial: u8,
    /// It refers to the spatial layer below in the same picture (D).
    pub needs_below: bool,
}

/// A picture of the group that a stream repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPicture {
    /// Temporal layer, 3 bits.
    pub temporal: u8,
    /// As [`Layer::switches_up`].
    pub switches_up: bool,
    /// How far back the pictures are that it refers to.
    pub references: ArrayVec<u8, REFERENCES_MAX>,
}

/// The scalability structure (section 4.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    /// Spatial layers, 1 to 8.
    pub spatial: u8,
    /// Width and height of each in pixels; empty if it is not said.
    pub resolutions: ArrayVec<(u16, u16), SPATIAL_LAYERS_MAX>,
    /// The group of pictures, 255 at most, if it is told.
    pub group: Option<Vec<GroupPicture>>,
}

/// What stands in front of each payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// The number of the picture (I).
    pub picture: Option<PictureId>,
    /// The frame refers to other pictures (P).
    pub is_inter: bool,
    /// Of which layer it is (L).
    pub layer: Option<Layer>,
    /// Number of the last picture of the lowest temporal layer (TL0PICIDX). In the flexible mode there is
    /// none, and otherwise one if there is a layer.
    pub base_picture: u8,
    /// Each frame names what it refers to (F).
    pub is_flexible: bool,
    /// How far back the pictures are that it refers to (P_DIFF), in the flexible mode.
    pub references: ArrayVec<u8, REFERENCES_MAX>,
    /// The first packet of a frame (B).
    pub first: bool,
    /// The last packet of a frame (E).
    pub last: bool,
    /// The structure of the stream, which counts from here on (V).
    pub structure: Option<Structure>,
    /// No frame of a higher spatial layer refers to this one (Z).
    pub is_not_below: bool,
}

impl Descriptor {
    /// Reads the descriptor of a payload, and gives what is behind it.
    ///
    /// # Errors
    /// It is cut off, or says what cannot be.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader { payload, at: 0 };
        let flags = reader.byte()?;
        let is = |bit: u8| flags >> (7 - bit) & 1 == 1;
        let mut descriptor = Descriptor {
            is_inter: is(1),
            is_flexible: is(3),
            first: is(4),
            last: is(5),
            is_not_below: is(7),
            ..Descriptor::default()
        };
        if is(0) {
            descriptor.picture = Some(reader.picture()?);
        }
        if is(2) {
            let byte = reader.byte()?;
            descriptor.layer = Some(Layer {
                temporal: byte >> 5,
                switches_up: byte & 0x10 != 0,
                spatial: byte >> 1 & 7,
                needs_below: byte & 1 != 0,
            });
            if !descriptor.is_flexible {
                descriptor.base_picture = reader.byte()?;
            }
        }
        if descriptor.is_inter && descriptor.is_flexible {
            descriptor.references = reader.references()?;
        }
        if is(6) {
            descriptor.structure = Some(reader.structure()?);
        }
        Ok((descriptor, &payload[reader.at..]))
    }

    /// Writes the descriptor behind `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = [
            self.picture.is_some(),
            self.is_inter,
            self.layer.is_some(),
            self.is_flexible,
            self.first,
            self.last,
            self.structure.is_some(),
            self.is_not_below,
        ];
        out.push(flags.iter().fold(0, |byte, flag| byte << 1 | u8::from(*flag)));
        match self.picture {
            Some(PictureId { value, is_long: true }) => out.extend((value | 0x8000).to_be_bytes()),
            Some(PictureId { value, is_long: false }) => out.push(value as u8 & 0x7f),
            None => {}
        }
        if let Some(layer) = self.layer {
            let Layer { temporal, switches_up, spatial, needs_below } = layer;
            out.push(temporal << 5 | u8::from(switches_up) << 4 | spatial << 1 | u8::from(needs_below));
            if !self.is_flexible {
                out.push(self.base_picture);
            }
        }
        if self.is_inter && self.is_flexible {
            for (index, distance) in self.references.iter().enumerate() {
                out.push(distance << 1 | u8::from(index + 1 < self.references.len()));
            }
        }
        if let Some(structure) = &self.structure {
            structure.emit(out);
        }
    }
}

impl Structure {
    fn emit(&self, out: &mut Vec<u8>) {
        let sized = u8::from(!self.resolutions.is_empty()) << 4;
        out.push((self.spatial - 1) << 5 | sized | u8::from(self.group.is_some()) << 3);
        for (width, height) in &self.resolutions {
            out.extend(width.to_be_bytes());
            out.extend(height.to_be_bytes());
        }
        let Some(group) = &self.group else { return };
        out.push(group.len() as u8);
        for picture in group {
            let references = (picture.references.len() as u8) << 2;
            out.push(picture.temporal << 5 | u8::from(picture.switches_up) << 4 | references);
            out.extend(&picture.references);
        }
    }
}

struct Reader<'a> {
    payload: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    const fn malformed(&self, reason: &'static str) -> Malformed {
        Malformed { format: "VP9 payload", offset: self.at, reason }
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = self.payload.get(self.at).copied();
        let byte = byte.ok_or(self.malformed("it ends within its descriptor"))?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn picture(&mut self) -> Result<PictureId, Malformed> {
        let first = self.byte()?;
        if first & 0x80 == 0 {
            return Ok(PictureId { value: u16::from(first), is_long: false });
        }
        Ok(PictureId { value: u16::from_be_bytes([first & 0x7f, self.byte()?]), is_long: true })
    }

    fn references(&mut self) -> Result<ArrayVec<u8, REFERENCES_MAX>, Malformed> {
        let mut references = ArrayVec::new();
        loop {
            let byte = self.byte()?;
            if references.try_push(byte >> 1).is_err() {
                return Err(self.malformed("more references than there can be"));
            }
            if byte & 1 == 0 {
                return Ok(references);
            }
        }
    }

    fn structure(&mut self) -> Result<Structure, Malformed> {
        let flags = self.byte()?;
        let spatial = (flags >> 5) + 1;
        let sized = if flags & 0x10 != 0 { spatial } else { 0 };
        let resolutions =
            (0..sized).map(|_| Ok((self.number()?, self.number()?))).collect::<Result<_, Malformed>>()?;
        let group = if flags & 0x08 != 0 { Some(self.group()?) } else { None };
        Ok(Structure { spatial, resolutions, group })
    }

    fn group(&mut self) -> Result<Vec<GroupPicture>, Malformed> {
        let count = self.byte()?;
        let picture = |_| {
            let flags = self.byte()?;
            let references = (0..flags >> 2 & 3).map(|_| self.byte()).collect::<Result<_, Malformed>>()?;
            Ok(GroupPicture { temporal: flags >> 5, switches_up: flags & 0x10 != 0, references })
        };
        (0..count).map(picture).collect()
    }
}

/// Whether what stands behind the descriptor of a frame's first packet is a key frame: the uncompressed
/// header of VP9 (bitstream specification, section 6.2).
pub fn is_key(data: &[u8]) -> bool {
    let Some(first) = data.first() else { return false };
    // frame_marker (2), profile_low_bit, profile_high_bit; a reserved bit in profile 3.
    let flags = if first & 0x30 == 0x30 { first << 1 } else { *first };
    let is_shown_again = flags & 0x08 != 0;
    let is_inter = flags & 0x04 != 0;
    first >> 6 == 2 && !is_shown_again && !is_inter
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fields_lie_where_they_should() {
        let wire = [0xfd, 0x92, 0x34, 0x53, 3, 4, 0x10];
        let (descriptor, rest) = Descriptor::parse(&wire).unwrap();
        let expected = Descriptor {
            picture: Some(PictureId { value: 0x1234, is_long: true }),
            is_inter: true,
            layer: Some(Layer { temporal: 2, switches_up: true, spatial: 1, needs_below: true }),
            base_picture: 0,
            is_flexible: true,
            references: [1, 2].into_iter().collect(),
            first: true,
            last: true,
            structure: None,
            is_not_below: true,
        };
        assert_eq!((descriptor, rest), (expected, &[0x10][..]));
    }

    #[test]
    fn structures_of_libvpx_are_read() {
        // Not flexible: key picture 5, two spatial layers, a group of two pictures.
        let wire = [0xaa, 5, 0x00, 7, 0x38, 1, 0x40, 0, 0xb4, 2, 0x80, 1, 0x68, 2, 0x00, 0x34, 1, 0x82];
        let (descriptor, rest) = Descriptor::parse(&wire).unwrap();
        let structure = descriptor.structure.clone().unwrap();
        assert_eq!((structure.spatial, &structure.resolutions[..]), (2, &[(320, 180), (640, 360)][..]));
        let group: Vec<_> =
            structure.group.unwrap().into_iter().map(|p| (p.temporal, p.references)).collect();
        assert_eq!(group, [(0, ArrayVec::new()), (1, [1].into_iter().collect())]);
        assert_eq!((descriptor.base_picture, rest), (7, &[0x82][..]));
        for length in 0..wire.len() - 1 {
            assert!(Descriptor::parse(&wire[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn more_references_than_there_can_be_are_refused() {
        let error = Descriptor::parse(&[0xd0, 5, 3, 3, 3, 2]).unwrap_err();
        assert_eq!((error.offset, error.reason), (6, "more references than there can be"));
    }

    #[test]
    fn key_frames_are_told_from_others() {
        assert!(is_key(&[0x82]) && is_key(&[0xa2]) && is_key(&[0xb1]));
        assert!(!is_key(&[0x86]) && !is_key(&[0x8a]) && !is_key(&[0xb2]) && !is_key(&[0x02]) && !is_key(&[]));
    }

    fn layer() -> impl Strategy<Value = Layer> {
        (0..8_u8, any::<bool>(), 0..8_u8, any::<bool>()).prop_map(
            |(temporal, switches_up, spatial, needs_below)| Layer {
                temporal,
                switches_up,
                spatial,
                needs_below,
            },
        )
    }

    fn structure() -> impl Strategy<Value = Structure> {
        let references = prop::collection::vec(any::<u8>(), 0..4);
        let picture = (0..8_u8, any::<bool>(), references).prop_map(|(temporal, switches_up, references)| {
            GroupPicture { temporal, switches_up, references: references.into_iter().collect() }
        });
        let group = prop::option::of(prop::collection::vec(picture, 0..9));
        (1..9_u8, any::<bool>(), group).prop_map(|(spatial, sized, group)| {
            let count = if sized { u16::from(spatial) } else { 0 };
            Structure { spatial, resolutions: (0..count).map(|n| (n, 3 * n)).collect(), group }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            picture in prop::option::of((0..0x80_u16, any::<bool>())),
            (is_inter, is_flexible, first, last) in any::<(bool, bool, bool, bool)>(),
            (layer, structure) in (prop::option::of(layer()), prop::option::of(structure())),
            distances in prop::collection::vec(0..128_u8, 1..4),
            (base_picture, is_not_below) in any::<(u8, bool)>(),
        ) {
            let descriptor = Descriptor {
                picture: picture.map(|(value, is_long)| PictureId { value, is_long }),
                is_inter,
                layer,
                base_picture: if layer.is_some() && !is_flexible { base_picture } else { 0 },
                is_flexible,
                references: distances.into_iter().filter(|_| is_inter && is_flexible).collect(),
                first,
                last,
                structure,
                is_not_below,
            };
            let mut out = Vec::new();
            descriptor.emit(&mut out);
            out.push(9);
            prop_assert_eq!(Descriptor::parse(&out), Ok((descriptor, &[9][..])));
        }
    }
}
