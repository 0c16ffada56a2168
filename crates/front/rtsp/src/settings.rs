//! What the configuration says of RTSP: its listeners, `rtsp://` addresses, and how a source sends.

use std::fmt;
use std::sync::Arc;

use outflow_config::Step::Key;
use outflow_config::{
    Address, Check, Contract, Invalid, Listener, Protocol, Scheme, Secret, SecretUrl, StreamAddress,
    StreamConfig, Table, section, without_secrets, words,
};
use outflow_front_groups::GroupSettings;
use url::{Host, Url};

pub(crate) const PLAIN: &str = "rtsp";
pub(crate) const ENCRYPTED: &str = "rtsps";

/// Names in a query that say which stream of a camera is meant, or what is wanted of it: no secrets.
const HARMLESS: [&str; 10] =
    ["channel", "stream", "subtype", "profile", "unicast", "level", "branch", "part", "size", "gray"];

/// An RTSP server and what to ask it for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtspSource {
    /// Whether the connection is encrypted (`rtsps`).
    pub tls: bool,
    /// Name or address of the server, IPv6 literals without brackets.
    pub host: String,
    /// Its port: 554 for `rtsp`, 322 for `rtsps` if not given (RFC 7826, section 19.2).
    pub port: u16,
    /// The address to ask for, without user and password.
    pub url: SecretUrl,
    /// User, percent-decoded.
    pub user: Option<Secret>,
    /// Password, percent-decoded.
    pub password: Option<Secret>,
}

section! {
    /// What a stream says of a source of RTSP.
    pub struct SourceSettings {
        /// How an RTSP source sends.
        transport: Transport = Transport::Tcp,
    }
}

words! {
    /// How an RTSP source sends.
    pub enum Transport: "a transport" {
        /// Interleaved in the RTSP connection.
        Tcp = "tcp",
        /// By RTP over UDP.
        Udp = "udp",
    }
}

pub(crate) fn protocol() -> Protocol {
    const PLAYERS: (&str, Contract) = ("RTSP players", Contract::Rtp);
    Protocol {
        listeners: &[
            Listener {
                key: PLAIN,
                port: Some(8554),
                needs_tls: false,
                is_tcp: true,
                players: PLAYERS,
                address: Some(StreamAddress {
                    label: "RTSP",
                    usual_port: Some(554),
                    suffix: "",
                    publish: Some("ffmpeg -re -i FILE -c copy -f rtsp URL"),
                }),
            },
            Listener {
                key: ENCRYPTED,
                port: Some(8322),
                needs_tls: true,
                is_tcp: true,
                players: PLAYERS,
                address: Some(StreamAddress {
                    label: "RTSP, TLS",
                    usual_port: Some(322),
                    suffix: "",
                    publish: None,
                }),
            },
        ],
        tables: vec![Table::of_source::<SourceSettings>()],
        sources: &[Scheme {
            name: PLAIN,
            prefixes: &[PLAIN, ENCRYPTED],
            example: "rtsp://HOST/PATH",
            parse: |text| Ok(Arc::new(RtspSource::parse(text)?)),
        }],
        check: Some(check),
        ..Protocol::default()
    }
}

/// The address of a stream's source, if it is one of RTSP.
pub(crate) fn source(stream: &StreamConfig) -> Option<&RtspSource> {
    stream.source.address()
}

fn check(check: &mut Check<'_, '_, '_>) {
    let config = check.config();
    for (name, stream) in &config.streams {
        let table = [Key("streams"), Key(name)];
        if check.is_written(&table, "transport") && source(stream).is_none() {
            let what = "only rtsp:// and rtsps:// sources have a choice of transport".to_owned();
            check.add(&[table[0], table[1], Key("transport")], what, "leave transport out");
        }
    }
    if !config.section::<GroupSettings>().groups.is_empty() && config.listen.at(PLAIN).is_none() {
        let help = "add [listen] rtsp = \"[::]:8554\", or leave groups out";
        let what = "by RTSP relays ask for groups, and there is none".to_owned();
        outflow_front_groups::add(check, what, help);
    }
}

impl Address for RtspSource {}

impl fmt::Display for RtspSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.url, f)
    }
}

impl RtspSource {
    fn parse(text: &str) -> Result<Self, Invalid> {
        let shown = without_secrets(text, &HARMLESS);
        let help = "write it like rtsp://user:password@camera/path";
        let wrong =
            |why: &dyn fmt::Display| Invalid::new(format!("'{shown}' is no RTSP address: {why}"), help);
        let mut url = Url::parse(text).map_err(|e| wrong(&e))?;
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(wrong(&"it names no host")),
        };
        if url.fragment().is_some() {
            return Err(wrong(&"it has a part behind '#'"));
        }
        let tls = url.scheme() == "rtsps";
        let port = url.port().unwrap_or(if tls { 322 } else { 554 });
        if port == 0 {
            return Err(wrong(&"port 0 is no port"));
        }
        let user = (!url.username().is_empty()).then(|| decode(url.username())).transpose()?.map(Secret::new);
        let password = url.password().map(decode).transpose()?.map(Secret::new);
        // Neither fails for an address that has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(RtspSource { tls, host, port, url: SecretUrl::new(url, &HARMLESS), user, password })
    }
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, Invalid> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    let help = "write them in UTF-8, and '%' as %25";
    decoded.map(String::from).map_err(|_| Invalid::new("user or password are no text", help))
}

#[cfg(test)]
mod tests {
    use outflow_config::{Protocols, SourceUrl};

    use super::*;

    fn read(text: &str) -> Result<SourceUrl, Invalid> {
        SourceUrl::parse(text, Protocols::from_iter([protocol()]).vocabulary())
    }

    fn good(text: &str) -> RtspSource {
        let source = read(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        source.address::<RtspSource>().expect("an RTSP source").clone()
    }

    #[test]
    fn sources_read_and_write_alike() {
        for text in ["rtsp://camera.example/stream?profile=1", "rtsps://[fd00::1]:8322/a"] {
            assert_eq!(read(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn credentials_of_cameras_are_decoded_and_not_shown() {
        let camera = good("rtsp://ad%6Din:p%40ss%2F@10.0.0.5/Streaming/1");
        assert_eq!(camera.user.as_ref().map(Secret::reveal), Some("admin"));
        assert_eq!(camera.password.as_ref().map(Secret::reveal), Some("p@ss/"));
        assert_eq!((camera.host.as_str(), camera.port, camera.tls), ("10.0.0.5", 554, false));
        assert_eq!(camera.url.reveal(), "rtsp://10.0.0.5/Streaming/1");
        assert!(!format!("{camera:?}").contains("p@ss"));
        let error = read("rtsp://u:secret@/x").expect_err("no host").to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn what_may_be_secret_in_a_query_is_asked_for_and_not_shown() {
        let camera = good("rtsp://u:p4ss@127.0.0.1:1/x?token=s3cret&channel=2&password=p4ss");
        assert_eq!(camera.url.reveal(), "rtsp://127.0.0.1:1/x?token=s3cret&channel=2&password=p4ss");
        assert_eq!(camera.to_string(), "rtsp://127.0.0.1:1/x?token=…&channel=2&password=…");
        let error = read("rtsp://u:p4ss@h:0/?token=s3cret").expect_err("no port").to_string();
        for shown in [format!("{camera:?}"), error] {
            assert!(!shown.contains("s3cret") && !shown.contains("p4ss"), "{shown}");
        }
    }

    #[test]
    fn default_ports_are_those_of_the_scheme() {
        let port = |text: &str| good(text).port;
        assert_eq!([port("rtsp://h/"), port("rtsps://h/"), port("rtsp://[::1]:9/")], [554, 322, 9]);
    }

    #[test]
    fn impossible_sources_are_refused_with_the_reason() {
        let what = |text: &str| read(text).expect_err(text).to_string();
        assert!(what("rtsp:///path").contains("no RTSP address"));
        assert!(what("rtsp://h/#a").contains("behind '#'"));
    }
}
