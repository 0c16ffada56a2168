//! Frames of VP9.

use outflow_media::Malformed;

use super::{Describe, Grid, Identity, PacketFields, Picture, Refers};
use crate::RtpHeader;
use crate::payload::vp9::{Descriptor, GroupPicture, Layer, PictureId, Structure, is_key};

/// Reads what packets of VP9 say of their frames.
#[derive(Debug)]
pub(in crate::payload) struct Vp9 {
    /// The group that the stream repeats, and the number of the picture from which on it does.
    group: Vec<GroupPicture>,
    group_start: u16,
    grid: Grid,
}

impl Default for Vp9 {
    fn default() -> Self {
        Vp9 { group: Vec::new(), group_start: 0, grid: Grid::ONE }
    }
}

impl Describe for Vp9 {
    fn read(&mut self, packet: &RtpHeader<'_>, late: bool) -> Result<PacketFields, Malformed> {
        let (descriptor, data) = Descriptor::parse(packet.payload())?;
        let whole = Layer { temporal: 0, switches_up: false, spatial: 0, needs_below: false };
        let layer = descriptor.layer.unwrap_or(whole);
        if !late {
            self.learn(&descriptor, layer);
        }
        let Layer { temporal, switches_up, spatial, needs_below } = layer;
        let key = descriptor.first && spatial == 0 && !descriptor.is_inter && is_key(data);
        let refers = match self.refers(&descriptor, needs_below) {
            // ffmpeg says so of every frame.
            Refers::Nothing if spatial == 0 && !key => Refers::Newest { below: false },
            refers => refers,
        };
        let picture = Picture {
            key,
            refers,
            // Frames of a higher temporal layer may be no references for the next ones of a lower one.
            resets: spatial > 0 && temporal == 0 && !descriptor.is_inter,
            above: if switches_up && spatial == 0 { self.grid.above(temporal) } else { 0 },
            grid: self.grid,
            number: descriptor.picture.map(|picture| picture.value),
            ..Picture::plain(temporal, spatial)
        };
        let (first, last) = (descriptor.first, descriptor.last);
        Ok(PacketFields { frame: Identity::Spatial(spatial), first, last, picture })
    }
}

impl Vp9 {
    /// Takes what holds for later pictures, too.
    fn learn(&mut self, descriptor: &Descriptor, layer: Layer) {
        let mut told = Grid { temporal: layer.temporal + 1, spatial: layer.spatial + 1, discardable: false };
        if let Some(Structure { spatial, group, .. }) = &descriptor.structure {
            self.group = group.clone().unwrap_or_default();
            self.group_start = descriptor.picture.map_or(0, |picture| picture.value);
            let highest = self.group.iter().map(|picture| picture.temporal).max().unwrap_or(0);
            told = told.and(Grid { temporal: highest + 1, spatial: *spatial, discardable: false });
        }
        self.grid = self.grid.and(told);
    }

    fn refers(&self, descriptor: &Descriptor, below: bool) -> Refers {
        let named = |picture: PictureId, distances: &[u8]| {
            let mut numbers = [None; 3];
            for (number, distance) in numbers.iter_mut().zip(distances) {
                *number = Some(picture.back(*distance));
            }
            Refers::Pictures { numbers, below }
        };
        match (descriptor.is_inter, descriptor.picture) {
            (false, _) if below => Refers::Below,
            (false, _) => Refers::Nothing,
            (true, Some(picture)) if descriptor.is_flexible => named(picture, &descriptor.references),
            (true, Some(picture)) => match self.in_group(picture) {
                Some(place) if !place.references.is_empty() => named(picture, &place.references),
                _ => Refers::Newest { below },
            },
            (true, None) => Refers::Newest { below },
        }
    }

    /// The place of a picture in the group.
    fn in_group(&self, picture: PictureId) -> Option<&GroupPicture> {
        let bits = if picture.is_long { 0x7fff } else { 0x7f };
        let since = picture.value.wrapping_sub(self.group_start) & bits;
        self.group.get(usize::from(since).checked_rem(self.group.len())?)
    }
}
