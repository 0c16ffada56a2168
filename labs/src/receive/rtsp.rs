//! The least of an RTSP client (RFC 2326): one request after the other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};

use super::open::connect;

/// A connection to an RTSP server.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    /// What was read beyond the last answer.
    pub(super) rest: Vec<u8>,
    url: String,
    session: Option<String>,
    sequence: u32,
}

impl Client {
    /// Connects to where `path` (with its query) is played, or published.
    pub(crate) fn connect(to: SocketAddr, path: &str) -> Result<Self> {
        let socket = connect(to)?;
        let url = format!("rtsp://{to}/{path}");
        Ok(Self { socket, rest: Vec::new(), url, session: None, sequence: 0 })
    }

    /// The control URLs of the stream's tracks.
    pub(super) fn describe(&mut self) -> Result<Vec<String>> {
        let url = self.url.clone();
        let (head, body) = self.ask("DESCRIBE", &url, "Accept: application/sdp\r\n")?;
        let base = header(&head, "Content-Base").unwrap_or(&url).to_owned();
        let media = body.split("\nm=").skip(1);
        let controls = media
            .filter_map(|media| media.lines().find_map(|line| line.trim_end().strip_prefix("a=control:")));
        let tracks: Vec<String> = controls
            .map(|control| match control {
                absolute if absolute.starts_with("rtsp://") => absolute.to_owned(),
                relative => format!("{}/{relative}", base.trim_end_matches('/')),
            })
            .collect();
        ensure!(!tracks.is_empty(), "no track described: {body}");
        Ok(tracks)
    }

    /// Sets up one track with this transport; the transport that was answered.
    pub(super) fn setup(&mut self, track: &str, transport: &str) -> Result<String> {
        let (head, _) = self.ask("SETUP", track, &format!("Transport: {transport}\r\n"))?;
        let session = header(&head, "Session").context("SETUP answered without a session")?;
        self.session = Some(session.split(';').next().unwrap_or_default().to_owned());
        Ok(header(&head, "Transport").unwrap_or_default().to_owned())
    }

    /// Starts to play.
    pub(super) fn play(&mut self) -> Result<()> {
        let url = self.url.clone();
        self.ask("PLAY", &url, "Range: npt=0.000-\r\n").map(drop)
    }

    /// Says what is to be published.
    pub(crate) fn announce(&mut self, description: &str) -> Result<()> {
        let (url, length) = (self.url.clone(), description.len());
        let headers = format!("Content-Type: application/sdp\r\nContent-Length: {length}\r\n");
        self.ask_with("ANNOUNCE", &url, &headers, description).map(drop)
    }

    /// Sets up the only track of what was announced; the transport that was answered.
    pub(crate) fn set_up_all(&mut self, transport: &str) -> Result<String> {
        let url = self.url.clone();
        self.setup(&url, transport)
    }

    /// Starts to publish.
    pub(crate) fn record(&mut self) -> Result<()> {
        let url = self.url.clone();
        self.ask("RECORD", &url, "Range: npt=0.000-\r\n").map(drop)
    }

    /// A request that only says that we are still there.
    pub(crate) fn keep_alive(&mut self) -> Result<()> {
        let request = self.request("OPTIONS", &self.url, "");
        self.sequence += 1;
        Ok(self.socket.write_all(request.as_bytes())?)
    }

    fn request(&self, method: &str, url: &str, headers: &str) -> String {
        let session = self.session.as_ref().map(|id| format!("Session: {id}\r\n")).unwrap_or_default();
        format!("{method} {url} RTSP/1.0\r\nCSeq: {}\r\n{session}{headers}\r\n", self.sequence + 1)
    }

    fn ask(&mut self, method: &str, url: &str, headers: &str) -> Result<(String, String)> {
        self.ask_with(method, url, headers, "")
    }

    fn ask_with(&mut self, method: &str, url: &str, headers: &str, body: &str) -> Result<(String, String)> {
        let request = self.request(method, url, headers) + body;
        self.sequence += 1;
        self.socket.write_all(request.as_bytes())?;
        let mut buffer = [0; 4096];
        loop {
            if let Some((head, body, used)) = answer(&self.rest) {
                self.rest.drain(..used);
                ensure!(head.starts_with("RTSP/1.0 200"), "{method} {url}: {head}");
                return Ok((head, body));
            }
            match self.socket.read(&mut buffer)? {
                0 => bail!("{method} {url}: connection closed"),
                read => self.rest.extend_from_slice(&buffer[..read]),
            }
        }
    }
}

/// Head, body and length of the answer at the beginning, if it is there as a whole.
fn answer(bytes: &[u8]) -> Option<(String, String, usize)> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = header(&head, "Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body = String::from_utf8_lossy(bytes.get(end..end + length)?).into_owned();
    Some((head, body, end + length))
}

/// The value of a header.
fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_whole_or_awaited() {
        let bytes = b"RTSP/1.0 200 OK\r\nCSeq: 1\r\ncontent-length: 3\r\n\r\nabc$\0";
        let (head, body, used) = answer(bytes).expect("it is whole");
        assert_eq!((header(&head, "CSeq"), body.as_str(), used), (Some("1"), "abc", bytes.len() - 2));
        assert!(answer(&bytes[..used - 1]).is_none());
    }
}
