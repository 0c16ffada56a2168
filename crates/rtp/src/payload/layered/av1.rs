//! Frames of AV1: by the dependency descriptor, and without it by the headers of the units.

use outflow_media::codec::av1::{FrameType, Obu, ObuKind, frame_type, layers};
use outflow_media::{Malformed, Needs};

use super::{Describe, Grid, Identity, PacketFields, Picture, Refers};
use crate::RtpHeader;
use crate::dependency::{Descriptor, Frame, Indication, SPATIAL_LAYERS_MAX, Structure, TEMPORAL_LAYERS_MAX};
use crate::payload::av1::AggregationHeader;

/// Quality layers, at most: the temporal ones, and one for each further spatial one.
const LAYERS_MAX: usize = (TEMPORAL_LAYERS_MAX + SPATIAL_LAYERS_MAX - 1) as usize;

/// Reads what packets of AV1 say of their frames.
#[derive(Debug)]
pub(in crate::payload) struct Av1 {
    /// The identifier of the dependency descriptor.
    extension: Option<u8>,
    known: Option<Known>,
    /// As the last sequence header says.
    grid: Grid,
}

/// The structure that counts.
#[derive(Debug)]
struct Known {
    structure: Box<Structure>,
    grid: Grid,
    /// The decode target that has all of each quality layer, and of those below.
    targets: [Option<u8>; LAYERS_MAX],
}

impl Known {
    fn new(structure: Box<Structure>) -> Self {
        let (spatial, temporal) = structure.layers();
        let grid = Grid { temporal, spatial, discardable: false };
        let target = |layer: usize| {
            let (temporal, spatial) = grid.reach(layer as u8);
            (0..structure.targets).find(|t| structure.layers_of(usize::from(*t)) == (spatial, temporal))
        };
        Known { grid, targets: core::array::from_fn(target), structure }
    }

    /// What a frame is for the decode target of a quality layer.
    fn indication(&self, frame: &Frame, layer: usize) -> Indication {
        let target = self.targets.get(layer).copied().flatten();
        target.and_then(|target| frame.indications.get(usize::from(target))).copied().unwrap_or_default()
    }

    fn picture(&self, frame: &Frame, key: bool) -> Picture {
        let far = |distance: &u16| *distance > 32;
        let near = frame.references.iter().filter(|distance| !far(distance));
        let needs = near.fold(Needs::NOTHING, |needs, distance| needs.and(Needs::back(u32::from(*distance))));
        let own = usize::from(self.grid.layer(frame.temporal, frame.spatial));
        let switches = |layer: usize| self.indication(frame, layer) == Indication::Switch;
        let unneeded = |is: &Indication| matches!(is, Indication::NotPresent | Indication::Discardable);
        Picture {
            key,
            discardable: frame.indications.iter().all(unneeded),
            refers: if frame.references.is_empty() { Refers::Nothing } else { Refers::To(needs) },
            resets: switches(own) && !frame.references.iter().any(far),
            above: (own + 1..LAYERS_MAX).filter(|l| switches(*l)).fold(0, |mask, layer| mask | 1 << layer),
            grid: self.grid,
            ..Picture::plain(frame.temporal, frame.spatial)
        }
    }
}

impl Av1 {
    /// `extension` is the identifier of the dependency descriptor.
    pub(in crate::payload) const fn new(extension: Option<u8>) -> Self {
        Av1 { extension, known: None, grid: Grid::ONE }
    }

    /// What the dependency descriptor says, if there is one and the structure that it needs.
    fn described(&mut self, packet: &RtpHeader<'_>, late: bool) -> Result<Option<PacketFields>, Malformed> {
        let Some(data) = self.extension.and_then(|id| packet.extension(id)) else { return Ok(None) };
        let known = self.known.as_ref().map(|known| &*known.structure);
        let Some(mut descriptor) = Descriptor::parse(data, known)? else { return Ok(None) };
        let attached = descriptor.structure.take().map(Known::new);
        let begins = attached.is_some() && descriptor.frame.references.is_empty();
        let key = begins && (descriptor.frame.spatial, descriptor.frame.temporal) == (0, 0);
        let Some(known) = attached.as_ref().or(self.known.as_ref()) else { return Ok(None) };
        let picture = known.picture(&descriptor.frame, key);
        if !late && attached.is_some() {
            self.known = attached;
        }
        let frame = Identity::Number(descriptor.number);
        Ok(Some(PacketFields { frame, first: descriptor.first, last: descriptor.last, picture }))
    }

    /// What the units of a packet say.
    fn units(&mut self, packet: &RtpHeader<'_>, late: bool) -> Result<PacketFields, Malformed> {
        let (header, data) = AggregationHeader::parse(packet.payload())?;
        let last = packet.marker();
        let (mut layer, mut frame_kind, mut sequence) = (None, None, header.new_sequence);
        let mut any = false;
        for (index, element) in header.elements(data).enumerate() {
            let element = element?;
            if index == 0 && header.continues {
                continue;
            }
            let Some(unit) = Obu::parse(element) else { continue };
            any = true;
            layer = layer.or(unit.layer);
            match unit.kind {
                ObuKind::SequenceHeader => {
                    sequence = true;
                    if let (Some((temporal, spatial)), false) = (layers(unit.payload), late) {
                        self.grid = Grid { temporal, spatial, discardable: false };
                    }
                }
                ObuKind::Frame => frame_kind = frame_kind.or(frame_type(unit.payload)),
                ObuKind::FramePart | ObuKind::Other => {}
            }
        }
        if !any {
            let (frame, picture) = (Identity::Same, Picture::plain(0, 0));
            return Ok(PacketFields { frame, first: false, last, picture });
        }
        let (temporal, spatial) = layer.unwrap_or_default();
        let key = sequence && spatial == 0 && frame_kind.is_none_or(|kind| kind == FrameType::Key);
        let refers = match frame_kind {
            Some(FrameType::IntraOnly) if spatial == 0 => Refers::Nothing,
            _ => Refers::Newest { below: true },
        };
        let picture = Picture { key, refers, grid: self.grid, ..Picture::plain(temporal, spatial) };
        Ok(PacketFields { frame: Identity::Spatial(spatial), first: !header.continues, last, picture })
    }
}

impl Describe for Av1 {
    fn read(&mut self, packet: &RtpHeader<'_>, late: bool) -> Result<PacketFields, Malformed> {
        match self.described(packet, late)? {
            Some(said) => Ok(said),
            None => self.units(packet, late),
        }
    }
}
