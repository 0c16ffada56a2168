//! Payload structure of AV1 (RTP payload format for AV1, section 4).

use outflow_media::Malformed;
use outflow_media::codec::av1::leb128;

/// The first byte of each payload (section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AggregationHeader {
    /// The first element goes on with a unit that began in an earlier packet (Z).
    pub continues: bool,
    /// The last element goes on in the next packet (Y).
    pub goes_on: bool,
    /// How many elements there are, of which the last has no length in front; 0 if all have one (W).
    pub elements: u8,
    /// The packet is the first of a coded video sequence (N).
    pub new_sequence: bool,
}

impl AggregationHeader {
    /// Reads the header of a payload, and gives what is behind it.
    ///
    /// # Errors
    /// There is nothing.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (&byte, rest) = payload.split_first().ok_or(malformed(0, "empty"))?;
        let header = AggregationHeader {
            continues: byte & 0x80 != 0,
            goes_on: byte & 0x40 != 0,
            elements: byte >> 4 & 3,
            new_sequence: byte & 0x08 != 0,
        };
        Ok((header, rest))
    }

    /// The header as it goes on the wire.
    pub fn emit(self) -> u8 {
        u8::from(self.continues) << 7
            | u8::from(self.goes_on) << 6
            | (self.elements & 3) << 4
            | u8::from(self.new_sequence) << 3
    }

    /// The elements behind the header: units, or fragments of them.
    pub fn elements(self, data: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
        let (mut rest, mut index) = (data, 0);
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            index += 1;
            if index == u32::from(self.elements) {
                return Some(Ok(core::mem::take(&mut rest)));
            }
            let offset = 1 + data.len() - rest.len();
            let sized =
                leb128(rest).and_then(|(size, behind)| behind.split_at_checked(usize::try_from(size).ok()?));
            let element = sized.map(|(element, behind)| {
                rest = behind;
                element
            });
            if element.is_none() {
                rest = &[];
            }
            Some(element.ok_or(malformed(offset, "an element that goes on behind the end")))
        })
    }
}

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "AV1 payload", offset, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(payload: &[u8]) -> Vec<Result<&[u8], Malformed>> {
        let (header, data) = AggregationHeader::parse(payload).unwrap();
        assert_eq!(header.emit(), payload[0] & 0xf8, "but for what is reserved");
        header.elements(data).collect()
    }

    #[test]
    fn elements_have_lengths_but_for_the_last_of_those_that_are_counted() {
        assert_eq!(elements(&[0x00, 1, 7, 2, 8, 9]), [Ok(&[7][..]), Ok(&[8, 9])]);
        assert_eq!(elements(&[0x28, 1, 7, 8, 9]), [Ok(&[7][..]), Ok(&[8, 9])]);
        assert_eq!(elements(&[0xd0, 7, 8]), [Ok(&[7, 8][..])]);
        assert_eq!(elements(&[0x00]), []);
    }

    #[test]
    fn what_is_cut_off_is_refused_once() {
        assert!(AggregationHeader::parse(&[]).is_err());
        for payload in [&[0x00, 1, 7, 3, 8, 9][..], &[0x00, 1, 7, 0x80], &[0x20, 1, 7, 0xff, 0xff]] {
            let read = elements(payload);
            let is_counted = payload[0] != 0;
            assert_eq!((read.len(), read[1].is_err()), (2, !is_counted), "{payload:?}");
        }
        assert_eq!(elements(&[0x00, 9, 7])[0].unwrap_err().offset, 1);
    }
}
