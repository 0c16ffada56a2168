//! AV1 in RTP (RTP payload format for AV1), with the dependency descriptor.

use anyhow::{Context, Result, bail, ensure};
use outflow_rtp::HEADER;
use outflow_rtp::dependency::{Descriptor, Frame, Indication, Structure};

use super::packets::Body;
use super::{Coding, Encoded, LayerFrame, Plan};

/// The name of the header extension.
pub(super) const DESCRIPTOR: &str =
    "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";
/// The number of the first frame; the next ones are 0 soon.
const FIRST_NUMBER: u16 = 65_500;
/// The number of the first template.
const FIRST_TEMPLATE: u8 = 60;
/// Frames of which there are templates: those of a key picture, and of a group of temporal layers behind it.
const TEMPLATE_PICTURES: usize = 5;
/// What an element, its size or a header of one extension takes at most besides their content.
const ROOM: usize = 12;

const SEQUENCE_HEADER: u8 = 1;
const HAS_SIZE: u8 = 2;
const HAS_LAYER: u8 = 4;

/// The packets of a frame.
pub(super) fn bodies(encoded: &Encoded, number: usize) -> Vec<Body> {
    let frame = &encoded.plan.frames[number];
    let begins = frame.key && frame.spatial == 0;
    let units = units(&encoded.frames[number]).expect("libaom writes whole units");
    let units: Vec<Vec<u8>> = units.iter().map(|unit| unit.without_size()).collect();
    let mut bodies: Vec<Body> = Vec::new();
    let mut rest: Vec<&[u8]> = units.iter().map(Vec::as_slice).collect();
    let mut continues = false;
    while !rest.is_empty() {
        let first = bodies.is_empty();
        let extension = match encoded.coding {
            Coding::Av1 => descriptor(&encoded.plan, number, first, false),
            _ => Vec::new(),
        };
        let room = encoded.plan.shape.packet_bytes - HEADER - extension.len() - ROOM;
        let (elements, goes_on) = fill(&mut rest, room);
        let flags = u8::from(continues) << 7 | u8::from(goes_on) << 6 | u8::from(begins && first) << 3;
        bodies.push(Body { extension, payload: aggregated(flags, &elements) });
        continues = goes_on;
    }
    if let (Coding::Av1, Some(at)) = (encoded.coding, bodies.len().checked_sub(1)) {
        bodies[at].extension = descriptor(&encoded.plan, number, at == 0, true);
    }
    bodies
}

/// Takes as much as there is room for; and whether the last element goes on in the next packet.
fn fill<'a>(rest: &mut Vec<&'a [u8]>, mut room: usize) -> (Vec<&'a [u8]>, bool) {
    let mut elements = Vec::new();
    while let Some(unit) = rest.first().copied() {
        if unit.len() > room {
            let (element, behind) = unit.split_at(room);
            elements.push(element);
            rest[0] = behind;
            return (elements, true);
        }
        elements.push(unit);
        rest.remove(0);
        // Room for a size of two bytes, and for more than an empty element.
        room = (room - unit.len()).saturating_sub(2);
        if room < 16 {
            break;
        }
    }
    (elements, false)
}

/// The header and the elements; up to three are counted, and the last of those has no size.
fn aggregated(flags: u8, elements: &[&[u8]]) -> Vec<u8> {
    let counted = if elements.len() <= 3 { elements.len() } else { 0 };
    let mut payload = vec![flags | (counted as u8) << 4];
    for (index, element) in elements.iter().enumerate() {
        if index + 1 != counted {
            put_leb128(element.len(), &mut payload);
        }
        payload.extend(*element);
    }
    payload
}

fn put_leb128(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A value and how many bytes it took.
fn leb128(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(4) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// A unit with its header.
struct Unit<'a> {
    header: &'a [u8],
    content: &'a [u8],
}

impl Unit<'_> {
    fn kind(&self) -> u8 {
        self.header[0] >> 3 & 15
    }

    fn without_size(&self) -> Vec<u8> {
        let mut bytes = [self.header, self.content].concat();
        bytes[0] &= !HAS_SIZE;
        bytes
    }

    fn with_size(&self) -> Vec<u8> {
        let mut bytes = self.header.to_vec();
        bytes[0] |= HAS_SIZE;
        put_leb128(self.content.len(), &mut bytes);
        bytes.extend(self.content);
        bytes
    }
}

/// The units of a frame as libaom writes it, with sizes.
fn units(mut bytes: &[u8]) -> Option<Vec<Unit<'_>>> {
    let mut units = Vec::new();
    while let Some(first) = bytes.first() {
        let (header, rest) = bytes.split_at_checked(1 + usize::from(first & HAS_LAYER != 0))?;
        let (size, width) = leb128(rest)?;
        let (content, behind) = rest[width..].split_at_checked(size)?;
        units.push(Unit { header, content });
        bytes = behind;
    }
    Some(units)
}

/// The frames of a picture, with their spatial layers, from the payloads of its packets. What has no layer stands
/// in front of the frame behind it.
pub(super) fn frames(payloads: &[&[u8]]) -> Result<Vec<(u8, Vec<u8>)>> {
    let mut frames = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    for unit in reassembled(payloads)? {
        let header =
            unit.len().min(1 + usize::from(unit.first().is_some_and(|first| first & HAS_LAYER != 0)));
        let (header, content) = unit.split_at(header);
        let unit = Unit { header, content };
        ensure!(!header.is_empty(), "an empty unit");
        if unit.kind() == SEQUENCE_HEADER {
            before.extend(unit.with_size());
            continue;
        }
        let spatial = header.get(1).map_or(0, |layer| layer >> 3 & 3);
        frames.push((spatial, [core::mem::take(&mut before), unit.with_size()].concat()));
    }
    Ok(frames)
}

/// The units of a picture, from the elements of its packets.
fn reassembled(payloads: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    let mut goes_on = false;
    for payload in payloads {
        let (flags, mut rest) = payload.split_first().context("an empty payload")?;
        ensure!((flags & 0x80 != 0) == goes_on, "a unit that is not whole");
        let counted = usize::from(flags >> 4 & 3);
        let mut index = 0;
        while !rest.is_empty() {
            index += 1;
            let (size, width) = match index == counted {
                true => (rest.len(), 0),
                false => leb128(rest).context("a size")?,
            };
            let Some((element, behind)) = rest[width..].split_at_checked(size) else {
                bail!("a short element")
            };
            match units.last_mut().filter(|_| index == 1 && goes_on) {
                Some(unit) => unit.extend(element),
                None => units.push(element.to_vec()),
            }
            rest = behind;
        }
        goes_on = flags & 0x40 != 0;
    }
    ensure!(!goes_on, "its last unit is not whole");
    Ok(units)
}

/// What is said of a frame by one of its packets.
fn descriptor(plan: &Plan, number: usize, first: bool, last: bool) -> Vec<u8> {
    let structure = structure(plan);
    let frame = described(plan, number);
    let same_layers = |t: &&Frame| (t.spatial, t.temporal) == (frame.spatial, frame.temporal);
    let templates = || structure.templates.iter();
    let best = templates().position(|template| *template == frame);
    let template = best.or_else(|| templates().position(|template| same_layers(&template)));
    let begins = first && plan.frames[number].key && frame.spatial == 0;
    let descriptor = Descriptor {
        first,
        last,
        template: (FIRST_TEMPLATE + template.expect("one for each layer") as u8) & 63,
        number: FIRST_NUMBER.wrapping_add(number as u16),
        structure: begins.then(|| Box::new(structure.clone())),
        active_targets: None,
        frame,
    };
    let mut value = Vec::new();
    descriptor.emit(&structure, &mut value).expect("it names a template");
    value
}

/// Decode targets are all sets of layers up to one, by spatial and then temporal layer; and each spatial layer has a
/// chain, of the frames of the lowest temporal layer up to it.
fn structure(plan: &Plan) -> Structure {
    let pictures = plan.frames.iter().take(TEMPLATE_PICTURES * usize::from(plan.spatial));
    let mut templates: Vec<Frame> = (0..pictures.len()).map(|number| described(plan, number)).collect();
    templates.sort_by_key(|frame| (frame.spatial, frame.temporal));
    templates.dedup();
    let size = |spatial: u8| {
        let (width, height) = plan.shape.size_of(spatial, plan.spatial);
        (width as u32, height as u32)
    };
    Structure {
        first_template: FIRST_TEMPLATE,
        targets: plan.spatial * plan.temporal,
        protected_by: targets(plan).map(|(spatial, _)| spatial).collect(),
        chains: plan.spatial,
        templates,
        resolutions: (0..plan.spatial).map(size).collect(),
    }
}

fn targets(plan: &Plan) -> impl Iterator<Item = (u8, u8)> {
    let temporal = plan.temporal;
    (0..plan.spatial).flat_map(move |spatial| (0..temporal).map(move |temporal| (spatial, temporal)))
}

fn described(plan: &Plan, number: usize) -> Frame {
    let frame = &plan.frames[number];
    let chain = |spatial: u8| {
        let is_in = |of: &LayerFrame| of.temporal == 0 && of.spatial <= spatial;
        let last = plan.frames[..number].iter().rposition(is_in);
        if frame.key && frame.spatial == 0 { 0 } else { last.map_or(0, |last| (number - last) as u8) }
    };
    Frame {
        spatial: frame.spatial,
        temporal: frame.temporal,
        indications: targets(plan).map(|target| indication(frame, target)).collect(),
        references: frame.references().map(|reference| (number - reference.frame) as u16).collect(),
        chains: (0..plan.spatial).map(chain).collect(),
    }
}

/// As libwebrtc has it for L3T3; from pictures that sync on, higher spatial layers can be taken.
fn indication(frame: &LayerFrame, (spatial, temporal): (u8, u8)) -> Indication {
    match frame {
        _ if frame.spatial > spatial || frame.temporal > temporal => Indication::NotPresent,
        _ if frame.temporal == 0 && (frame.syncs || frame.spatial == spatial) => Indication::Switch,
        _ if frame.spatial < spatial => Indication::Required,
        _ if frame.temporal == temporal => Indication::Discardable,
        _ => Indication::Switch,
    }
}
