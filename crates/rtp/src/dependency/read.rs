//! From bits to descriptors (section A.8.2).

use arrayvec::ArrayVec;
use outflow_media::Malformed;
use outflow_media::codec::bits::BitReader;

use super::{
    Descriptor, Frame, Indication, SPATIAL_LAYERS_MAX, Structure, TEMPLATES_MAX, TEMPORAL_LAYERS_MAX,
};

/// Bits of the fields that every descriptor has.
const MANDATORY_BYTES: usize = 3;

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "dependency descriptor", offset, reason }
}

impl Descriptor {
    /// Reads the value of an extension. `known` is the structure that came last; `None` comes out if the
    /// descriptor needs one that is not known.
    ///
    /// # Errors
    /// It ends within a field, or says more than there can be.
    pub fn parse(data: &[u8], known: Option<&Structure>) -> Result<Option<Self>, Malformed> {
        let &[first, high, low, ..] = data else {
            return Err(malformed(data.len(), "shorter than what every descriptor has"));
        };
        let mut reader = Reader { bits: BitReader::new(&data[MANDATORY_BYTES..]), bytes: data.len() };
        let extended = data.len() > MANDATORY_BYTES;
        let mut flags = [false; 5];
        if extended {
            for flag in &mut flags {
                *flag = reader.flag()?;
            }
        }
        let [has_structure, has_active, own_indications, own_references, own_chains] = flags;
        let structure = if has_structure { Some(Box::new(reader.structure()?)) } else { None };
        let Some(counts) = structure.as_deref().or(known) else { return Ok(None) };
        let targets = u32::from(counts.targets);
        let active_targets = if has_active { Some(reader.number(targets)?) } else { None };
        let template = first & 0x3f;
        let Some(mut frame) = counts.template(template).cloned() else {
            return if has_structure { Err(malformed(0, "a template that there is not")) } else { Ok(None) };
        };
        if own_indications {
            frame.indications = reader.indications(targets)?;
        }
        if own_references {
            frame.references = reader.references()?;
        }
        if own_chains {
            frame.chains = reader.chains(counts.chains, 8)?;
        }
        Ok(Some(Descriptor {
            first: first & 0x80 != 0,
            last: first & 0x40 != 0,
            template,
            number: u16::from_be_bytes([high, low]),
            structure,
            active_targets,
            frame,
        }))
    }
}

struct Reader<'a> {
    bits: BitReader<'a>,
    bytes: usize,
}

impl Reader<'_> {
    fn number(&mut self, bits: u32) -> Result<u32, Malformed> {
        self.bits.bits(bits).ok_or(malformed(self.bytes, "it ends within a field"))
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        self.number(1).map(|bit| bit == 1)
    }

    /// A number below `values`, `ns(n)` of the AV1 specification (section 4.10.7).
    fn below(&mut self, values: u32) -> Result<u32, Malformed> {
        let width = u32::BITS - values.leading_zeros();
        let short = (1 << width) - values;
        let value = self.number(width - 1)?;
        if value < short { Ok(value) } else { Ok((value << 1) - short + self.number(1)?) }
    }

    fn structure(&mut self) -> Result<Structure, Malformed> {
        let first_template = self.number(6)? as u8;
        let targets = self.number(5)? as u8 + 1;
        let mut templates = self.layers()?;
        for template in &mut templates {
            template.indications = self.indications(u32::from(targets))?;
        }
        for template in &mut templates {
            while self.flag()? {
                let reference = self.number(4)? as u16 + 1;
                self.push(&mut template.references, reference)?;
            }
        }
        let chains = self.below(u32::from(targets) + 1)? as u8;
        let mut protected_by = ArrayVec::new();
        if chains > 0 {
            for _ in 0..targets {
                protected_by.push(self.below(u32::from(chains))? as u8);
            }
            for template in &mut templates {
                template.chains = self.chains(chains, 4)?;
            }
        }
        let resolutions = self.resolutions(templates.last().map_or(0, |last| last.spatial))?;
        Ok(Structure { first_template, targets, protected_by, chains, templates, resolutions })
    }

    /// The layers of the templates, each of which says where the next one is.
    fn layers(&mut self) -> Result<Vec<Frame>, Malformed> {
        let mut templates = Vec::new();
        let (mut spatial, mut temporal) = (0, 0);
        loop {
            templates.push(Frame { spatial, temporal, ..Frame::default() });
            match self.number(2)? {
                0 => {}
                1 => temporal += 1,
                2 => (spatial, temporal) = (spatial + 1, 0),
                _ => return Ok(templates),
            }
            let fit = spatial < SPATIAL_LAYERS_MAX && temporal < TEMPORAL_LAYERS_MAX;
            if !fit || templates.len() == TEMPLATES_MAX {
                return Err(malformed(self.bytes, "more templates or layers than there can be"));
            }
        }
    }

    fn indications<const N: usize>(&mut self, targets: u32) -> Result<ArrayVec<Indication, N>, Malformed> {
        let indication = |bits| match bits {
            0 => Indication::NotPresent,
            1 => Indication::Discardable,
            2 => Indication::Switch,
            _ => Indication::Required,
        };
        (0..targets).map(|_| self.number(2).map(indication)).collect()
    }

    fn references<const N: usize>(&mut self) -> Result<ArrayVec<u16, N>, Malformed> {
        let mut references = ArrayVec::new();
        loop {
            let size = self.number(2)?;
            if size == 0 {
                return Ok(references);
            }
            let reference = self.number(4 * size)? as u16 + 1;
            self.push(&mut references, reference)?;
        }
    }

    fn push<const N: usize>(&self, to: &mut ArrayVec<u16, N>, reference: u16) -> Result<(), Malformed> {
        to.try_push(reference).map_err(|_| malformed(self.bytes, "more references than there can be"))
    }

    fn chains<const N: usize>(&mut self, chains: u8, bits: u32) -> Result<ArrayVec<u8, N>, Malformed> {
        (0..chains).map(|_| self.number(bits).map(|distance| distance as u8)).collect()
    }

    fn resolutions<const N: usize>(&mut self, highest: u8) -> Result<ArrayVec<(u32, u32), N>, Malformed> {
        let count = if self.flag()? { highest + 1 } else { 0 };
        (0..count).map(|_| Ok((self.number(16)? + 1, self.number(16)? + 1))).collect()
    }
}
