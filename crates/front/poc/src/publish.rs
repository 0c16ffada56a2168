//! A stream that a client sends.

use std::net::SocketAddr;

use bytes::Bytes;
use outflow_control::{Announced, Control, Part, PublishOptions, Publisher, Push, Upgrade};
use outflow_door::Grant;
use outflow_media::Format;
use outflow_poc::connection::Closed;
use outflow_poc::packet::Code;
use outflow_poc_socket::PocSocket;
use outflow_poc_socket::media::{Form, Packet};
use outflow_rtp::sdp;

use crate::codes::{self, ENDED};
use crate::handover::PARTS;
use crate::saved::{SavedPublication, encode};

/// A stream that a client sends, as it is published.
pub(super) struct Publication {
    pub(super) publisher: Publisher,
    pub(super) socket: PocSocket,
    pub(super) form: Form,
}

/// Publishes what comes, until it ends, or another process goes on with it. An error tells why it did not begin, or was
/// ended.
pub(super) async fn publish(
    control: &Control,
    socket: PocSocket,
    (grant, form): (&Grant, Form),
    (peer, mut announced): (SocketAddr, Announced),
) -> Result<(), String> {
    let format = match form {
        Form::Ts => Format::Ts,
        Form::Rtp => {
            let described = tokio::select! {
                described = described(&socket) => described.map_err(|text| (ENDED, text)),
                why = announced.over() => Err((codes::of(why), why.to_string())),
            };
            match described {
                Ok(format) => format,
                Err((code, text)) => return Err(close(socket, code, text)),
            }
        }
    };
    let options = PublishOptions { format, peer: format!("POC from {peer}"), configured: false };
    match control.publish(grant, options).await {
        Ok(publisher) => Publication { publisher, socket, form }.run(control).await,
        Err(error) => Err(close(socket, ENDED, error.to_string())),
    }
}

impl Publication {
    /// Publishes what comes, until it ends, or another process goes on with it.
    pub(super) async fn run(self, control: &Control) -> Result<(), String> {
        let mut member = control.shared::<Upgrade>().join(PARTS);
        member.brings_media();
        let Publication { mut publisher, socket, form } = self;
        loop {
            let unit = tokio::select! {
                unit = socket.recv() => unit,
                why = publisher.closed() => return Err(close(socket, codes::of(why), why.to_string())),
                () = member.asked() => {
                    // What has come and was not read is the listener's to say.
                    let saved = SavedPublication { number: socket.number(), is_rtp: form == Form::Rtp };
                    let part = Part { value: encode(&saved), turn: Some(publisher.id()), ..Part::default() };
                    match member.give(Some(part)).await {
                        true => return Ok(()),
                        false => continue,
                    }
                }
            };
            let Ok((_, data)) = unit else { return Ok(()) };
            if hand_on(&publisher, form, data) == Push::Closed {
                let why = publisher.closed().await;
                return Err(close(socket, codes::of(why), why.to_string()));
            }
        }
    }
}

/// Reads the first unit: what the others are.
async fn described(socket: &PocSocket) -> Result<Format, String> {
    let first = socket.recv().await;
    let (_, text) =
        first.map_err(|Closed { text, .. }| format!("it ended before its description: {text}"))?;
    let description =
        sdp::parse(&text).map_err(|error| format!("the first unit is no description: {error}"))?;
    Ok(description.format())
}

fn hand_on(publisher: &Publisher, form: Form, unit: Bytes) -> Push {
    match (form, Packet::read(unit.clone())) {
        (Form::Ts, _) => publisher.try_send(0, unit),
        (Form::Rtp, Some(packet)) if packet.is_rtcp => publisher.rtcp(packet.track, packet.bytes),
        (Form::Rtp, Some(packet)) => publisher.try_send(packet.track, packet.bytes),
        // A peer that sends nothing sends no media.
        (Form::Rtp, None) => Push::Taken,
    }
}

fn close(socket: PocSocket, code: Code, text: String) -> String {
    socket.close(code, &text);
    text
}
