//! Units out of bytes, and bytes out of units.

use std::io::{ErrorKind, Read, Write};

use outflow_petri::service::Flow;

use super::common::Format;

/// Bytes of a unit of MPEG-TS: seven packets, as IPTV has them.
const TS_BYTES: usize = 7 * 188;

/// What stands in front of a unit.
const HEAD_BYTES: usize = 16;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A unit, with its number if that is not the next one.
pub(super) type Unit = (Option<u64>, Vec<u8>);

/// Pictures of a period, and units of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pictures: u64,
    units: u64,
}

impl Group {
    /// A period of a flow, if that can be divided so.
    pub(super) fn new(flow: &Flow, pictures: u32) -> Result<Group, String> {
        let (objects, pictures) = (flow.net.objects() as u64, u64::from(pictures));
        if pictures == 0 || !objects.is_multiple_of(pictures) {
            return Err(format!(
                "a period of the service has {objects} objects, which are not {pictures} pictures: say --gop, or \
                 another service"
            ));
        }
        Ok(Group { pictures, units: objects / pictures })
    }
}

/// Cuts what is read into units, and gives them to `each` as soon as they are there, until that says no.
pub(super) fn cut(
    from: &mut impl Read,
    format: Format,
    group: Group,
    mut each: impl FnMut(Unit) -> bool,
) -> Result<(), String> {
    let told = |error: std::io::Error| format!("standard input: {error}");
    match format {
        Format::Units => {
            while let Some(unit) = framed(from)? {
                if !each(unit) {
                    break;
                }
            }
        }
        Format::Ts | Format::Datagrams => {
            let mut bytes = vec![0; TS_BYTES];
            loop {
                let count = fill(from, &mut bytes).map_err(told)?;
                if count == 0 || !each((None, bytes[..count].to_vec())) {
                    break;
                }
            }
        }
        Format::Mpeg2 => {
            let (mut slices, mut bytes) = (Slices::new(group), vec![0; READ_BYTES]);
            loop {
                let count = match from.read(&mut bytes) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    count => count.map_err(told)?,
                };
                if count == 0 || !slices.push(&bytes[..count], &mut each) {
                    break;
                }
            }
            slices.end(&mut each);
        }
    }
    Ok(())
}

/// As much as there is, up to the length of `bytes`.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match from.read(&mut bytes[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn framed(from: &mut impl Read) -> Result<Option<Unit>, String> {
    let mut head = [0; HEAD_BYTES];
    let told = |error: std::io::Error| format!("standard input: {error}");
    match fill(from, &mut head).map_err(told)? {
        0 => return Ok(None),
        HEAD_BYTES => (),
        _ => return Err("standard input ends within the head of a unit".to_owned()),
    }
    let (number, rest) = head.split_at(8);
    let number = u64::from_le_bytes(number.try_into().expect("eight bytes"));
    let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes"));
    let mut unit = Vec::new();
    let read = from.take(u64::from(length)).read_to_end(&mut unit).map_err(told)?;
    if read != length as usize {
        return Err(format!("standard input ends within unit {number}"));
    }
    Ok(Some((Some(number), unit)))
}

/// Writes a unit as the format has it.
pub(super) fn write(to: &mut impl Write, format: Format, number: u64, data: &[u8]) -> std::io::Result<()> {
    if format != Format::Units {
        return to.write_all(data);
    }
    // In one piece, so that it is one call of the system.
    let mut unit = Vec::with_capacity(HEAD_BYTES + data.len());
    unit.extend_from_slice(&number.to_le_bytes());
    unit.extend_from_slice(&(data.len() as u32).to_le_bytes());
    unit.resize(HEAD_BYTES, 0);
    unit.extend_from_slice(data);
    to.write_all(&unit)
}

/// Cuts MPEG-2 video (ISO/IEC 13818-2) at its start codes: headers in front of a picture are a unit, and each
/// slice is one. A group begins a period of the net.
pub(super) struct Slices {
    /// Bytes behind the last start code, and it.
    bytes: Vec<u8>,
    /// Where to look for the next start code.
    at: usize,
    headers: Vec<u8>,
    is_group: bool,
    group: Group,
    /// The picture, counted from the first one, and the next unit in it.
    picture: Option<u64>,
    next: u64,
}

impl Slices {
    fn new(group: Group) -> Self {
        let (bytes, headers) = (Vec::new(), Vec::new());
        Slices { bytes, at: 0, headers, is_group: false, group, picture: None, next: 0 }
    }

    fn push(&mut self, bytes: &[u8], each: &mut impl FnMut(Unit) -> bool) -> bool {
        self.bytes.extend_from_slice(bytes);
        while let Some(at) = find(&self.bytes, self.at.max(1)) {
            let rest = self.bytes.split_off(at);
            let part = core::mem::replace(&mut self.bytes, rest);
            self.at = 0;
            if !self.part(&part, each) {
                return false;
            }
        }
        self.at = self.bytes.len().saturating_sub(3);
        true
    }

    fn end(&mut self, each: &mut impl FnMut(Unit) -> bool) {
        let part = core::mem::take(&mut self.bytes);
        self.part(&part, each);
    }

    /// A start code and what is behind it.
    fn part(&mut self, part: &[u8], each: &mut impl FnMut(Unit) -> bool) -> bool {
        let Some(code) = part.get(3).filter(|_| part.starts_with(&[0, 0, 1])) else { return true };
        if !(1..=0xaf).contains(code) {
            self.is_group |= *code == 0xb8;
            self.headers.extend_from_slice(part);
            return true;
        }
        if !self.headers.is_empty() {
            let headers = core::mem::take(&mut self.headers);
            self.begin_picture();
            if self.picture.is_some() && !self.unit(headers, each) {
                return false;
            }
        }
        // Nothing can be made of what is in front of the first group.
        self.picture.is_none() || self.unit(part.to_vec(), each)
    }

    fn begin_picture(&mut self) {
        let is_group = core::mem::take(&mut self.is_group);
        self.next = 0;
        self.picture = match self.picture {
            None => is_group.then_some(0),
            // A group that is shorter than the net's has no more pictures; of a longer one the rest is as good
            // as another group.
            Some(picture) if is_group => Some((picture / self.group.pictures + 1) * self.group.pictures),
            Some(picture) => Some(picture + 1),
        };
    }

    /// More than the net has of a picture go with its last one.
    fn unit(&mut self, data: Vec<u8>, each: &mut impl FnMut(Unit) -> bool) -> bool {
        let Some(picture) = self.picture.filter(|_| self.next < self.group.units) else { return true };
        let number = picture * self.group.units + self.next;
        self.next += 1;
        each((Some(number), data))
    }
}

/// Where a start code begins, from `from` on.
fn find(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(3).position(|three| three == [0, 0, 1]).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use outflow_petri::service::Preset;

    use super::*;

    fn group(flow: &str, pictures: u32) -> Group {
        Group::new(&Preset::parse(flow).expect("a flow"), pictures).expect("it can be divided")
    }

    fn units(bytes: &[u8], format: Format, group: Group, step: usize) -> Vec<Unit> {
        let (mut units, mut from) = (Vec::new(), Steps { bytes, step });
        cut(&mut from, format, group, |unit| {
            units.push(unit);
            true
        })
        .expect("it can be cut");
        units
    }

    /// Gives `step` bytes at once.
    struct Steps<'a> {
        bytes: &'a [u8],
        step: usize,
    }

    impl Read for Steps<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let count = self.step.min(to.len()).min(self.bytes.len());
            to[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            Ok(count)
        }
    }

    #[test]
    fn units_come_back_as_they_went() {
        let mut bytes = Vec::new();
        write(&mut bytes, Format::Units, 3, b"abc").expect("memory");
        write(&mut bytes, Format::Units, 9, b"").expect("memory");
        let back = units(&bytes, Format::Units, group("datagrams", 1), 5);
        assert_eq!(back, [(Some(3), b"abc".to_vec()), (Some(9), Vec::new())]);
        let short = cut(&mut &bytes[..18], Format::Units, group("datagrams", 1), |_| true);
        assert_eq!(short, Err("standard input ends within unit 3".to_owned()));
    }

    #[test]
    fn transport_streams_are_cut_by_seven_packets() {
        let lengths: Vec<_> = units(&[0x47; 3000], Format::Ts, group("datagrams", 1), 1000)
            .iter()
            .map(|unit| unit.1.len())
            .collect();
        assert_eq!(lengths, [1316, 1316, 368]);
    }

    #[test]
    fn video_is_cut_into_headers_and_slices_and_groups_begin_periods() {
        let part = |code: u8| [&[0, 0, 1, code][..], &[code; 5]].concat();
        let picture = |slices: u8| [&[0x00][..], &(1..=slices).collect::<Vec<_>>()].concat();
        let whole = [&[0xb3, 0xb8][..], &picture(3), &picture(2)].concat();
        let codes = [&picture(2)[..], &whole, &whole].concat();
        let bytes: Vec<_> = codes.iter().flat_map(|code| part(*code)).collect();
        for step in [1, 7, 1000] {
            let shape = group("mpeg:headers=yes,pictures=4,distance=4,slices=3", 4);
            let units = units(&bytes, Format::Mpeg2, shape, step);
            let numbers: Vec<_> = units.iter().filter_map(|(number, _)| *number).collect();
            assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 16, 17, 18, 19, 20, 21, 22], "{step} at once");
            let all: Vec<u8> = units.into_iter().flat_map(|(_, data)| data).collect();
            assert_eq!(all, bytes[27..], "nothing is changed but what is in front of the first group");
        }
    }
}
