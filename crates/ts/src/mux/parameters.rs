//! What a transport stream wants of H.264 and H.265 beside what RTP carries: access unit
//! delimiters, and parameter sets with every key frame (ISO/IEC 13818-1 sections 2.14 and 2.17).

use bytes::{BufMut, Bytes, BytesMut};
use outflow_media::Malformed;
use outflow_media::codec::annex_b::after_start_code;
use outflow_media::codec::{Unit, h264, h265};
use outflow_media::limits::PARAMETER_SET_BYTES_MAX;

use crate::units::Syntax;

const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// The parameter sets of a track that were described or seen last.
#[derive(Debug)]
pub(super) struct Parameters {
    syntax: Syntax,
    /// With start codes.
    sets: Vec<u8>,
}

impl Parameters {
    /// With the sets that the track's description has.
    pub(super) fn new<'a>(syntax: Syntax, described: impl Iterator<Item = &'a Bytes>) -> Self {
        let mut parameters = Parameters { syntax, sets: Vec::new() };
        described.for_each(|unit| parameters.keep(unit));
        parameters
    }

    pub(super) const fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// Writes the delimiter and the parameter sets that an access unit lacks, and says behind how many of
    /// its bytes they belong. Keeps the sets that it has.
    pub(super) fn prepare(
        &mut self,
        key: bool,
        data: &[u8],
        inserted: &mut BytesMut,
    ) -> Result<usize, Malformed> {
        let syntax = self.syntax;
        let units = || LeadingUnits::new(syntax, data);
        let delimiter = units()?.find(|(_, nal)| syntax.classify(nal) == Unit::Delimiter);
        let has_sps = units()?.any(|(_, nal)| self.is_sps(nal));
        let parameters = units()?.filter(|(_, nal)| syntax.classify(nal).is_parameters());
        if has_sps {
            self.sets.clear();
        }
        parameters.for_each(|(_, nal)| self.keep(nal));
        if delimiter.is_none() {
            inserted.put_slice(&START_CODE);
            inserted.put_slice(self.delimiter());
        }
        if key && !has_sps {
            inserted.put_slice(&self.sets);
        }
        Ok(delimiter.map_or(0, |(end, _)| end))
    }

    /// A delimiter before a picture of any type.
    const fn delimiter(&self) -> &'static [u8] {
        match self.syntax {
            Syntax::H265 => &[0x46, 0x01, 0x50],
            _ => &[0x09, 0xf0],
        }
    }

    fn is_sps(&self, nal: &[u8]) -> bool {
        nal.first().is_some_and(|header| match self.syntax {
            Syntax::H265 => h265::is_sps(*header),
            _ => h264::is_sps(*header),
        })
    }

    /// Adds a parameter set to those that are kept, unless it is among them.
    fn keep(&mut self, nal: &[u8]) {
        let is_there =
            LeadingUnits::new(self.syntax, &self.sets).is_ok_and(|mut sets| sets.any(|(_, set)| set == nal));
        if !is_there && self.sets.len() + START_CODE.len() + nal.len() <= PARAMETER_SET_BYTES_MAX {
            self.sets.extend_from_slice(&START_CODE);
            self.sets.extend_from_slice(nal);
        }
    }
}

/// The NAL units before the first slice, and where each of them ends.
struct LeadingUnits<'a> {
    syntax: Syntax,
    data: &'a [u8],
    /// Where the next unit begins, behind its start code.
    at: usize,
}

impl<'a> LeadingUnits<'a> {
    fn new(syntax: Syntax, data: &'a [u8]) -> Result<Self, Malformed> {
        match after_start_code(data.get(..START_CODE.len()).unwrap_or(data)) {
            Some(at) => Ok(LeadingUnits { syntax, data, at }),
            None => Err(Malformed { format: "access unit", offset: 0, reason: "no start code before it" }),
        }
    }
}

impl<'a> Iterator for LeadingUnits<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // A slice can be long, and its header is at its start.
        const HEADER: usize = 8;
        let unit = self.data.get(self.at..).filter(|unit| !unit.is_empty())?;
        if matches!(self.syntax.classify(unit.get(..HEADER).unwrap_or(unit)), Unit::Slice(_)) {
            return None;
        }
        let (end, next) = match after_start_code(unit) {
            Some(next) => (next - 3, next),
            None => (unit.len(), unit.len()),
        };
        // Zeros belong to the start code that follows, or to nothing.
        let end = unit[..end].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let start = self.at;
        self.at += next;
        Some((start + end, &unit[..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS: [u8; 4] = [0x67, 0x42, 0, 0x1e];
    const PPS: [u8; 3] = [0x68, 0xce, 6];
    const IDR: [u8; 7] = [0x65, 0x88, 0x84, 9, 9, 9, 9];
    const DELIMITER: [u8; 2] = [9, 0x10];

    fn stream(units: &[&[u8]]) -> Vec<u8> {
        units.iter().flat_map(|unit| [&START_CODE[..], unit].concat()).collect()
    }

    /// The access unit as it is carried.
    fn carried(parameters: &mut Parameters, key: bool, units: &[&[u8]]) -> Vec<u8> {
        let data = stream(units);
        let mut inserted = BytesMut::new();
        let lead = parameters.prepare(key, &data, &mut inserted).unwrap();
        [&data[..lead], &inserted, &data[lead..]].concat()
    }

    fn described() -> Parameters {
        let sets = [Bytes::from_static(&SPS), Bytes::from_static(&PPS)];
        Parameters::new(Syntax::H264, sets.iter())
    }

    #[test]
    fn what_is_missing_is_inserted() {
        let added = [0x09, 0xf0];
        let mut parameters = described();
        assert_eq!(carried(&mut parameters, true, &[&IDR]), stream(&[&added, &SPS, &PPS, &IDR]));
        assert_eq!(carried(&mut parameters, false, &[&IDR]), stream(&[&added, &IDR]));
        let whole = [&DELIMITER[..], &SPS, &PPS, &IDR];
        assert_eq!(carried(&mut parameters, true, &whole), stream(&whole));
    }

    #[test]
    fn parameter_sets_stand_behind_the_delimiter_that_is_there() {
        let out = carried(&mut described(), true, &[&DELIMITER, &[6, 1, 2, 3], &IDR]);
        assert_eq!(out, stream(&[&DELIMITER, &SPS, &PPS, &[6, 1, 2, 3], &IDR]));
    }

    #[test]
    fn sets_seen_in_the_stream_replace_those_described() {
        let (sps, pps) = ([0x67, 0x64, 0, 0x28], [0x68, 0xee]);
        let mut parameters = described();
        carried(&mut parameters, true, &[&DELIMITER, &sps, &pps, &IDR]);
        carried(&mut parameters, false, &[&DELIMITER, &[0x68, 0xff], &pps, &IDR]);
        let out = carried(&mut parameters, true, &[&DELIMITER, &IDR]);
        assert_eq!(out, stream(&[&DELIMITER, &sps, &pps, &[0x68, 0xff], &IDR]));
    }

    #[test]
    fn h265_has_units_of_its_own() {
        let sets: [&'static [u8]; 3] = [&[0x40, 1, 7], &[0x42, 1, 8], &[0x44, 1, 9]];
        let described = sets.map(Bytes::from_static);
        let mut parameters = Parameters::new(Syntax::H265, described.iter());
        let idr = [0x26, 1, 0xaf, 9];
        let out = carried(&mut parameters, true, &[&idr]);
        assert_eq!(out, stream(&[&[0x46, 1, 0x50], sets[0], sets[1], sets[2], &idr]));
    }

    #[test]
    fn the_sets_kept_are_bounded() {
        let mut parameters = described();
        for number in 0..2000u16 {
            let mut pps = vec![0x68];
            pps.extend([0xff, 0xff].into_iter().chain(number.to_be_bytes()).chain([0xff; 60]));
            carried(&mut parameters, false, &[&pps, &IDR]);
        }
        assert!(parameters.sets.len() <= PARAMETER_SET_BYTES_MAX);
    }

    #[test]
    fn what_is_no_byte_stream_is_refused() {
        for data in [&[1][..], &[0, 0], &[5, 0, 0, 0, 1, 0x65], &[0, 0, 2, 0x65]] {
            assert!(described().prepare(true, data, &mut BytesMut::new()).is_err(), "{data:?}");
        }
    }
}
