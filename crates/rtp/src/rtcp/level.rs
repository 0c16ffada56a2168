//! Which quality a receiver wants, and what each costs: application-defined packets (RFC 3550 section 6.7)
//! named `OFLV`, sent on the ports of the session.
//!
//! A receiver asks (subtype 1), and asks again until it is answered (subtype 2). It also asks when nothing
//! has changed, as often as it reports: so a relay that was restarted knows what its receivers want.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+---------------+---------------+
//! |       number of request       |     level     |    levels     |   levels: 0 in requests
//! +-------------------------------+---------------+---------------+
//! |                  SSRC of what is received                     |
//! +---------------------------------------------------------------+
//! |     bytes a second of level 1, of level 2, …  (answers)       |
//! ```

use rtcp_types::App;

use outflow_media::Malformed;

use super::compound::{empty, written};

const NAME: &str = "OFLV";
const REQUEST: u8 = 1;
const ANSWER: u8 = 2;
const HEAD: usize = 8;

/// A receiver asks for a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelRequest {
    /// Goes up with every request that differs from the one before, wrapping.
    pub number: u16,
    /// The level, 1 is the best.
    pub level: u8,
    /// The source that it receives: a peer that does not receive it does not know that number.
    pub media: u32,
}

/// What it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelAnswer {
    /// That of the request.
    pub number: u16,
    /// The level that it gets from the next place on where it can change.
    pub level: u8,
    /// The source.
    pub media: u32,
    /// Bytes a second of each level, the best first; at most 255.
    pub rates: Vec<u32>,
}

/// What an application-defined packet says of levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LevelMessage {
    /// A receiver asks.
    Request(LevelRequest),
    /// It is answered.
    Answer(LevelAnswer),
}

impl LevelMessage {
    /// Reads a packet's name, subtype and data; `None` if it is about something else.
    ///
    /// # Errors
    /// It is about levels, and not as it should be.
    pub(super) fn parse(name: [u8; 4], subtype: u8, data: &[u8]) -> Result<Option<Self>, Malformed> {
        if name != *NAME.as_bytes() {
            return Ok(None);
        }
        let wrong = |reason| Malformed { format: "RTCP level", offset: data.len().min(HEAD), reason };
        let (head, rates) = data.split_first_chunk::<HEAD>().ok_or(wrong("shorter than its head"))?;
        let [n0, n1, level, levels, media @ ..] = *head;
        let (number, media) = (u16::from_be_bytes([n0, n1]), u32::from_be_bytes(media));
        let (rates, rest) = rates.as_chunks::<4>();
        if rates.len() != usize::from(levels) || !rest.is_empty() {
            return Err(wrong("not as many rates as levels"));
        }
        match subtype {
            REQUEST if rates.is_empty() => {
                Ok(Some(LevelMessage::Request(LevelRequest { number, level, media })))
            }
            ANSWER => {
                let rates = rates.iter().map(|rate| u32::from_be_bytes(*rate)).collect();
                Ok(Some(LevelMessage::Answer(LevelAnswer { number, level, media, rates })))
            }
            _ => Err(wrong("neither a request nor an answer")),
        }
    }

    /// A compound packet of the sender with this SSRC: an empty report, its name, and the message.
    pub fn emit(&self, ssrc: u32, cname: &str) -> Vec<u8> {
        let (subtype, number, level, media, rates) = match self {
            LevelMessage::Request(LevelRequest { number, level, media }) => {
                (REQUEST, number, level, media, &[][..])
            }
            LevelMessage::Answer(LevelAnswer { number, level, media, rates }) => {
                (ANSWER, number, level, media, &rates[..rates.len().min(usize::from(u8::MAX))])
            }
        };
        let mut data = Vec::with_capacity(HEAD + 4 * rates.len());
        data.extend_from_slice(&number.to_be_bytes());
        data.extend_from_slice(&[*level, rates.len() as u8]);
        data.extend_from_slice(&media.to_be_bytes());
        rates.iter().for_each(|rate| data.extend_from_slice(&rate.to_be_bytes()));
        let message = App::builder(ssrc, NAME).subtype(subtype).data(&data);
        written(empty(ssrc, cname).add_packet(message))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Report, read};
    use super::*;

    fn messages(bytes: &[u8]) -> Vec<(u32, LevelMessage)> {
        let mut found = Vec::new();
        let parsed = read(bytes, |report| {
            if let Report::Level { from, message } = report {
                found.push((from, message));
            }
        });
        parsed.expect("RTCP");
        found
    }

    #[test]
    fn what_is_asked_and_answered_comes_through() {
        let request = LevelRequest { number: 65_535, level: 33, media: 0xdead_beef };
        let rates = (0..33).map(|level| 1_000_000 - level * 1000).collect();
        let answer = LevelAnswer { number: 65_535, level: 33, media: 0xdead_beef, rates };
        for message in [LevelMessage::Request(request), LevelMessage::Answer(answer)] {
            assert_eq!(messages(&message.emit(7, "x")), [(7, message)]);
        }
    }

    #[test]
    fn what_is_cut_off_or_contradicts_itself_is_no_message() {
        let parse = |subtype, data: &[u8]| LevelMessage::parse(*b"OFLV", subtype, data);
        assert_eq!(LevelMessage::parse(*b"qtsi", 1, &[]), Ok(None), "of somebody else");
        let head = [0, 1, 3, 0, 1, 2, 3, 4];
        assert!(matches!(parse(1, &head), Ok(Some(LevelMessage::Request(_)))));
        assert!(parse(1, &head[..7]).is_err() && parse(3, &head).is_err());
        let with = |levels: u8, rates: usize| [&[0, 1, 3, levels, 1, 2, 3, 4][..], &vec![0; rates]].concat();
        assert!(
            parse(2, &with(2, 8)).is_ok()
                && parse(2, &with(2, 7)).is_err()
                && parse(2, &with(2, 12)).is_err()
        );
        assert!(parse(1, &with(1, 4)).is_err(), "requests have no rates");
    }
}
