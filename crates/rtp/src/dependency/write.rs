//! From descriptors to bits (section A.8.2).

use outflow_media::codec::bits::BitWriter;

use super::{Descriptor, Frame, Structure};

impl Descriptor {
    /// Writes the value of an extension behind `out`. `known` is the structure that counts, which is the
    /// one within, if there is one. `None` if it has no such template; nothing is written then.
    pub fn emit(&self, known: &Structure, out: &mut Vec<u8>) -> Option<()> {
        let structure = self.structure.as_deref().unwrap_or(known);
        let template = structure.template(self.template)?;
        let flags = [
            self.structure.is_some(),
            self.active_targets.is_some(),
            self.frame.indications != template.indications,
            self.frame.references != template.references,
            self.frame.chains != template.chains,
        ];
        let [high, low] = self.number.to_be_bytes();
        out.extend([u8::from(self.first) << 7 | u8::from(self.last) << 6 | self.template & 63, high, low]);
        if !flags.contains(&true) {
            return Some(());
        }
        let [_, _, own_indications, own_references, own_chains] = flags;
        let mut bits = BitWriter::new(out);
        flags.iter().for_each(|flag| bits.bits(u32::from(*flag), 1));
        if let Some(structure) = &self.structure {
            structure.emit(&mut bits);
        }
        if let Some(active) = self.active_targets {
            bits.bits(active, u32::from(structure.targets));
        }
        if own_indications {
            indications(&self.frame, &mut bits);
        }
        if own_references {
            references(&self.frame, &mut bits);
        }
        if own_chains {
            self.frame.chains.iter().for_each(|chain| bits.bits(u32::from(*chain), 8));
        }
        Some(())
    }
}

impl Structure {
    fn emit(&self, bits: &mut BitWriter<'_>) {
        bits.bits(u32::from(self.first_template), 6);
        bits.bits(u32::from(self.targets) - 1, 5);
        for (index, template) in self.templates.iter().enumerate() {
            let next = self.templates.get(index + 1);
            bits.bits(next.map_or(3, |next| step(template, next)), 2);
        }
        for template in &self.templates {
            indications(template, bits);
        }
        for template in &self.templates {
            for reference in &template.references {
                bits.bits(1, 1);
                bits.bits(u32::from(*reference) - 1, 4);
            }
            bits.bits(0, 1);
        }
        below(u32::from(self.chains), u32::from(self.targets) + 1, bits);
        for chain in &self.protected_by {
            below(u32::from(*chain), u32::from(self.chains), bits);
        }
        for template in &self.templates {
            template.chains.iter().for_each(|chain| bits.bits(u32::from(*chain), 4));
        }
        bits.bits(u32::from(!self.resolutions.is_empty()), 1);
        for (width, height) in &self.resolutions {
            bits.bits(width - 1, 16);
            bits.bits(height - 1, 16);
        }
    }
}

/// How the layer of the next template differs.
fn step(template: &Frame, next: &Frame) -> u32 {
    match (next.spatial > template.spatial, next.temporal > template.temporal) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

fn indications(frame: &Frame, bits: &mut BitWriter<'_>) {
    frame.indications.iter().for_each(|indication| bits.bits(*indication as u32, 2));
}

fn references(frame: &Frame, bits: &mut BitWriter<'_>) {
    for reference in &frame.references {
        let value = u32::from(*reference) - 1;
        let size = match value {
            0..16 => 1,
            16..256 => 2,
            _ => 3,
        };
        bits.bits(size, 2);
        bits.bits(value, 4 * size);
    }
    bits.bits(0, 2);
}

/// A number below `values`, `ns(n)` of the AV1 specification (section 4.10.7).
fn below(value: u32, values: u32, bits: &mut BitWriter<'_>) {
    let width = u32::BITS - values.leading_zeros();
    let short = (1 << width) - values;
    if value < short {
        bits.bits(value, width - 1);
    } else {
        bits.bits(value + short, width);
    }
}
