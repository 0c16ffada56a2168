//! The Session and RTP-Info headers, RFC 2326 sections 12.37 and 12.33.

use core::fmt;
use core::time::Duration;

use crate::limits::RTP_INFOS;

/// A Session header: the name of a session and how long it lives without a sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The opaque name.
    pub id: String,
    /// `timeout=`; 60 s where it is not given, as the RFC says.
    pub timeout: Duration,
}

impl Session {
    /// Time-out of a session that names none, RFC 2326 section 12.37.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

    /// Reads a header value; `None` if it names no session.
    pub fn parse(value: &str) -> Option<Session> {
        let mut parts = value.split(';').map(str::trim);
        let id = parts.next().filter(|id| !id.is_empty())?.to_owned();
        let timeout = parts
            .filter_map(|part| part.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))
            .and_then(|(_, seconds)| seconds.trim().parse().ok())
            .filter(|seconds| *seconds > 0)
            .map_or(Self::DEFAULT_TIMEOUT, Duration::from_secs);
        Some(Session { id, timeout })
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};timeout={}", self.id, self.timeout.as_secs())
    }
}

/// One entry of an RTP-Info header: where a track's packets begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpInfo {
    /// The track's control URL, as written.
    pub url: String,
    /// Sequence number of the first packet.
    pub seq: Option<u16>,
    /// RTP timestamp of the moment that PLAY begins at.
    pub rtptime: Option<u32>,
}

impl RtpInfo {
    /// Reads a header value. Entries without a URL are left out.
    pub fn parse_all(value: &str) -> Vec<RtpInfo> {
        let mut infos: Vec<RtpInfo> = Vec::new();
        // URLs may contain commas and semicolons: an entry begins where "url=" does.
        for part in value.split([',', ';']).map(str::trim) {
            match part.split_once('=') {
                Some((name, url)) if name.eq_ignore_ascii_case("url") => {
                    if infos.len() == RTP_INFOS {
                        break;
                    }
                    let url = url.trim_matches(|c: char| c == '"' || c.is_whitespace()).to_owned();
                    infos.push(RtpInfo { url, seq: None, rtptime: None });
                }
                Some((name, number)) => {
                    let Some(info) = infos.last_mut() else { continue };
                    if name.eq_ignore_ascii_case("seq") {
                        info.seq = number.trim().parse().ok();
                    } else if name.eq_ignore_ascii_case("rtptime") {
                        info.rtptime = number.trim().parse().ok();
                    }
                }
                None => {}
            }
        }
        infos
    }
}

impl fmt::Display for RtpInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "url={}", self.url)?;
        if let Some(seq) = self.seq {
            write!(f, ";seq={seq}")?;
        }
        if let Some(rtptime) = self.rtptime {
            write!(f, ";rtptime={rtptime}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_session_has_sixty_seconds_unless_it_says_otherwise() {
        let plain = Session::parse("47112344").unwrap();
        assert_eq!((plain.id.as_str(), plain.timeout.as_secs()), ("47112344", 60));
        let with = Session::parse("abc;timeout=30").unwrap();
        assert_eq!(with.timeout.as_secs(), 30);
        assert_eq!(Session::parse(&with.to_string()), Some(with));
        assert_eq!(Session::parse("abc; timeout=0").unwrap().timeout, Session::DEFAULT_TIMEOUT);
        assert_eq!(Session::parse(" ;timeout=9"), None);
    }

    #[test]
    fn rtp_info_tells_where_each_track_begins() {
        let value = "url=rtsp://h/s/trackID=0;seq=45102;rtptime=12345678,\
                     url=rtsp://h/s/trackID=1;seq=9";
        let infos = RtpInfo::parse_all(value);
        assert_eq!(infos.len(), 2);
        assert_eq!(infos[0].url, "rtsp://h/s/trackID=0");
        assert_eq!((infos[0].seq, infos[0].rtptime), (Some(45102), Some(12_345_678)));
        assert_eq!((infos[1].seq, infos[1].rtptime), (Some(9), None));
        assert_eq!(RtpInfo::parse_all("url= \"a \";seq=1")[0].url, "a", "as it is written again");
        let written: Vec<_> = infos.iter().map(RtpInfo::to_string).collect();
        assert_eq!(RtpInfo::parse_all(&written.join(",")), infos);
    }

    proptest! {
        #[test]
        fn text_never_panics(text in ".{0,80}") {
            let _ = Session::parse(&text);
            let _ = RtpInfo::parse_all(&text);
        }
    }
}
