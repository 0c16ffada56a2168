//! What a receiver's place at a stream gives, to the other end of a connection.

use std::net::IpAddr;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use outflow_control::limits::{PULL_GOOD_AFTER, PULL_WAIT_MIN};
use outflow_control::{Backoff, Control, Playing, PushOptions, Reporter};
use outflow_engine::message::{CloseReason, ControlError, Delivery, Described, Framing, WriteSide};
use outflow_engine::system::random_u32;
use outflow_engine::{UNIT_HEAD, Worth};
use outflow_media::sdp;
use outflow_poc::connection::{self as transport, Event, SendError};
use outflow_poc::packet::Code;
use outflow_poc::recovery::Class;
use outflow_poc_socket::media::{self, Form, Packet};
use outflow_poc_socket::{Address, PocSocket, look_up};
use outflow_relay::{Carriage, DropReason, Report, Selection};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use super::ledger::Ledger;
use super::pace::{Pace, Turn};
use super::{latency, options};
use crate::limits::{POC_CATCH_UP, POC_READ_BYTES};

/// The relay ends it: the text says why. Codes from 64 on are the application's.
pub(super) const ENDED: Code = Code(65);

/// How long to look away while there is no room for what is not urgent.
const NO_ROOM: Duration = Duration::from_millis(2);

/// How a stream goes to a receiver.
pub(super) struct Media {
    pub(super) form: Form,
    /// What is said of it first.
    pub(super) described: Option<Bytes>,
    /// For how long packets are of use.
    pub(super) latency: Duration,
}

/// What is known of a connection while a stream goes there.
struct Way<'a> {
    control: &'a Control,
    socket: &'a PocSocket,
    report: Reporter,
    ledger: Mutex<Ledger>,
}

/// Units of this form, on a connection to the task that hands them on.
pub(super) fn delivery(form: Form) -> Delivery {
    let carriage = match form {
        Form::Ts => Carriage::Ts,
        Form::Rtp => Carriage::Rtp,
    };
    Delivery::Bytes(carriage, Framing::Units)
}

/// What is said of a stream before its packets.
pub(super) async fn description(
    control: &Control,
    stream: &str,
    wanted: &Selection,
    form: Form,
) -> Result<Option<Bytes>, ControlError> {
    if form == Form::Ts {
        return Ok(None);
    }
    let Described { format, levels } = control.describe(stream, wanted.clone()).await?;
    let nowhere = IpAddr::from([0; 4]);
    let session = sdp::Session {
        name: stream,
        id: 0,
        version: 0,
        origin: nowhere,
        destination: nowhere,
        ttl: None,
        ports: &[],
        controls: false,
        levels,
    };
    Ok(Some(sdp::emit(&format, &session).into()))
}

impl Media {
    /// Sends until one of both ends it. Answers why the relay did, if it did.
    pub(super) async fn send(
        self,
        control: &Control,
        socket: PocSocket,
        mut playing: Playing,
    ) -> Option<CloseReason> {
        let units = begin(&playing);
        let way = Way { control, socket: &socket, report: playing.reporter(), ledger: Mutex::default() };
        let ended = tokio::select! {
            _ = way.pass(&self, units) => None,
            () = way.hear(self.form) => None,
            reason = playing.closed() => Some(reason),
        };
        match ended {
            Some(reason) => socket.close(ENDED, &reason.to_string()),
            // Whoever went away is told nothing.
            None => drop(socket),
        }
        ended
    }
}

impl Way<'_> {
    /// Hands on what the worker writes, until one of both ends it.
    async fn pass(&self, media: &Media, units: std::io::Result<UnixStream>) -> Result<(), SendError> {
        let Ok(mut units) = units else { return Ok(()) };
        if let Some(text) = &media.described {
            self.socket.send(text.clone()).await?;
        }
        let (mut buffer, mut pace) = (BytesMut::new(), Pace::new(media.latency));
        loop {
            while let Some((worth, unit)) = next(&mut buffer, media.form) {
                self.give(&mut pace, worth, unit).await?;
            }
            buffer.reserve(POC_READ_BYTES);
            match units.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
    }

    /// Gives a unit to the transport. If there is not room for all, that leaves out what is worth least.
    async fn give(&self, pace: &mut Pace, worth: Worth, unit: Bytes) -> Result<(), SendError> {
        let bytes = unit.len();
        let useful_for = match pace.turn(worth.age(self.control.now()), worth.is_key()) {
            Turn::Now(time) => Some(time),
            Turn::CatchUp => {
                while self.socket.room_within(POC_CATCH_UP) == 0 {
                    sleep(NO_ROOM).await;
                }
                None
            }
            Turn::Late => {
                self.report.undelivered(Report::GivenUp { reason: DropReason::Late, bytes: bytes as u64 });
                return Ok(());
            }
        };
        let class = (!worth.is_key()).then_some(Class::Partial);
        let worth = transport::Worth { useful_for, class, rank: worth.rank };
        match self.socket.send_unit(None, unit, worth).await {
            Ok(unit) => self.ledger().sent(unit, bytes),
            // No packet is longer than a receiver keeps.
            Err(SendError::TooLong { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Hears what the receiver says, until it is gone.
    async fn hear(&self, form: Form) {
        loop {
            match self.socket.event().await {
                Event::Delivered { data, .. } if form == Form::Rtp => {
                    if let Some(packet) = Packet::read(data).filter(|packet| packet.is_rtcp) {
                        self.report.rtcp(packet.bytes);
                    }
                }
                Event::GivenUp { unit, why } => self.ledger().given_up(unit, why),
                Event::Lost { unit } => {
                    let lost = self.ledger().lost(unit);
                    lost.into_iter().for_each(|lost| self.report.undelivered(lost));
                }
                Event::Closed(_) => return,
                _ => {}
            }
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to send: what the worker writes can be read here.
fn begin(playing: &Playing) -> std::io::Result<UnixStream> {
    let (ours, workers) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let ours = UnixStream::from_std(ours)?;
    playing.start(Some(WriteSide::Own(workers.into())));
    Ok(ours)
}

/// The next unit that is there as a whole.
fn next(buffer: &mut BytesMut, form: Form) -> Option<(Worth, Bytes)> {
    let (worth, rest) = buffer.split_first_chunk()?;
    let (worth, length) = (Worth::read(*worth), rest.first_chunk()?);
    let bytes = usize::from(u16::from_be_bytes(*length));
    if buffer.len() < UNIT_HEAD + bytes {
        return None;
    }
    let mut unit = buffer.split_to(UNIT_HEAD + bytes).freeze();
    // The channel is part of a unit, where there are channels.
    unit.advance(if form == Form::Rtp { UNIT_HEAD - 1 } else { UNIT_HEAD });
    Some((worth, unit))
}

/// Keeps sending a stream to a configured receiver, whatever becomes of the connection and of the source, until
/// the stream is gone.
pub(super) async fn keep_sending(control: Control, push: PushOptions) {
    let mut backoff = Backoff::new(random_u32());
    loop {
        let began = Instant::now();
        let why = match turn(&control, &push).await {
            // Whoever publishes it may come at any time.
            Err(Failure::Relay(ControlError::NoSource(_))) => {
                sleep(PULL_WAIT_MIN).await;
                continue;
            }
            Ok(Some(CloseReason::StreamRemoved | CloseReason::Removed | CloseReason::ShuttingDown))
            | Err(Failure::Relay(
                ControlError::UnknownStream(_) | ControlError::StreamGone | ControlError::ShuttingDown,
            )) => return,
            Ok(Some(reason)) => reason.to_string(),
            Ok(None) => "the other end closed the connection".to_owned(),
            Err(error) => error.to_string(),
        };
        if began.elapsed() >= PULL_GOOD_AFTER {
            backoff.reset();
        }
        let wait = backoff.next();
        let retry_ms = wait.as_millis() as u64;
        tracing::warn!(name = push.name(), why, retry_ms, "a receiver cannot be sent to; trying again");
        sleep(wait).await;
    }
}

/// Why a turn did not begin.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Relay(#[from] ControlError),
    #[error(transparent)]
    Open(#[from] outflow_poc_socket::OpenError),
    #[error("{0}")]
    Place(String),
}

/// Connects, and sends until that ends.
async fn turn(control: &Control, push: &PushOptions) -> Result<Option<CloseReason>, Failure> {
    let config = control.config();
    let Some(url) = push.to.poc() else { return Ok(Some(CloseReason::Removed)) };
    let form = Form::Rtp;
    let described = description(control, &push.stream, &push.receiver.selection, form).await?;
    let options = options(&config.poc, Some(url))?;
    let wrong = |error: &dyn std::fmt::Display| Failure::Place(format!("{url}: {error}"));
    let address = Address { place: url.place.clone(), resource: url.resource.clone() };
    let place = look_up(&address).await.map_err(|error| wrong(&error))?;
    let request = media::to_send(&url.resource, form, latency(&config.poc, url));
    let socket = PocSocket::connect(place, request, &options).await?;
    let playing = control.play(&push.stream, push.receiver.clone(), delivery(form)).await?;
    let latency = latency(&config.poc, url);
    Ok(Media { form, described, latency }.send(control, socket, playing).await)
}
