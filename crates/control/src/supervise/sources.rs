//! Configured sources: sockets that workers read, and what fronts pull.

use std::net::SocketAddr;

use outflow_config::{Datagrams, SourceUrl, StreamConfig, UdpSource};
use outflow_engine::bind_source;
use outflow_engine::message::{ControlError, SocketRole, SourceSocket};
use outflow_media::{Format, Track};

use super::Supervisor;
use crate::control::Control;
use crate::description::session_description;
use crate::publisher::{PublishOptions, Publisher};
use crate::task::Task;
use crate::upgrade::Upgrade;

/// A source that can begin.
pub(super) enum Prepared {
    /// Others bring it.
    Brought,
    /// A task does.
    Task(Task<()>),
}

impl Supervisor {
    /// Takes what a configured source needs; it begins by [`Supervisor::begin_source`].
    pub(super) fn prepare_source(&self, name: &str, config: &StreamConfig) -> Result<Prepared, ControlError> {
        let at = match &config.source {
            // Others bring it.
            SourceUrl::Push | SourceUrl::Renditions(_) => return Ok(Prepared::Brought),
            // Its front brings it when a receiver wants it.
            SourceUrl::Pulled(endpoint) if endpoint.address.is_on_demand() => return Ok(Prepared::Brought),
            SourceUrl::Pulled(endpoint) => {
                let front = self.control.fronts().of_source(endpoint.scheme)?;
                let task = front.pull(self.control.clone(), name.to_owned(), config.clone());
                return Ok(Prepared::Task(task));
            }
            SourceUrl::Udp(at) | SourceUrl::Rtp(at) => at,
        };
        if let Some(publisher) = self.control.shared::<Upgrade>().configured(name) {
            return Ok(Prepared::Task(Box::pin(keep(publisher))));
        }
        let Some((format, places)) = received(config)? else { return Ok(Prepared::Brought) };
        let bind = |(socket, track, role)| source_socket(at, socket, track, role);
        let sockets = places.into_iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        let opened = keep_open(self.control.clone(), name.to_owned(), format, at.at.to_string(), sockets);
        Ok(Prepared::Task(Box::pin(report(name.to_owned(), opened))))
    }

    /// Lets a source begin its turn.
    pub(super) fn begin_source(&mut self, name: &str, source: Prepared) {
        if let Prepared::Task(task) = source {
            self.sources.insert(name.to_owned(), tokio::spawn(task));
        }
    }

    /// Takes what a source needs that follows another one. That goes on meanwhile, unless both need the same ports.
    pub(super) async fn prepare_another(
        &mut self,
        name: &str,
        old: &StreamConfig,
        new: &StreamConfig,
    ) -> Result<Prepared, ControlError> {
        if shares_ports(old, new) {
            self.end_source(name).await;
        }
        let prepared = self.prepare_source(name, new);
        if prepared.is_err() {
            self.go_on_with(name, old);
        }
        prepared
    }

    /// Lets a source begin again that has ended for another one that cannot be had.
    pub(super) fn go_on_with(&mut self, name: &str, old: &StreamConfig) {
        if self.sources.contains_key(name) {
            return;
        }
        match self.prepare_source(name, old) {
            Ok(source) => self.begin_source(name, source),
            Err(error) => {
                tracing::error!(stream = name, %error, "the source that was there cannot be had again")
            }
        }
    }
}

/// Whether there is a port that both sources need.
fn shares_ports(one: &StreamConfig, other: &StreamConfig) -> bool {
    // What cannot be told any more is looked for in vain, too.
    let places = |config| received(config).ok().flatten().map(|(_, places)| places).unwrap_or_default();
    let (one, other) = (places(one), places(other));
    one.iter().any(|(at, ..)| other.iter().any(|(wanted, ..)| wanted.port() == at.port()))
}

/// Where a source is received: the address, the track, and what comes there.
type Place = (SocketAddr, u8, SocketRole);

/// What a source is, and where it is received; none of one that is brought or pulled.
fn received(config: &StreamConfig) -> Result<Option<(Format, Vec<Place>)>, ControlError> {
    match &config.source {
        SourceUrl::Udp(at) => {
            let format = match at.datagrams {
                Datagrams::Ts => Format::Ts,
                Datagrams::Ppm => Format::Images,
                Datagrams::Data => Format::Data,
            };
            Ok(Some((format, vec![(at.at, 0, SocketRole::Ts)])))
        }
        SourceUrl::Rtp(at) => {
            let (mut tracks, mut places) = (Vec::new(), Vec::new());
            for (track, media) in (0_u8..).zip(described(config)?) {
                let port = media.port.unwrap_or(at.at.port() + 2 * u16::from(track));
                places.push((SocketAddr::new(at.at.ip(), port), track, SocketRole::Rtp));
                places.push((SocketAddr::new(at.at.ip(), port + 1), track, SocketRole::Rtcp));
                tracks.push(media.track);
            }
            Ok(Some((Format::Rtp(tracks), places)))
        }
        SourceUrl::Push | SourceUrl::Renditions(_) | SourceUrl::Pulled(_) => Ok(None),
    }
}

/// The tracks of an RTP source: from its description, or one transport stream.
fn described(config: &StreamConfig) -> Result<Vec<Described>, ControlError> {
    let Some(sdp) = &config.sdp else {
        return Ok(vec![Described { track: Track::mp2t(), port: None }]);
    };
    let described = session_description(sdp).map_err(|why| {
        ControlError::Configuration(format!("{why}: give the session description of the source"))
    })?;
    let port = |port: u16| (port != 0).then_some(port);
    Ok(described
        .media
        .into_iter()
        .map(|media| Described { track: media.track, port: port(media.port) })
        .collect())
}

/// A track and the port that its description gives for it.
struct Described {
    track: Track,
    port: Option<u16>,
}

fn source_socket(
    source: &UdpSource,
    at: SocketAddr,
    track: u8,
    role: SocketRole,
) -> Result<SourceSocket, ControlError> {
    let socket = bind_source(at, source.source, source.interface.as_deref())?;
    Ok(SourceSocket::new(socket, track, role, source.source))
}

/// Keeps a source that is read from sockets open until the stream is removed.
async fn keep_open(
    control: Control,
    stream: String,
    format: Format,
    peer: String,
    sockets: Vec<SourceSocket>,
) -> Result<(), ControlError> {
    let options = PublishOptions { format, peer, configured: true };
    keep(control.publish_sockets(&stream, options, sockets).await?).await;
    Ok(())
}

/// Keeps a source open.
async fn keep(_publisher: Publisher) {
    std::future::pending().await
}

/// Says when a source could not be started.
async fn report(stream: String, source: impl Future<Output = Result<(), ControlError>>) {
    if let Err(error) = source.await {
        tracing::error!(stream, %error, "the source cannot be used");
    }
}
