//! Configured sources: sockets that workers read, and what fronts pull.

use std::net::SocketAddr;

use outflow_config::{Datagrams, SourceUrl, StreamConfig, UdpSource};
use outflow_engine::bind_source;
use outflow_engine::message::{ControlError, SocketRole, SourceSocket};
use outflow_media::{Format, Track};

use super::Supervisor;
use crate::control::Control;
use crate::publisher::PublishOptions;

impl Supervisor {
    pub(super) fn start_source(&mut self, name: &str, config: &StreamConfig) -> Result<(), ControlError> {
        let control = self.control.clone();
        let stream = name.to_owned();
        let task = match &config.source {
            // Others bring it.
            SourceUrl::Push | SourceUrl::Renditions(_) => return Ok(()),
            SourceUrl::Udp(at) => {
                let sockets = vec![source_socket(at, at.at, 0, SocketRole::Ts)?];
                let format = match at.datagrams {
                    Datagrams::Ts => Format::Ts,
                    Datagrams::Ppm => Format::Images,
                    Datagrams::Data => Format::Data,
                };
                tokio::spawn(report(
                    stream.clone(),
                    keep_open(control, stream, format, at.at.to_string(), sockets),
                ))
            }
            SourceUrl::Rtp(at) => {
                let described = Self::described(config)?;
                let mut sockets = Vec::new();
                for (track, media) in (0_u8..).zip(&described) {
                    let port = media.port.unwrap_or(at.at.port() + 2 * u16::from(track));
                    let rtp = SocketAddr::new(at.at.ip(), port);
                    let rtcp = SocketAddr::new(at.at.ip(), port + 1);
                    sockets.push(source_socket(at, rtp, track, SocketRole::Rtp)?);
                    sockets.push(source_socket(at, rtcp, track, SocketRole::Rtcp)?);
                }
                let format = Format::Rtp(described.into_iter().map(|media| media.track).collect());
                tokio::spawn(report(
                    stream.clone(),
                    keep_open(control, stream, format, at.at.to_string(), sockets),
                ))
            }
            // Its front brings it when a receiver wants it.
            SourceUrl::Pulled(endpoint) if endpoint.address.is_on_demand() => return Ok(()),
            SourceUrl::Pulled(endpoint) => {
                let front = self.control.fronts().of_source(endpoint.scheme)?;
                tokio::spawn(front.pull(control, stream, config.clone()))
            }
        };
        self.sources.insert(name.to_owned(), task);
        Ok(())
    }

    /// The tracks of an RTP source: from its description, or one transport stream.
    fn described(config: &StreamConfig) -> Result<Vec<Described>, ControlError> {
        let Some(sdp) = &config.sdp else {
            return Ok(vec![Described { track: Track::mp2t(), port: None }]);
        };
        let wrong = |why: &dyn std::fmt::Display| {
            ControlError::Configuration(format!(
                "{}: {why}: give the session description of the source",
                sdp.display()
            ))
        };
        let text = std::fs::read(sdp).map_err(|e| wrong(&e))?;
        let described = outflow_rtp::sdp::parse(&text).map_err(|e| wrong(&e))?;
        let port = |port: u16| (port != 0).then_some(port);
        Ok(described
            .media
            .into_iter()
            .map(|media| Described { track: media.track, port: port(media.port) })
            .collect())
    }
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
    Ok(SourceSocket { socket, track, role, from: source.source })
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
    let _publisher = control.publish_sockets(&stream, options, sockets).await?;
    std::future::pending().await
}

/// Says when a source could not be started.
async fn report(stream: String, source: impl Future<Output = Result<(), ControlError>>) {
    if let Err(error) = source.await {
        tracing::error!(stream, %error, "the source cannot be used");
    }
}
