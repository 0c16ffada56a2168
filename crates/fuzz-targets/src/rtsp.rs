//! RTSP: messages and headers.

use bytes::BytesMut;
use outflow_rtsp::auth::{Authorization, Challenge, Credentials, Realm, Verdict};
use outflow_rtsp::header::{RtpInfo, Session};
use outflow_rtsp::{DecodeError, Decoder, Item, Transport, encode_request, encode_response};

fn decode_all(
    decoder: &mut Decoder,
    buffer: &mut BytesMut,
    items: &mut Vec<Item>,
) -> Result<(), DecodeError> {
    while let Some(item) = decoder.decode(buffer)? {
        items.push(item);
    }
    Ok(())
}

/// However bytes come, the same items come out; and what is a message can be written.
pub(crate) fn rtsp_messages(data: &[u8]) {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    let result = decode_all(&mut Decoder::new(), &mut BytesMut::from(data), &mut whole);
    let (mut decoder, mut buffer) = (Decoder::new(), BytesMut::new());
    let mut in_parts = Ok(());
    let size = 1 + data.first().map_or(0, |first| usize::from(*first) % 50);
    for part in data.chunks(size) {
        buffer.extend_from_slice(part);
        in_parts = decode_all(&mut decoder, &mut buffer, &mut parts);
        if in_parts.is_err() {
            break;
        }
    }
    assert_eq!((&whole, result.is_ok()), (&parts, in_parts.is_ok()));
    for item in &whole {
        let mut written = BytesMut::new();
        match item {
            Item::Request(request) => encode_request(request, &mut written),
            Item::Response(response) => encode_response(response, &mut written),
            Item::Interleaved { .. } => {}
        }
    }
}

/// Header values. What is read can be written, and is then read as the same.
pub(crate) fn rtsp_headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let transports = Transport::parse_all(&text);
    let written: Vec<_> = transports.iter().map(Transport::to_string).collect();
    assert_eq!(Transport::parse_all(&written.join(",")), transports, "{written:?}");
    if let Some(session) = Session::parse(&text) {
        assert_eq!(Session::parse(&session.to_string()), Some(session));
    }
    let infos = RtpInfo::parse_all(&text);
    let written: Vec<_> = infos.iter().map(RtpInfo::to_string).collect();
    assert_eq!(RtpInfo::parse_all(&written.join(",")), infos, "{written:?}");
    let authorization = Authorization::parse(&text);
    let challenges = Challenge::parse_all(&text);
    // No quoted string holds control characters (RFC 9110 section 5.6.4); they are not written.
    if !text.contains(char::is_control) {
        authorization.iter().for_each(written_alike);
        challenges.iter().for_each(convinces);
    }
}

fn written_alike(authorization: &Authorization) {
    let written = match authorization {
        Authorization::Basic(credentials) => {
            Challenge::Basic { realm: String::new() }.answer(credentials, "PLAY", "rtsp://h/", 1, "")
        }
        Authorization::Digest(answer) => answer.to_string(),
    };
    assert_eq!(Authorization::parse(&written).as_ref(), Some(authorization), "{written}");
}

/// Our answer to a challenge shows a server that the password is known.
fn convinces(challenge: &Challenge) {
    let credentials = Credentials { user: "us\\er".to_owned(), password: "se:cret".to_owned() };
    let written = challenge.answer(&credentials, "PLAY", "rtsp://h/s", 1, "cnonce");
    let answer = Authorization::parse(&written).unwrap_or_else(|| panic!("an answer: {written}"));
    let nonce = match challenge {
        Challenge::Basic { .. } => String::new(),
        Challenge::Digest { nonce, .. } => nonce.clone(),
    };
    let realm = Realm::new(challenge.realm(), nonce, true);
    assert_eq!(answer.judge(&realm, "PLAY", ["no", "se:cret"]), Verdict::Right, "{written}");
    assert_eq!(answer.judge(&realm, "PLAY", ["se:cre"]), Verdict::Wrong, "{written}");
}
