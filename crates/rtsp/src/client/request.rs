//! The requests of a client, and the URLs in them.

use bytes::BytesMut;
use percent_encoding::percent_decode_str;
use rtsp_types::{HeaderName, Method, Version, headers};
use url::Url;

use super::flow::Step;
use super::{Closed, RtspClient};
use crate::auth::Credentials;
use crate::{Lower, Pair, Transport, encode_request};

impl RtspClient {
    /// The bytes of the request that `step` makes.
    pub(super) fn request(&mut self, step: Step, cseq: u32) -> BytesMut {
        let (method, url) = self.subject(step);
        let mut request = rtsp_types::Request::builder(method.clone(), Version::V1_0)
            .request_uri(url.clone())
            .header(headers::CSEQ, cseq.to_string())
            .header(headers::USER_AGENT, self.options.user_agent.as_str());
        for (name, value) in self.headers_of(step) {
            request = request.header(name, value);
        }
        if let Some(answer) = self.authorization(&method, &url) {
            request = request.header(headers::AUTHORIZATION, answer);
        }
        let body = match (step, &self.options.announce) {
            (Step::Announce, Some(sdp)) => sdp.to_vec(),
            (Step::SetParameter, _) => self.parameter.clone().into_bytes(),
            _ => Vec::new(),
        };
        let mut bytes = BytesMut::with_capacity(512 + body.len());
        encode_request(&request.build(body), &mut bytes);
        bytes
    }

    /// What `step` asks, and of what.
    fn subject(&self, step: Step) -> (Method, Url) {
        match step {
            Step::Options => (Method::Options, self.url.clone()),
            Step::Describe => (Method::Describe, self.url.clone()),
            Step::Announce => (Method::Announce, self.url.clone()),
            Step::Setup(i) => {
                let url = self.tracks.get(i).map_or(&self.aggregate, |(url, _)| url);
                (Method::Setup, url.clone())
            }
            Step::Start if self.options.announce.is_some() => (Method::Record, self.aggregate.clone()),
            Step::Start => (Method::Play, self.aggregate.clone()),
            Step::KeepAlive if self.gets_parameters => (Method::GetParameter, self.aggregate.clone()),
            Step::KeepAlive => (Method::Options, self.aggregate.clone()),
            Step::SetParameter => (Method::SetParameter, self.aggregate.clone()),
            Step::Teardown => (Method::Teardown, self.aggregate.clone()),
        }
    }

    fn headers_of(&self, step: Step) -> Vec<(HeaderName, String)> {
        let mut all = Vec::new();
        if let Some(session) = &self.session {
            all.push((headers::SESSION, session.id.clone()));
        }
        match step {
            Step::Describe => all.push((headers::ACCEPT, "application/sdp".to_owned())),
            Step::Announce => all.push((headers::CONTENT_TYPE, "application/sdp".to_owned())),
            Step::SetParameter => all.push((headers::CONTENT_TYPE, "text/parameters".to_owned())),
            Step::Setup(i) => all.push((headers::TRANSPORT, self.asked(i).to_string())),
            Step::Start => all.push((headers::RANGE, "npt=0.000-".to_owned())),
            Step::Options | Step::KeepAlive | Step::Teardown => {}
        }
        all
    }

    /// The transport asked for track `i`.
    pub(super) fn asked(&self, i: usize) -> Transport {
        if self.options.multicast {
            return Transport { multicast: true, ..Transport::default() };
        }
        let ports = self.tracks.get(i).and_then(|(_, ports)| *ports);
        let channel = u8::try_from(2 * i).unwrap_or(u8::MAX - 1);
        let mut transport = match (self.options.lower, ports) {
            (Lower::Udp, Some(ports)) => Transport::udp(ports),
            _ => Transport::tcp(Pair { rtp: channel, rtcp: channel + 1 }),
        };
        transport.record = self.options.announce.is_some();
        transport
    }

    fn authorization(&mut self, method: &Method, url: &Url) -> Option<String> {
        let (challenge, count) = self.challenge.as_mut()?;
        let credentials = self.credentials.as_ref()?;
        *count = count.wrapping_add(1);
        self.cnonces = self.cnonces.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let cnonce = format!("{:016x}", mixed(self.cnonces));
        Some(challenge.answer(credentials, method.into(), url.as_str(), *count, &cnonce))
    }
}

/// The finalizer of SplitMix64: neighbouring inputs give unrelated outputs.
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The URL as it may be written in a request, and the user and password that it held.
pub(super) fn without_credentials(mut url: Url) -> Result<(Url, Option<Credentials>), Closed> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let credentials = (!url.username().is_empty() || url.password().is_some()).then(|| Credentials {
        user: decoded(url.username()),
        password: decoded(url.password().unwrap_or_default()),
    });
    let stripped = url.set_username("").and_then(|()| url.set_password(None));
    if stripped.is_err() && credentials.is_some() {
        return Err(Closed::BadUrl(url.to_string()));
    }
    url.set_fragment(None);
    Ok((url, credentials))
}

/// Whether a URL fits a request line: one without authority (`rtsp:a b`) may hold blanks.
pub(super) fn can_be_asked(url: &Url) -> bool {
    !url.cannot_be_a_base()
}

/// What an `a=control` means, RFC 2326 appendix C.1.1.
///
/// Relative ones are appended, not resolved as in RFC 3986: that is what servers mean that write
/// `trackID=1` under a base without a slash at its end, or with a query.
pub(super) fn resolve(base: &Url, control: Option<&str>) -> Option<Url> {
    let control = control.map_or("", str::trim);
    if control.is_empty() || control == "*" {
        return Some(base.clone());
    }
    if control.contains("://") {
        let (url, _) = without_credentials(Url::parse(control).ok()?).ok()?;
        return Some(url).filter(can_be_asked);
    }
    if control.starts_with('/') {
        return base.join(control).ok();
    }
    let slash = if base.as_str().ends_with('/') { "" } else { "/" };
    Url::parse(&format!("{base}{slash}{control}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_urls_are_appended_to_the_base() {
        let resolved = |base: &str, control: &str| {
            resolve(&Url::parse(base).unwrap(), Some(control)).unwrap().to_string()
        };
        assert_eq!(resolved("rtsp://h/s", "trackID=1"), "rtsp://h/s/trackID=1");
        assert_eq!(resolved("rtsp://h/s/", "trackID=1"), "rtsp://h/s/trackID=1");
        assert_eq!(resolved("rtsp://h/s?ch=1", "trackID=1"), "rtsp://h/s?ch=1/trackID=1");
        assert_eq!(resolved("rtsp://h/s", "rtsp://other:88/x/1"), "rtsp://other:88/x/1");
        assert_eq!(resolved("rtsp://h/s/a", "/b"), "rtsp://h/b");
        assert_eq!(resolved("rtsp://h/s", "*"), "rtsp://h/s");
        assert_eq!(resolve(&Url::parse("rtsp://h/s").unwrap(), Some("rtsp:a b://c")), None);
    }

    #[test]
    fn credentials_are_taken_out_of_the_url() {
        let url = Url::parse("rtsp://us%40er:p%3Ass@cam:88/1?x=y#f").unwrap();
        let (url, credentials) = without_credentials(url).unwrap();
        assert_eq!(url.as_str(), "rtsp://cam:88/1?x=y");
        let credentials = credentials.unwrap();
        assert_eq!((credentials.user.as_str(), credentials.password.as_str()), ("us@er", "p:ss"));
    }
}
