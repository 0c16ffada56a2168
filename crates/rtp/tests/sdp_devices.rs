//! Descriptions as programs and devices write them, read and written again.

use std::net::{IpAddr, Ipv4Addr};

use outflow_media::{Codec, Format};
use outflow_rtp::limits::{SDP_BYTES_MAX, SDP_TRACKS_MAX};
use outflow_rtp::sdp;
use outflow_rtp::sdp::{Description, SdpError, Session};

fn read(text: &str) -> Description {
    sdp::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

const SESSION: Session<'static> = Session {
    name: "stage",
    id: 7,
    version: 1,
    origin: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    ttl: None,
    ports: &[],
    controls: true,
    levels: 0,
};

/// ffmpeg publishing over RTSP, H.264 and AAC.
const FFMPEG: &str = concat!(
    "v=0\r\n",
    "o=- 0 0 IN IP4 127.0.0.1\r\n",
    "s=No Name\r\n",
    "c=IN IP4 127.0.0.1\r\n",
    "t=0 0\r\n",
    "a=tool:libavformat 59.27.100\r\n",
    "m=video 0 RTP/AVP 96\r\n",
    "b=AS:2000\r\n",
    "a=rtpmap:96 H264/90000\r\n",
    "a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z2QAHqzZQKAv+XARAAADAAEAAAMAMg8WLZY=,aOvjyyLA; profile-level-id=64001E\r\n",
    "a=control:streamid=0\r\n",
    "m=audio 0 RTP/AVP 97\r\n",
    "b=AS:69\r\n",
    "a=rtpmap:97 MPEG4-GENERIC/44100/1\r\n",
    "a=fmtp:97 profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3; config=120856E500\r\n",
    "a=control:streamid=1\r\n",
);

/// ffmpeg sending to a multicast group: static types without a map.
const FFMPEG_STATIC: &str = concat!(
    "v=0\n",
    "o=- 0 0 IN IP4 192.0.2.9\n",
    "s=No Name\n",
    "t=0 0\n",
    "a=tool:libavformat 59.27.100\n",
    "m=video 5004 RTP/AVP 32\n",
    "c=IN IP4 239.1.2.3/16\n",
    "b=AS:200\n",
    "m=audio 5006 RTP/AVP 14\n",
    "c=IN IP4 239.1.2.4/16\n",
    "b=AS:384\n",
);

/// GStreamer's RTSP server, H.265 and Opus.
const GSTREAMER: &str = concat!(
    "v=0\r\n",
    "o=- 16253347285146243337 1 IN IP4 192.0.2.10\r\n",
    "s=Session streamed with GStreamer\r\n",
    "i=rtsp-server\r\n",
    "t=0 0\r\n",
    "a=tool:GStreamer\r\n",
    "a=type:broadcast\r\n",
    "a=control:*\r\n",
    "a=range:npt=now-\r\n",
    "m=video 0 RTP/AVP 96\r\n",
    "c=IN IP4 0.0.0.0\r\n",
    "a=rtpmap:96 H265/90000\r\n",
    "a=framerate:30\r\n",
    "a=fmtp:96 sprop-vps=QAEMAf//AWAAAAMAkAAAAwAAAwBalZgJ;sprop-sps=QgEBAWAAAAMAkAAAAwAAAwBaoAUCAeFllZpJMrwFoCAAAAMAIAAAAwPB;sprop-pps=RAHBcrRiQA==;profile-level-id=0\r\n",
    "a=control:stream=0\r\n",
    "a=ts-refclk:local\r\n",
    "a=mediaclk:sender\r\n",
    "m=audio 0 RTP/AVP 97\r\n",
    "c=IN IP4 0.0.0.0\r\n",
    "a=rtpmap:97 OPUS/48000/2\r\n",
    "a=fmtp:97 sprop-stereo=1\r\n",
    "a=control:stream=1\r\n",
);

/// In the style of Hikvision: a session control with a full URL, a header of its own, metadata.
const HIKVISION: &str = concat!(
    "v=0\r\n",
    "o=- 1109162014219182 1109162014219192 IN IP4 x.y.z.w\r\n",
    "s=Media Presentation\r\n",
    "e=NONE\r\n",
    "b=AS:5100\r\n",
    "t=0 0\r\n",
    "a=control:rtsp://192.0.2.64:554/Streaming/Channels/101/\r\n",
    "m=video 0 RTP/AVP 96\r\n",
    "c=IN IP4 0.0.0.0\r\n",
    "b=AS:5000\r\n",
    "a=recvonly\r\n",
    "a=x-dimensions:1920,1080\r\n",
    "a=control:rtsp://192.0.2.64:554/Streaming/Channels/101/trackID=1\r\n",
    "a=rtpmap:96 H264/90000\r\n",
    "a=fmtp:96 profile-level-id=420029; packetization-mode=1; sprop-parameter-sets=Z00AKpWoHgCJ+WEAAAcIAAFfkAQ=,aO48gA==\r\n",
    "m=audio 0 RTP/AVP 8\r\n",
    "c=IN IP4 0.0.0.0\r\n",
    "b=AS:50\r\n",
    "a=recvonly\r\n",
    "a=control:rtsp://192.0.2.64:554/Streaming/Channels/101/trackID=2\r\n",
    "a=rtpmap:8 PCMA/8000\r\n",
    "a=Media_header:MEDIAINFO=494D4B48010300000400000111710110401F000000FA000000000000000000000000000000000000;\r\n",
    "a=appversion:1.0\r\n",
    "m=application 0 RTP/AVP 107\r\n",
    "a=rtpmap:107 vnd.onvif.metadata/90000\r\n",
    "a=control:rtsp://192.0.2.64:554/Streaming/Channels/101/trackID=3\r\n",
);

/// In the style of Axis: attributes before the map, and a comma list of transforms.
const AXIS: &str = concat!(
    "v=0\r\n",
    "o=- 1188340656180883 1 IN IP4 192.0.2.90\r\n",
    "s=Session streamed with GStreamer\r\n",
    "i=rtsp-server\r\n",
    "t=0 0\r\n",
    "a=tool:GStreamer\r\n",
    "a=type:broadcast\r\n",
    "a=range:npt=now-\r\n",
    "a=control:rtsp://192.0.2.90:554/axis-media/media.amp\r\n",
    "m=video 0 RTP/AVP 96\r\n",
    "c=IN IP4 0.0.0.0\r\n",
    "b=AS:50000\r\n",
    "a=framesize:96 1920-1080\r\n",
    "a=transform:1,0,0;0,1,0;0,0,1\r\n",
    "a=control:rtsp://192.0.2.90:554/axis-media/media.amp/stream=0\r\n",
    "a=framerate:25.000000\r\n",
    "a=rtpmap:96 H264/90000\r\n",
    "a=fmtp:96 packetization-mode=1;profile-level-id=4d0029;sprop-parameter-sets=Z00AKeKQDwBE/LgLcBAQGkHiRFQ=,aO48gA==\r\n",
    "m=audio 0 RTP/AVP 97\r\n",
    "c=IN IP4 0.0.0.0\r\n",
    "b=AS:32\r\n",
    "a=control:rtsp://192.0.2.90:554/axis-media/media.amp/stream=1\r\n",
    "a=fmtp:97 streamtype=5;profile-level-id=2;mode=AAC-hbr;config=1408;sizeLength=13;indexLength=3;indexDeltaLength=3;Profile=1;bitrate=32000;\r\n",
    "a=rtpmap:97 mpeg4-generic/16000/1\r\n",
);

/// In the style of Dahua: lines that end in a mix of ways, an empty session name, a name in
/// another character set would be as well.
const DAHUA: &str = concat!(
    "v=0\r\n",
    "o=- 2252316233 2252316233 IN IP4 0.0.0.0\r\n",
    "s=Media Server\r\n",
    "c=IN IP4 0.0.0.0\r\n",
    "t=0 0\r\n",
    "a=control:*\r\n",
    "a=packetization-supported:DH\r\n",
    "a=rtppayload-supported:DH\r\n",
    "a=range:npt=now-\r\n",
    "m=video 0 RTP/AVP 98\r\n",
    "a=control:trackID=0\r\n",
    "a=framerate:25.000000\r\n",
    "a=rtpmap:98 H265/90000\r\n",
    "a=fmtp:98 profile-id=1;sprop-sps=QgEBAWAAAAMAsAAAAwAAAwBaoAWCAJBYuSRlWdwICAggAAADACAAAAMDIQ==;sprop-pps=RAHgdrAmQA==;sprop-vps=QAEMAf//AWAAAAMAsAAAAwAAAwBarAk=\r\n",
    "a=recvonly\r\n",
    "m=audio 0 RTP/AVP 97\r\n",
    "a=control:trackID=1\r\n",
    "a=rtpmap:97 MPEG4-GENERIC/8000\r\n",
    "a=fmtp:97 streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1588\r\n",
    "a=recvonly\r\n",
);

#[test]
fn ffmpeg_over_rtsp() {
    let described = read(FFMPEG);
    assert_eq!(described.name, "No Name");
    let [video, audio] = &described.media[..] else { panic!("two tracks") };
    assert_eq!(video.control.as_deref(), Some("streamid=0"));
    assert_eq!(video.address, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let Codec::H264 { sps: Some(sps), pps: Some(pps) } = &video.track.codec else { panic!("{video:?}") };
    assert_eq!((sps[0], pps[0]), (0x67, 0x68));
    assert_eq!((audio.track.clock_rate, audio.track.channels, audio.track.payload_type), (44_100, 1, 97));
    assert!(matches!(&audio.track.codec, Codec::Aac { config, size_length: 13, .. } if config.len() == 5));
    assert_eq!(described.format().main_track(), 0);
}

#[test]
fn static_types_and_multicast() {
    let described = read(FFMPEG_STATIC);
    let [video, audio] = &described.media[..] else { panic!("two tracks") };
    assert_eq!((&video.track.codec, video.port), (&Codec::MpegVideo, 5004));
    assert_eq!((&audio.track.codec, audio.port), (&Codec::MpegAudio, 5006));
    assert_eq!(video.address, Some("239.1.2.3".parse().unwrap()));
    assert_eq!(audio.track.clock_rate, 90_000);
    let ts = read("v=0\ns=x\nm=video 5000 RTP/AVP 33\n");
    assert_eq!((ts.format(), ts.media[0].port), (Format::Ts, 5000));
}

#[test]
fn gstreamer_h265_and_opus() {
    let described = read(GSTREAMER);
    let [video, audio] = &described.media[..] else { panic!("two tracks") };
    let sets = matches!(&video.track.codec, Codec::H265 { vps: Some(_), sps: Some(_), pps: Some(_) });
    assert!(sets, "{video:?}");
    assert_eq!(video.address, None, "the unspecified address is none");
    assert_eq!((&audio.track.codec, audio.track.channels), (&Codec::Opus, 2));
    assert_eq!(described.control.as_deref(), Some("*"));
}

#[test]
fn cameras() {
    let hikvision = read(HIKVISION);
    assert_eq!(hikvision.media.len(), 3);
    assert_eq!(hikvision.media[1].track.codec, Codec::Other { video: false });
    assert_eq!(hikvision.media[2].track.encoding, "vnd.onvif.metadata");
    let control = "rtsp://192.0.2.64:554/Streaming/Channels/101/trackID=1";
    assert_eq!(hikvision.media[0].control.as_deref(), Some(control));
    let axis = read(AXIS);
    assert!(matches!(&axis.media[1].track.codec, Codec::Aac { config, .. } if config[..] == [0x14, 0x08]));
    let dahua = read(DAHUA);
    assert!(matches!(&dahua.media[0].track.codec, Codec::H265 { vps: Some(_), sps: Some(_), pps: Some(_) }));
    assert_eq!(dahua.media[1].track.channels, 0);
}

#[test]
fn what_is_written_reads_as_the_same_format() {
    for text in [FFMPEG, FFMPEG_STATIC, GSTREAMER, HIKVISION, AXIS, DAHUA] {
        let format = read(text).format();
        let written = sdp::emit(&format, &SESSION);
        let again = read(&written);
        assert_eq!(again.format(), format, "{written}");
        assert_eq!(again.name, "stage");
        for (index, media) in again.media.iter().enumerate() {
            assert_eq!(media.control, Some(format!("trackID={index}")));
        }
    }
    assert!(sdp::emit(&read(HIKVISION).format(), &SESSION).contains("m=application 0 RTP/AVP 107"));
}

#[test]
fn a_transport_stream_is_one_media_of_type_33() {
    let session = Session {
        name: "a\r\nm=audio 1 RTP/AVP 0",
        destination: "239.9.9.9".parse().unwrap(),
        ttl: Some(4),
        ports: &[5004],
        controls: false,
        ..SESSION
    };
    let written = sdp::emit(&Format::Ts, &session);
    assert!(written.contains("m=video 5004 RTP/AVP 33\r\na=rtpmap:33 MP2T/90000\r\n"), "{written}");
    assert!(written.contains("c=IN IP4 239.9.9.9/4\r\n"));
    assert!(!written.contains("control"));
    let again = read(&written);
    assert_eq!((again.media.len(), again.format()), (1, Format::Ts), "a name cannot add lines");
    assert_eq!(again.media[0].address, Some(session.destination));
}

#[test]
fn source_filters_are_read_from_media_or_session() {
    let text = "v=0\ns=x\na=source-filter: incl IN IP4 * 192.0.2.5\n\
        m=video 5000 RTP/AVP 33\nc=IN IP4 232.1.1.1/8\n\
        m=audio 5002 RTP/AVP 14\na=source-filter: incl IN IP4 232.1.1.1 192.0.2.6 192.0.2.7\n";
    let described = read(text);
    assert_eq!(described.media[0].source, Some("192.0.2.5".parse().unwrap()));
    assert_eq!(described.media[1].source, Some("192.0.2.6".parse().unwrap()));
}

#[test]
fn limits_and_mistakes_are_refused_with_their_reason() {
    let media = "m=audio 0 RTP/AVP 0\r\n";
    assert_eq!(read(&media.repeat(SDP_TRACKS_MAX)).media.len(), SDP_TRACKS_MAX);
    assert_eq!(sdp::parse(media.repeat(SDP_TRACKS_MAX + 1).as_bytes()), Err(SdpError::TooManyTracks));
    let long = vec![b'a'; SDP_BYTES_MAX + 1];
    assert_eq!(sdp::parse(&long), Err(SdpError::TooLong(SDP_BYTES_MAX + 1)));
    for nothing in ["", "v=0\r\n", "m=video 0 UDP/TLS/RTP/SAVP 96\r\n", "m=video 0 UDP 96\r\n", "\u{0}\u{1}"]
    {
        assert_eq!(sdp::parse(nothing.as_bytes()), Err(SdpError::NoTracks), "{nothing:?}");
    }
    assert!(matches!(sdp::parse(b"m=video x RTP/AVP 96\r\n"), Err(SdpError::Syntax(_))));
    assert_eq!(sdp::parse(b"m=video 0 RTP/AVP 200\r\n"), Err(SdpError::NoTracks));
}

#[test]
fn encrypted_tracks_keep_the_description_of_what_is_in_them() {
    let read = read("m=video 0 RTP/SAVPF 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n");
    let track = &read.media[0].track;
    assert_eq!(track.codec, Codec::Srtp { video: true });
    assert!(matches!(sdp::codec(&track.encoding, &track.fmtp, true), Codec::H264 { .. }));
}

#[test]
fn other_character_sets_and_stray_lines_do_no_harm() {
    let head = b"v=0\r\ns=caf\xe9\r\ngarbage\r\n=\r\nb=AS:1.5\r\no=broken\r\n";
    let media = b"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264\r\n";
    let described = sdp::parse(&[&head[..], media].concat()).unwrap();
    assert!(described.name.starts_with("caf"));
    assert_eq!(described.media[0].track.clock_rate, 90_000);
}
