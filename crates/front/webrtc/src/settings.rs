//! What the configuration says of WebRTC: `[listen] webrtc`, and `[webrtc]`.

use std::net::IpAddr;
use std::path::PathBuf;

use outflow_config::Step::Key;
use outflow_config::{Check, Contract, Listener, Protocol, Table, section};

section! {
    /// How browsers reach the relay, and what they know it by.
    pub struct WebRtc {
        /// Addresses of the relay as browsers see them; those of its interfaces if there are none.
        addresses: Vec<String> = Vec::new(),
        /// Certificate and key, made if the file is not there, as a path from the relay's working directory. If it is not
        /// given, they are made at each start.
        identity_file: Option<PathBuf> = None,
    }
}

/// The key of `[listen]`, the table, and what the protocol is called.
pub(crate) const NAME: &str = "webrtc";

pub(crate) fn protocol() -> Protocol {
    Protocol {
        listeners: &[Listener {
            key: NAME,
            port: None,
            needs_tls: false,
            is_tcp: true,
            players: ("browsers", Contract::Rtp),
            address: None,
        }],
        tables: vec![Table::of::<WebRtc>(NAME)],
        check: Some(check),
        ..Protocol::default()
    }
}

impl WebRtc {
    /// The addresses that are given.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().filter_map(|text| text.parse().ok())
    }
}

fn check(check: &mut Check<'_, '_, '_>) {
    for text in check.config().section::<WebRtc>().addresses {
        let place = text.parse::<IpAddr>();
        if !place.is_ok_and(|place| !place.is_unspecified() && !place.is_multicast()) {
            let help =
                "give what browsers reach the relay at, as addresses = [\"203.0.113.5\"]: no name, no port";
            check.add(&[Key(NAME), Key("addresses")], format!("'{text}' is no address of a host"), help);
        }
    }
}
