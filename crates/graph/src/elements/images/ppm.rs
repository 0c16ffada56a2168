//! Images that come whole, one a packet.

use bytes::Bytes;
use outflow_media::image::{Cpu, Pixels, ppm};
use outflow_packet::DropReason;

use super::carrier::{Carrier, drop_all};
use super::packets::Out;
use super::recipe::{Lines, Recipe, Resolved};
use crate::{Item, Tally};

/// Works on PPM and PGM images.
#[derive(Debug)]
pub(super) struct Images {
    recipe: Recipe,
    lines: Lines,
    /// What is done to images like the last one.
    resolved: Option<Resolved>,
}

impl Images {
    pub(super) fn new(recipe: Recipe, cpu: Cpu) -> Self {
        // Gray images have a format of their own, of a third of the bytes.
        let pixels = if recipe.gray { recipe.pixels.or(Some(Pixels::Gray)) } else { recipe.pixels };
        Images { recipe: Recipe { pixels, ..recipe }, lines: Lines::new(cpu), resolved: None }
    }

    fn work(&mut self, image: &[u8], tally: &mut Tally) -> Result<Bytes, DropReason> {
        let header = match ppm::Header::parse(image) {
            Ok(Some(header)) if image.len() - header.bytes >= header.shape.bytes() => header,
            _ => return Err(DropReason::Malformed),
        };
        let known = self.resolved.filter(|resolved| resolved.input == header.shape);
        let resolved = known.map_or_else(|| self.recipe.resolve(header.shape), Ok).map_err(|unfit| {
            tally.fail(unfit.to_string());
            DropReason::Unfit
        })?;
        self.resolved = Some(resolved);
        let mut out = Vec::with_capacity(ppm::HEADER_BYTES_MAX + resolved.output.bytes());
        ppm::emit(resolved.output, &mut out).ok_or(DropReason::Unfit)?;
        let pixels = &image[header.bytes..];
        for line in 0..resolved.output.height {
            out.extend_from_slice(self.lines.line(&resolved, pixels, line));
        }
        Ok(out.into())
    }
}

impl Carrier for Images {
    fn take(&mut self, mut item: Item, out: &mut Out<'_>, tally: &mut Tally) {
        match self.work(&item.packet.bytes, tally) {
            Ok(bytes) => {
                item.packet.bytes = bytes;
                out.items.push(item);
            }
            Err(reason) => drop_all(tally, reason, 1),
        }
    }
}
