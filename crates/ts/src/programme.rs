//! What a programme is made of, from its PMT.

use super::psi::{Descriptors, Pmt, PmtStream};
use crate::limits::PROGRAMME_STREAMS_MAX;

/// How an elementary stream is coded, as far as that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// ITU-T H.264.
    H264,
    /// ITU-T H.265.
    H265,
    /// MPEG-1 or MPEG-2 video.
    MpegVideo,
    /// Video of another kind, by its name.
    OtherVideo(&'static str),
    /// Audio, by its name.
    Audio(&'static str),
    /// Subtitles, splice points and whatever else, by its name.
    Data(&'static str),
}

impl Coding {
    /// Whether a picture comes out of it.
    pub const fn is_video(self) -> bool {
        matches!(self, Coding::H264 | Coding::H265 | Coding::MpegVideo | Coding::OtherVideo(_))
    }

    /// Whether sound comes out of it.
    pub const fn is_audio(self) -> bool {
        matches!(self, Coding::Audio(_))
    }

    /// Its name, as it is commonly written.
    pub const fn name(self) -> &'static str {
        match self {
            Coding::H264 => "H.264",
            Coding::H265 => "H.265",
            Coding::MpegVideo => "MPEG video",
            Coding::OtherVideo(name) | Coding::Audio(name) | Coding::Data(name) => name,
        }
    }

    /// From the stream type (table 2-34, ATSC A/53 part 3, SCTE 35), and for private data from
    /// the descriptors (ETSI EN 300 468 table 12, SMPTE registrations).
    fn of(stream: &PmtStream<'_>) -> Self {
        match stream.stream_type {
            0x01 | 0x02 => Coding::MpegVideo,
            0x1b => Coding::H264,
            0x24 => Coding::H265,
            0x10 => Coding::OtherVideo("MPEG-4 video"),
            0x21 => Coding::OtherVideo("JPEG 2000"),
            0x32 => Coding::OtherVideo("JPEG XS"),
            0x33 => Coding::OtherVideo("H.266"),
            0x42 | 0xd2 | 0xd4 => Coding::OtherVideo("AVS"),
            0xd1 => Coding::OtherVideo("Dirac"),
            0xea => Coding::OtherVideo("VC-1"),
            0x03 | 0x04 => Coding::Audio("MPEG audio"),
            0x0f => Coding::Audio("AAC"),
            0x11 | 0x1c => Coding::Audio("AAC without ADTS"),
            0x2d | 0x2e => Coding::Audio("MPEG-H audio"),
            0x81 => Coding::Audio("AC-3"),
            0x87 => Coding::Audio("E-AC-3"),
            0x15 => Coding::Data("metadata"),
            0x86 => Coding::Data("SCTE-35"),
            0x06 | 0x80.. => Coding::private(stream.descriptors),
            _ => Coding::Data("data"),
        }
    }

    fn private(descriptors: Descriptors<'_>) -> Self {
        let known = |(tag, content): (u8, &[u8])| match tag {
            0x05 => match content.get(..4)? {
                b"HEVC" => Some(Coding::H265),
                b"VC-1" => Some(Coding::OtherVideo("VC-1")),
                b"AV01" => Some(Coding::OtherVideo("AV1")),
                b"drac" => Some(Coding::OtherVideo("Dirac")),
                b"Opus" => Some(Coding::Audio("Opus")),
                b"AC-3" => Some(Coding::Audio("AC-3")),
                b"EAC3" => Some(Coding::Audio("E-AC-3")),
                b"AC-4" => Some(Coding::Audio("AC-4")),
                b"BSSD" => Some(Coding::Audio("SMPTE 302M")),
                b"DTS1" | b"DTS2" | b"DTS3" => Some(Coding::Audio("DTS")),
                b"KLVA" => Some(Coding::Data("KLV")),
                _ => None,
            },
            0x56 => Some(Coding::Data("teletext")),
            0x59 => Some(Coding::Data("DVB subtitles")),
            0x6a => Some(Coding::Audio("AC-3")),
            0x7a => Some(Coding::Audio("E-AC-3")),
            0x7b => Some(Coding::Audio("DTS")),
            0x7c => Some(Coding::Audio("AAC")),
            _ => None,
        };
        descriptors.into_iter().find_map(known).unwrap_or(Coding::Data("private data"))
    }
}

/// An elementary stream of a programme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementaryStream {
    /// Its packets.
    pub pid: u16,
    /// What the PMT says that it carries (table 2-34).
    pub stream_type: u8,
    /// How it is coded.
    pub coding: Coding,
}

/// A programme, as its PMT describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programme {
    /// Its number in the PAT.
    pub number: u16,
    /// The PID of its PMT.
    pub pmt_pid: u16,
    /// The PID of the packets with its clock.
    pub pcr_pid: u16,
    /// The version of its PMT, 5 bits.
    pub version: u8,
    /// Its elementary streams, as they stand in the PMT.
    pub streams: Vec<ElementaryStream>,
}

impl Programme {
    pub(super) fn new(pmt: &Pmt<'_>, pmt_pid: u16) -> Self {
        let stream = |s: PmtStream<'_>| ElementaryStream {
            pid: s.pid,
            stream_type: s.stream_type,
            coding: Coding::of(&s),
        };
        Programme {
            number: pmt.programme(),
            pmt_pid,
            pcr_pid: pmt.pcr_pid(),
            version: pmt.version(),
            streams: pmt.streams().take(PROGRAMME_STREAMS_MAX).map(stream).collect(),
        }
    }

    /// The first video stream.
    pub fn video(&self) -> Option<&ElementaryStream> {
        self.streams.iter().find(|s| s.coding.is_video())
    }

    /// Whether packets with this PID carry sound.
    pub fn is_audio(&self, pid: u16) -> bool {
        self.streams.iter().any(|stream| stream.pid == pid && stream.coding.is_audio())
    }

    /// The stream whose frames are those of the programme: the first video, or else the first
    /// audio, or else the first of all.
    pub fn main(&self) -> Option<&ElementaryStream> {
        let audio = || self.streams.iter().find(|s| s.coding.is_audio());
        self.video().or_else(audio).or_else(|| self.streams.first())
    }

    /// The names of the codecs, as the streams stand in the PMT.
    pub fn codec_names(&self) -> Vec<&'static str> {
        self.streams.iter().map(|s| s.coding.name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::psi::emit_pmt;

    fn programme(streams: &[(u8, u16, Vec<u8>)]) -> Programme {
        let section = emit_pmt(5, 9, 0x1ff, streams).unwrap();
        Programme::new(&Pmt::new_checked(&section).unwrap(), 0x20)
    }

    #[test]
    fn streams_are_named_by_type_and_descriptor() {
        let programme = programme(&[
            (0x0f, 1, vec![]),
            (0x06, 2, vec![0x0a, 1, 0, 5, 4, b'O', b'p', b'u', b's']),
            (0x06, 3, vec![0x6a, 1, 0]),
            (0x06, 4, vec![5, 200]),
            (0x24, 5, vec![]),
            (0x06, 6, vec![5, 4, b'H', b'E', b'V', b'C']),
        ]);
        let names = programme.codec_names();
        assert_eq!(names, ["AAC", "Opus", "AC-3", "private data", "H.265", "H.265"]);
        assert_eq!((programme.number, programme.version, programme.pcr_pid), (5, 9, 0x1ff));
        assert_eq!(programme.video().unwrap().pid, 5);
        assert_eq!(programme.main().unwrap().pid, 5);
    }

    #[test]
    fn sound_is_the_main_stream_where_there_is_no_picture() {
        assert_eq!(programme(&[(0x86, 1, vec![]), (0x0f, 2, vec![])]).main().unwrap().pid, 2);
        assert_eq!(programme(&[(0x86, 1, vec![])]).main().unwrap().pid, 1);
        assert_eq!(programme(&[]).main(), None);
    }
}
