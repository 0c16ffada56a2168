//! The byte stream of NAL units (ITU-T H.264 and H.265 annex B), which MPEG video has in common: start codes.

/// The position behind the first `00 00 01` in `data`.
///
/// Most blocks of coded video have no `01` at all, which is found out for many bytes at once.
pub fn after_start_code(data: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    for (index, block) in data.chunks(BLOCK).enumerate() {
        if !block.iter().fold(false, |found, byte| found | (*byte == 1)) {
            continue;
        }
        let mut ones =
            block.iter().enumerate().filter(|(_, byte)| **byte == 1).map(|(at, _)| index * BLOCK + at);
        let is_prefixed = |at: &usize| data[..*at].ends_with(&[0, 0]);
        if let Some(at) = ones.find(is_prefixed) {
            return Some(at + 1);
        }
    }
    None
}

/// The units of a byte stream, each from its header on, without the zeros that may stand behind it. What comes before the
/// first start code is none.
#[derive(Debug, Clone)]
pub struct Units<'a> {
    /// What stands behind the start code of the next unit.
    rest: Option<&'a [u8]>,
}

impl<'a> Units<'a> {
    /// Those in `data`.
    pub fn of(data: &'a [u8]) -> Self {
        Units { rest: after_start_code(data).map(|at| &data[at..]) }
    }
}

impl<'a> Iterator for Units<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let rest = self.rest?;
            let next = after_start_code(rest);
            let unit = next.map_or(rest, |at| &rest[..at - 3]);
            self.rest = next.map(|at| &rest[at..]);
            // A unit ends with a bit that is set; cabac_zero_words are of no use to a decoder either.
            let length = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if length > 0 {
                return Some(&unit[..length]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_codes_are_found_wherever_they_stand() {
        for at in 0..100 {
            let mut data = vec![0xff; at];
            data.extend([0, 0, 1, 2, 3]);
            assert_eq!(after_start_code(&data), Some(at + 3));
            data.truncate(at + 2);
            assert_eq!(after_start_code(&data), None);
        }
        assert_eq!(after_start_code(&[1, 0, 1, 0, 0, 2, 0, 0, 0, 1]), Some(10));
        assert_eq!(after_start_code(&[]), None);
    }

    #[test]
    fn units_stand_between_start_codes_without_the_zeros_behind_them() {
        let stream = [7, 0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 0, 2, 0, 0, 0, 0, 1, 0, 0, 1, 0x65, 0, 0, 3, 0];
        let units: Vec<_> = Units::of(&stream).collect();
        assert_eq!(units, [&[0x67, 1][..], &[0x68, 0, 2], &[0x65, 0, 0, 3]]);
        for nothing in [&[][..], &[0x65, 1], &[0, 0, 1], &[0, 0, 1, 0, 0]] {
            assert_eq!(Units::of(nothing).next(), None, "{nothing:?}");
        }
    }
}
