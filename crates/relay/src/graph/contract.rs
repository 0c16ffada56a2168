//! What ports carry, and what fits what.

use core::fmt;

use outflow_media::{Codec, Format};

macro_rules! contents {
    ($($(#[$doc:meta])* $variant:ident = $words:literal),+ $(,)?) => {
        /// What a packet between two elements can be.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Content {
            $($(#[$doc])* $variant,)+
        }

        impl Content {
            /// Everything there is.
            pub const ALL: &[Content] = &[$(Content::$variant,)+];

            /// In words.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Content::$variant => $words,)+
                }
            }
        }
    };
}

contents! {
    /// Transport stream packets (ISO/IEC 13818-1).
    Ts = "MPEG-TS",
    /// RTP of RFC 6184.
    H264 = "H.264 in RTP",
    /// RTP of RFC 7798.
    H265 = "H.265 in RTP",
    /// RTP of RFC 2250, section 3.
    MpegVideo = "MPEG-2 video in RTP",
    /// RTP of any audio codec.
    Audio = "audio in RTP",
    /// RTP of RFC 4175.
    RawVideo = "raw video in RTP",
    /// RTP of RFC 5371.
    Jpeg2000 = "JPEG 2000 in RTP",
    /// RTP of anything else.
    OtherRtp = "other RTP",
    /// Encrypted RTP (RFC 3711).
    Srtp = "SRTP",
    /// A PPM or PGM image a packet.
    Ppm = "PPM images",
}

/// A set of [`Content`]: what a port takes, or what may come out of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contents(u16);

impl Contents {
    /// Nothing.
    pub const NONE: Contents = Contents(0);
    /// Anything.
    pub const ANY: Contents = Contents((1 << Content::ALL.len()) - 1);
    /// All RTP whose payload can be read.
    pub const RTP: Contents = Contents::of(&[
        Content::H264,
        Content::H265,
        Content::MpegVideo,
        Content::Audio,
        Content::RawVideo,
        Content::Jpeg2000,
        Content::OtherRtp,
    ]);
    /// Uncompressed images.
    pub const IMAGES: Contents = Contents::of(&[Content::RawVideo, Content::Ppm]);

    /// The set of these.
    pub const fn of(list: &[Content]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < list.len() {
            set |= 1 << list[index] as u16;
            index += 1;
        }
        Contents(set)
    }

    /// What a stream of this format carries, all its tracks.
    pub fn of_format(format: &Format) -> Self {
        match format {
            Format::Ts => Contents::of(&[Content::Ts]),
            Format::Images => Contents::of(&[Content::Ppm]),
            Format::Rtp(tracks) => {
                let all = tracks.iter().map(|track| Contents::of(&[content(&track.codec)]));
                all.fold(Contents::NONE, Contents::with)
            }
        }
    }

    /// Both together.
    pub const fn with(self, other: Contents) -> Self {
        Contents(self.0 | other.0)
    }

    /// What is in both.
    pub const fn and(self, other: Contents) -> Self {
        Contents(self.0 & other.0)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is in it.
    pub fn iter(self) -> impl Iterator<Item = Content> {
        Content::ALL.iter().copied().filter(move |content| self.0 >> *content as u16 & 1 == 1)
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Contents::ANY {
            return f.write_str("anything");
        }
        let mut left = *self;
        let mut words = Vec::new();
        if left.and(Contents::RTP) == Contents::RTP {
            words.push("RTP");
            left = Contents(left.0 & !Contents::RTP.0);
        }
        words.extend(left.iter().map(Content::as_str));
        match words.split_last() {
            None => f.write_str("nothing"),
            Some((last, [])) => f.write_str(last),
            Some((last, rest)) => write!(f, "{} or {last}", rest.join(", ")),
        }
    }
}

fn content(codec: &Codec) -> Content {
    match codec {
        Codec::H264 { .. } => Content::H264,
        Codec::H265 { .. } => Content::H265,
        Codec::MpegVideo => Content::MpegVideo,
        Codec::Aac { .. } | Codec::Opus | Codec::MpegAudio | Codec::Other { video: false } => Content::Audio,
        Codec::Mp2t => Content::Ts,
        Codec::RawVideo(_) => Content::RawVideo,
        Codec::Jpeg2000 => Content::Jpeg2000,
        Codec::Srtp { .. } => Content::Srtp,
        Codec::Other { video: true } => Content::OtherRtp,
    }
}

/// What an element takes and gives.
///
/// Of a stream with several tracks, an element works on those that it takes and lets the others pass;
/// there must be one that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// What it can work on.
    pub takes: Contents,
    /// What comes out of it.
    pub gives: Gives,
}

/// What comes out of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// The same as went in.
    Same,
    /// This, whatever went in.
    Only(Content),
    /// One of these: which, is known when the element is told what comes in.
    OneOf(Contents),
}

impl Contract {
    /// What may come out if one of `worlds` goes in; nothing if none of them fits.
    pub fn through(self, worlds: Contents) -> Contents {
        let fit = worlds.and(self.takes);
        match self.gives {
            _ if fit.is_empty() => Contents::NONE,
            Gives::Same => fit,
            Gives::Only(content) => Contents::of(&[content]),
            Gives::OneOf(contents) => contents,
        }
    }
}

impl fmt::Display for Gives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gives::Same => f.write_str("the same"),
            Gives::Only(content) => f.write_str(content.as_str()),
            Gives::OneOf(contents) => contents.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_said_in_words() {
        assert_eq!(Contents::ANY.to_string(), "anything");
        assert_eq!(Contents::NONE.to_string(), "nothing");
        assert_eq!(Contents::RTP.to_string(), "RTP");
        assert_eq!(Contents::IMAGES.to_string(), "raw video in RTP or PPM images");
        let most = Contents::RTP.with(Contents::of(&[Content::Ts, Content::Ppm]));
        assert_eq!(most.to_string(), "RTP, MPEG-TS or PPM images");
    }

    #[test]
    fn what_comes_out_is_what_fits_or_what_is_made_of_it() {
        let gray = Contract { takes: Contents::IMAGES, gives: Gives::Same };
        assert_eq!(gray.through(Contents::ANY), Contents::IMAGES);
        assert!(gray.through(Contents::of(&[Content::Ts, Content::H264])).is_empty());
        let mux = Contract { takes: Contents::RTP, gives: Gives::Only(Content::Ts) };
        assert_eq!(mux.through(Contents::ANY), Contents::of(&[Content::Ts]));
        assert!(mux.through(Contents::of(&[Content::Ppm])).is_empty());
        let srtp = Contents::of(&[Content::Srtp]);
        let decrypt = Contract { takes: srtp, gives: Gives::OneOf(Contents::RTP) };
        assert_eq!(decrypt.through(Contents::ANY), Contents::RTP);
    }
}
