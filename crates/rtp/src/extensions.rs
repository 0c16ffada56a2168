//! Header extensions of RTP (RFC 8285 section 4).

/// Element ids that end a list or mean nothing.
const PADDING: u8 = 0;
const STOP: u8 = 15;

/// One element of a header extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension<'a> {
    /// The local identifier, as `a=extmap` binds it.
    pub id: u8,
    /// Its value.
    pub data: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OneByte,
    TwoBytes,
}

/// Iterates over the elements; it stops at the first one that does not fit.
#[derive(Debug, Clone)]
pub struct Extensions<'a> {
    form: Form,
    rest: &'a [u8],
}

impl<'a> Extensions<'a> {
    pub(super) const fn none() -> Self {
        Extensions { form: Form::OneByte, rest: &[] }
    }

    /// `profile` is the first half of the extension's first word.
    pub(super) const fn new(profile: u16, data: &'a [u8]) -> Self {
        match profile {
            0xbede => Extensions { form: Form::OneByte, rest: data },
            0x1000..=0x100f => Extensions { form: Form::TwoBytes, rest: data },
            _ => Extensions::none(),
        }
    }

    /// Bytes behind the element that was answered last.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    fn header(&self) -> Option<(u8, usize, &'a [u8])> {
        match (self.form, self.rest) {
            (Form::OneByte, [head, rest @ ..]) => Some((head >> 4, usize::from(head & 0x0f) + 1, rest)),
            (Form::TwoBytes, [id, length, rest @ ..]) => Some((*id, usize::from(*length), rest)),
            _ => None,
        }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    fn next(&mut self) -> Option<Extension<'a>> {
        while let [PADDING, rest @ ..] = self.rest {
            self.rest = rest;
        }
        let read = self.header().and_then(|(id, length, rest)| {
            let stop = self.form == Form::OneByte && (id == STOP || id == PADDING);
            (!stop && length <= rest.len()).then(|| (id, rest.split_at(length)))
        });
        let Some((id, (data, rest))) = read else {
            self.rest = &[];
            return None;
        };
        self.rest = rest;
        Some(Extension { id, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(profile: u16, data: &[u8]) -> Vec<(u8, Vec<u8>)> {
        Extensions::new(profile, data).map(|e| (e.id, e.data.to_vec())).collect()
    }

    #[test]
    fn one_byte_elements_with_padding_between() {
        let data = [0x10, 0xaa, 0, 0, 0x21, 0xbb, 0xcc, 0];
        assert_eq!(read(0xbede, &data), [(1, vec![0xaa]), (2, vec![0xbb, 0xcc])]);
    }

    #[test]
    fn id_fifteen_stops() {
        assert_eq!(read(0xbede, &[0x10, 0xaa, 0xf0, 0xbb, 0x10, 0xcc]), [(1, vec![0xaa])]);
    }

    #[test]
    fn two_byte_elements_may_be_empty() {
        assert_eq!(read(0x1000, &[1, 0, 0, 15, 2, 7, 8, 0]), [(1, vec![]), (15, vec![7, 8])]);
    }

    #[test]
    fn what_does_not_fit_and_other_profiles_are_left_out() {
        assert_eq!(read(0xbede, &[0x10, 0xaa, 0x23, 1, 2]), [(1, vec![0xaa])]);
        assert_eq!(read(0x1000, &[1]), []);
        assert_eq!(read(0xabcd, &[0x10, 0xaa]), []);
    }
}
