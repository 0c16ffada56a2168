//! What ports carry.

use core::fmt;

use outflow_media::image::Pixels;
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
    /// RTP of RFC 4175, red, green and blue.
    RawRgb = "raw RGB video in RTP",
    /// RTP of RFC 4175, YCbCr-4:2:2.
    RawUyvy = "raw 4:2:2 video in RTP",
    /// RTP of RFC 4175 whose pixels lie otherwise.
    RawOther = "raw video of other pixels in RTP",
    /// RTP of RFC 5371.
    Jpeg2000 = "JPEG 2000 in RTP",
    /// RTP of anything else.
    OtherRtp = "other RTP",
    /// Encrypted RTP (RFC 3711).
    Srtp = "SRTP",
    /// A PPM image a packet.
    Ppm = "PPM images",
    /// A PGM image a packet, which is gray.
    Pgm = "PGM images",
    /// Opaque datagrams: nothing can be done to them.
    Data = "opaque datagrams",
}

/// A set of [`Content`]: what a port takes, or what may come out of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contents(u16);

impl Contents {
    /// Nothing.
    pub const NONE: Contents = Contents(0);
    /// Anything that elements know.
    pub const ANY: Contents = Contents((1 << Content::ALL.len()) - 1).without(Contents::of(&[Content::Data]));
    /// All RTP whose payload can be read.
    pub const RTP: Contents = Contents::of(&[
        Content::H264,
        Content::H265,
        Content::MpegVideo,
        Content::Audio,
        Content::RawRgb,
        Content::RawUyvy,
        Content::RawOther,
        Content::Jpeg2000,
        Content::OtherRtp,
    ]);
    /// All whose frames are told apart packet by packet.
    pub const FRAMES: Contents = Contents::ANY.without(Contents::of(&[Content::Ts, Content::Srtp]));
    /// Raw video whose pixels can be worked on.
    pub const RAW_VIDEO: Contents = Contents::of(&[Content::RawRgb, Content::RawUyvy]);
    /// An image a packet.
    pub const PNM: Contents = Contents::of(&[Content::Ppm, Content::Pgm]);
    /// Uncompressed images.
    pub const IMAGES: Contents = Contents::RAW_VIDEO.with(Contents::PNM);
    /// What is told by one name for all of it.
    const GROUPS: [(Contents, &str); 3] =
        [(Contents::RTP, "RTP"), (Contents::RAW_VIDEO, "raw video in RTP"), (Contents::PNM, "PPM images")];

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
            Format::Images => Contents::PNM,
            Format::Data => Contents::of(&[Content::Data]),
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

    /// What is in this one alone.
    pub const fn without(self, other: Contents) -> Self {
        Contents(self.0 & !other.0)
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
        for (group, name) in Contents::GROUPS {
            if left.and(group) == group {
                words.push(name);
                left = left.without(group);
            }
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
        Codec::RawVideo(Some(shape)) => match shape.pixels {
            Pixels::Rgb => Content::RawRgb,
            Pixels::Uyvy => Content::RawUyvy,
            Pixels::Gray => Content::RawOther,
        },
        Codec::RawVideo(None) => Content::RawOther,
        Codec::Jpeg2000 => Content::Jpeg2000,
        Codec::Srtp { .. } => Content::Srtp,
        Codec::Av1 | Codec::Vp9 | Codec::Vp8 | Codec::Other { video: true } => Content::OtherRtp,
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
        assert_eq!(
            Contents::of(&[Content::RawRgb, Content::Pgm]).to_string(),
            "raw RGB video in RTP or PGM images"
        );
        let most = Contents::RTP.with(Contents::of(&[Content::Ts])).with(Contents::PNM);
        assert_eq!(most.to_string(), "RTP, PPM images or MPEG-TS");
    }
}
