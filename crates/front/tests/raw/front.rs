//! A protocol of lines, all of it: `publish NAME`, and a packet of the transport stream a line, in hex; or `play NAME`,
//! and the stream follows. What cannot be is answered by `error: …`.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use outflow_config::{Contract, Listener, Protocol, StreamAddress};
use outflow_control::{Control, Front, Playing, PublishOptions, Push, Started, Task};
use outflow_door::{Request, Right};
use outflow_engine::message::{Delivery, Framing, Receiver, WriteSide};
use outflow_media::Format;
use outflow_relay::Encapsulation;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Bytes of a line: a packet of 188 bytes in hex, or a request.
const LINE_BYTES: u64 = 400;

const LISTENERS: &[Listener] = &[Listener {
    key: "raw",
    port: None,
    needs_tls: false,
    is_tcp: true,
    players: ("raw players", Contract::Ts),
    address: Some(StreamAddress { label: "raw", usual_port: None, suffix: "", publish: None }),
}];

#[derive(Debug)]
pub(crate) struct Raw;

impl Front for Raw {
    fn protocol(&self) -> Protocol {
        Protocol { listeners: LISTENERS, ..Protocol::default() }
    }

    fn listen(&self, control: Control) -> Started {
        Box::pin(async move {
            let listeners = control.listeners("raw", control.config().listen.at("raw"), None)?;
            let serve = |(listener, _)| {
                let (door, control) = (control.door().clone(), control.clone());
                Box::pin(outflow_door::accept(listener, door, move |socket, peer, permit| {
                    let control = control.clone();
                    tokio::spawn(async move {
                        answer(BufReader::new(socket), peer, &control).await;
                        drop(permit);
                    });
                })) as Task<()>
            };
            Ok(listeners.into_iter().map(serve).collect())
        })
    }
}

async fn answer(mut socket: BufReader<TcpStream>, peer: SocketAddr, control: &Control) {
    match serve(&mut socket, peer, control).await {
        Ok(None) => {}
        Ok(Some(mut playing)) => {
            if let Ok(socket) = socket.into_inner().into_std() {
                playing.start(Some(WriteSide::Own(socket.into())));
                playing.closed().await;
            }
        }
        Err(error) => {
            // A peer that does not take the answer has nothing to lose by that.
            let _ = socket.write_all(format!("error: {error}\n").as_bytes()).await;
        }
    }
}

/// Serves a publisher to its end, or says where a player begins.
async fn serve(
    socket: &mut BufReader<TcpStream>,
    peer: SocketAddr,
    control: &Control,
) -> Result<Option<Playing>, Failure> {
    let line = line(socket).await?;
    match line.split_once(' ') {
        Some(("publish", name)) => {
            publish(socket, Request::parse(peer, name, "")?, control).await.map(|()| None)
        }
        Some(("play", name)) => play(Request::parse(peer, name, "")?, control).await.map(Some),
        _ => Err("write publish NAME or play NAME".into()),
    }
}

type Failure = Box<dyn Error + Send + Sync>;

async fn line(socket: &mut BufReader<TcpStream>) -> Result<String, Failure> {
    let mut line = String::new();
    socket.take(LINE_BYTES).read_line(&mut line).await?;
    Ok(line.trim_end().to_owned())
}

async fn publish(
    socket: &mut BufReader<TcpStream>,
    request: Request,
    control: &Control,
) -> Result<(), Failure> {
    let grant = control.door().enter(Right::Publish, &request).await?;
    let options = PublishOptions { format: Format::Ts, peer: request.peer.to_string(), configured: false };
    let publisher = control.publish(&grant, options).await?;
    loop {
        let line = line(socket).await?;
        let byte = |pair: &[u8]| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
        let packet = line.as_bytes().chunks(2).map(byte).collect::<Result<Vec<u8>, Failure>>()?;
        if packet.is_empty() || publisher.send(0, BytesMut::from(&packet[..])).await == Push::Closed {
            return Ok(());
        }
    }
}

async fn play(request: Request, control: &Control) -> Result<Playing, Failure> {
    let grant = control.door().enter(Right::Play, &request).await?;
    let receiver = Receiver::new("raw", request.peer, request.selection);
    let delivery = Delivery::Bytes(Encapsulation::Ts, Framing::Raw);
    Ok(control.play(&grant, receiver, delivery).await?)
}

/// The front.
pub(crate) fn front() -> Arc<dyn Front> {
    Arc::new(Raw)
}
