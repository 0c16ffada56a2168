//! Units of an elementary stream that comes in pieces: NAL units of a byte stream (ITU-T H.264
//! and H.265 annex B), or what stands behind MPEG start codes (ISO/IEC 13818-2 section 6.2.1).

use outflow_media::codec::annex_b::after_start_code;
use outflow_media::codec::{Unit, h264, h265, mpeg_video};

use super::programme::Coding;

/// Bytes of a unit that are looked at: enough for a recovery point behind a short message.
const LOOKED_AT: usize = 64;

/// Bytes that are enough of any other unit: for the `closed_gop` of an MPEG group header, and for
/// the type of an H.264 slice in pictures of up to 8190 macroblocks. (Of larger ones, it is enough
/// to know the type of the first slice.)
const HEADER: usize = 5;

/// Whose units are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    H264,
    H265,
    MpegVideo,
}

impl Syntax {
    /// How to read a stream of this coding; `None` if that is not known.
    pub(super) const fn of(coding: Coding) -> Option<Self> {
        match coding {
            Coding::H264 => Some(Syntax::H264),
            Coding::H265 => Some(Syntax::H265),
            Coding::MpegVideo => Some(Syntax::MpegVideo),
            _ => None,
        }
    }

    /// What a unit says, given from its header on.
    pub(super) fn classify(self, data: &[u8]) -> Unit {
        match self {
            Syntax::H264 => h264::classify(data),
            Syntax::H265 => h265::classify(data),
            Syntax::MpegVideo => mpeg_video::classify(data),
        }
    }

    /// How many bytes of a unit with this header are worth waiting for.
    const fn enough(self, header: u8) -> usize {
        let sei = match self {
            Syntax::H264 => h264::is_sei(header),
            Syntax::H265 => h265::is_sei(header),
            Syntax::MpegVideo => false,
        };
        if sei { LOOKED_AT } else { HEADER }
    }
}

/// Finds units, and tells each of them once, as soon as enough of it is there.
#[derive(Debug)]
pub(super) struct UnitScanner {
    /// Zeros at the end of what was seen, at most 2.
    zeros: usize,
    /// The start of the unit that is being collected.
    unit: [u8; LOOKED_AT],
    length: usize,
    collecting: bool,
}

impl UnitScanner {
    pub(super) const fn new() -> Self {
        UnitScanner { zeros: 0, unit: [0; LOOKED_AT], length: 0, collecting: false }
    }

    /// Forgets what was seen, as after a loss.
    pub(super) fn reset(&mut self) {
        *self = UnitScanner::new();
    }

    /// The stream ends here, or is continued elsewhere: tells what there is of the last unit.
    pub(super) fn end(&mut self, syntax: Syntax, tell: &mut impl FnMut(Unit)) {
        if self.collecting && self.length > 0 {
            tell(syntax.classify(&self.unit[..self.length]));
        }
        self.reset();
    }

    /// Reads the next bytes.
    pub(super) fn push(&mut self, syntax: Syntax, mut data: &[u8], tell: &mut impl FnMut(Unit)) {
        // A start code that began in what came before.
        let over = match (self.zeros, data) {
            (2.., [1, ..]) => Some(1),
            (2.., [0, 1, ..]) | (1, [0, 1, ..]) => Some(2),
            _ => None,
        };
        if let Some(behind) = over {
            self.begin(syntax, tell);
            data = &data[behind..];
        }
        while let Some(behind) = after_start_code(data) {
            self.collect(syntax, &data[..behind - 3], tell);
            self.begin(syntax, tell);
            data = &data[behind..];
        }
        self.collect(syntax, data, tell);
        self.zeros = match data {
            [.., 0, 0] => 2,
            [0] if self.zeros > 0 => 2,
            [.., 0] => 1,
            [] => self.zeros,
            _ => 0,
        };
    }

    /// A start code stands here.
    fn begin(&mut self, syntax: Syntax, tell: &mut impl FnMut(Unit)) {
        self.end(syntax, tell);
        self.collecting = true;
    }

    fn collect(&mut self, syntax: Syntax, data: &[u8], tell: &mut impl FnMut(Unit)) {
        if !self.collecting {
            return;
        }
        let Some(&header) = self.unit[..self.length].first().or(data.first()) else { return };
        let enough = syntax.enough(header);
        let taken = data.len().min(enough - self.length);
        self.unit[self.length..self.length + taken].copy_from_slice(&data[..taken]);
        self.length += taken;
        if self.length == enough {
            self.collecting = false;
            tell(syntax.classify(&self.unit[..self.length]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delimiter, parameter sets, a long SEI with a recovery point behind another message, an
    /// intra slice, a slice that ends with zeros.
    fn stream() -> Vec<u8> {
        let mut data = vec![0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 1, 0x68, 4, 0, 0, 0, 1];
        data.extend([6, 4, 40]);
        data.extend([0x55; 40]);
        data.extend([6, 1, 0x84, 0x80, 0, 0, 1, 0x65, 0x88, 0x84]);
        data.extend([7; 300]);
        data.extend([0, 0, 1, 0x41, 0x9a, 0x24, 0, 0, 0, 0, 0, 1, 0x09]);
        data
    }

    fn told(pieces: &[&[u8]]) -> Vec<Unit> {
        let mut scanner = UnitScanner::new();
        let mut units = Vec::new();
        for piece in pieces {
            scanner.push(Syntax::H264, piece, &mut |unit| units.push(unit));
        }
        scanner.end(Syntax::H264, &mut |unit| units.push(unit));
        units
    }

    #[test]
    fn every_unit_is_told_once() {
        let units = told(&[&stream()]);
        assert_eq!(units[..3], [Unit::Delimiter, Unit::PARAMETERS, Unit::PARAMETERS]);
        assert_eq!(units[3], Unit::Sei { recovery: true });
        assert!(matches!(units[4], Unit::Slice(s) if s.entry == outflow_media::codec::Entry::Closed));
        assert!(matches!(units[5], Unit::Slice(s) if s.starts_picture && s.reference));
        assert_eq!(units[6..], [Unit::Delimiter]);
    }

    #[test]
    fn how_the_stream_is_cut_makes_no_difference() {
        let stream = stream();
        let whole = told(&[&stream]);
        for size in 1..20 {
            let pieces: Vec<_> = stream.chunks(size).collect();
            assert_eq!(told(&pieces), whole, "pieces of {size}");
        }
        for at in 0..stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(told(&[head, &[], tail]), whole, "cut at {at}");
        }
    }

    #[test]
    fn what_was_before_a_loss_is_forgotten() {
        let mut scanner = UnitScanner::new();
        let mut units = 0;
        scanner.push(Syntax::H264, &[1, 0, 0, 1, 0x65], &mut |_| units += 1);
        scanner.reset();
        scanner.push(Syntax::H264, &[7; 90], &mut |_| units += 1);
        scanner.push(Syntax::H264, &[0, 0], &mut |_| units += 1);
        scanner.reset();
        scanner.push(Syntax::H264, &[1, 0x65, 0x88, 0x84], &mut |_| units += 1);
        scanner.end(Syntax::H264, &mut |_| units += 1);
        assert_eq!(units, 0);
    }
}
