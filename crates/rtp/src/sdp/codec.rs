//! Codecs as descriptions name them.

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use bytes::Bytes;
use outflow_media::codec::{h264, h265};
use outflow_media::format::Codec;
use outflow_media::image::{Pixels, Shape};

use crate::fmtp::get as parameter;

/// Base64 as cameras write it: with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Name, clock rate and channels of the static payload types (RFC 3551 section 6).
pub(super) const fn static_type(payload_type: u8) -> Option<(&'static str, u32, u8)> {
    Some(match payload_type {
        0 => ("PCMU", 8_000, 1),
        3 => ("GSM", 8_000, 1),
        8 => ("PCMA", 8_000, 1),
        9 => ("G722", 8_000, 1),
        10 => ("L16", 44_100, 2),
        11 => ("L16", 44_100, 1),
        14 => ("MPA", 90_000, 0),
        26 => ("JPEG", 90_000, 0),
        32 => ("MPV", 90_000, 0),
        33 => ("MP2T", 90_000, 0),
        34 => ("H263", 90_000, 0),
        _ => return None,
    })
}

/// The codec that a media is described with: its encoding name, its `a=fmtp` parameters, and whether it
/// is video.
pub fn codec(encoding: &str, fmtp: &str, video: bool) -> Codec {
    let other = Codec::Other { video };
    match encoding.to_ascii_uppercase().as_str() {
        "H264" => h264(fmtp),
        "H265" | "HEVC" => h265(fmtp),
        "MPV" => Codec::MpegVideo,
        "MPA" => Codec::MpegAudio,
        "MP2T" => Codec::Mp2t,
        "OPUS" => Codec::Opus,
        "RAW" if video => Codec::RawVideo(raw_video(fmtp)),
        "JPEG2000" => Codec::Jpeg2000,
        "AV1" => Codec::Av1,
        "VP9" => Codec::Vp9,
        "VP8" => Codec::Vp8,
        "MPEG4-GENERIC" => aac(fmtp).unwrap_or(other),
        _ => other,
    }
}

/// RFC 6184 section 8.1.
fn h264(fmtp: &str) -> Codec {
    let sets: Vec<Bytes> = sets(fmtp, "sprop-parameter-sets").collect();
    let find = |wanted: fn(u8) -> bool| sets.iter().find(|s| s.first().is_some_and(|b| wanted(*b))).cloned();
    Codec::H264 { sps: find(h264::is_sps), pps: find(h264::is_pps) }
}

/// RFC 7798 section 7.1.
fn h265(fmtp: &str) -> Codec {
    let find = |name: &str, wanted: fn(u8) -> bool| {
        sets(fmtp, name).find(|set| set.first().is_some_and(|b| wanted(*b)))
    };
    Codec::H265 {
        vps: find("sprop-vps", h265::is_vps),
        sps: find("sprop-sps", h265::is_sps),
        pps: find("sprop-pps", h265::is_pps),
    }
}

/// Parameter sets in base64 with commas between; what is no base64 is left out.
fn sets<'a>(fmtp: &'a str, name: &str) -> impl Iterator<Item = Bytes> + 'a {
    let value = parameter(fmtp, name).unwrap_or("");
    value.split(',').filter_map(|set| LENIENT.decode(set.trim()).ok()).map(Bytes::from)
}

/// RFC 3640 section 4.1: AAC-hbr, or any mode that has the same payload with other lengths.
fn aac(fmtp: &str) -> Option<Codec> {
    // Some cameras leave the mode out, but not the lengths.
    let mode = parameter(fmtp, "mode").or(parameter(fmtp, "sizelength").map(|_| "AAC-hbr"))?;
    if !mode.eq_ignore_ascii_case("AAC-hbr") && !mode.eq_ignore_ascii_case("AAC-lbr") {
        return None;
    }
    let length = |name, default: u8| match parameter(fmtp, name) {
        None => Some(default),
        // Longer fields would not fit what they count.
        Some(value) => value.parse::<u8>().ok().filter(|bits| *bits <= 16),
    };
    let narrow = mode.eq_ignore_ascii_case("AAC-lbr");
    let (size, index) = if narrow { (6, 2) } else { (13, 3) };
    Some(Codec::Aac {
        config: hex(parameter(fmtp, "config").unwrap_or(""))?,
        size_length: length("sizelength", size)?,
        index_length: length("indexlength", index)?,
        index_delta_length: length("indexdeltalength", index)?,
    })
}

/// RFC 4175 section 6.1: sizes and samplings that can be worked on.
fn raw_video(fmtp: &str) -> Option<Shape> {
    let pixels = match (parameter(fmtp, "sampling")?, parameter(fmtp, "depth")?) {
        ("RGB", "8") => Pixels::Rgb,
        ("YCbCr-4:2:2", "8") => Pixels::Uyvy,
        _ => return None,
    };
    // RFC 4175 section 6.1: integers between 1 and 32767; interlaced frames come by fields.
    let side = |name| parameter(fmtp, name)?.parse().ok().filter(|side| (1..=32_767).contains(side));
    let is_interlaced = fmtp.split(';').any(|parameter| parameter.trim().eq_ignore_ascii_case("interlace"));
    if is_interlaced { None } else { Some(Shape { pixels, width: side("width")?, height: side("height")? }) }
}

/// Bytes from hexadecimal digits, as `config=` has them; an odd last digit is left out.
fn hex(digits: &str) -> Option<Bytes> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let digits = digits.trim_matches('"').as_bytes();
    let pairs = digits.chunks_exact(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h264_parameter_sets_are_told_by_their_type_and_not_their_place() {
        let swapped = "packetization-mode=1; sprop-parameter-sets=aOuPIA==,Z2QAHqzZQKAv+XA=";
        let Codec::H264 { sps: Some(sps), pps: Some(pps) } = codec("h264", swapped, true) else {
            panic!("parameter sets are missing")
        };
        assert_eq!((sps[0], pps[..].len()), (0x67, 4));
        // Without padding, with blanks, with a third set, with garbage.
        for fmtp in
            ["sprop-parameter-sets= Z2QAHqzZQKAv+XA , aOuPIA", "sprop-parameter-sets=!,Z2QAHqzZQKAv+XA="]
        {
            assert!(matches!(codec("H264", fmtp, true), Codec::H264 { sps: Some(_), .. }), "{fmtp}");
        }
        assert_eq!(codec("H264", "", true), Codec::H264 { sps: None, pps: None });
    }

    #[test]
    fn raw_video_has_a_shape_if_it_can_be_worked_on() {
        let fmtp = "sampling=YCbCr-4:2:2; width=1280; height=720; depth=8; colorimetry=BT709-2";
        let shape = Shape { pixels: Pixels::Uyvy, width: 1280, height: 720 };
        assert_eq!(codec("raw", fmtp, true), Codec::RawVideo(Some(shape)));
        for other in [
            "sampling=YCbCr-4:2:0; width=1280; height=720; depth=8",
            "sampling=RGB; width=1280; height=720; depth=10",
            "sampling=RGB; width=0; height=720; depth=8",
            "sampling=RGB; width=1280; height=720; depth=8; interlace",
            "",
        ] {
            assert_eq!(codec("raw", other, true), Codec::RawVideo(None), "{other}");
        }
    }

    #[test]
    fn aac_needs_a_mode_that_is_known() {
        let fmtp =
            "profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3; config=1190";
        let expected = Codec::Aac {
            config: Bytes::from_static(&[0x11, 0x90]),
            size_length: 13,
            index_length: 3,
            index_delta_length: 3,
        };
        assert_eq!(codec("mpeg4-generic", fmtp, false), expected);
        let other = Codec::Other { video: false };
        assert_eq!(codec("mpeg4-generic", "SizeLength=13; indexLength=3; config=1190", false), expected);
        assert_eq!(codec("mpeg4-generic", "mode=CELP-cbr", false), other);
        assert_eq!(codec("mpeg4-generic", "mode=AAC-hbr;sizelength=99", false), other);
        assert_eq!(codec("mpeg4-generic", "mode=AAC-hbr;config=xx", false), other);
    }
}
