//! A connection with another relay: it begins with the identity of both, and ends when the other is silent.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use outflow_door::{Door, Pass, Permit};
use outflow_poc_socket::{Options, PocSocket};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::input::{Input, LinkEvent, LinkId};
use super::limits::{ALIVE_EVERY, CONNECT, IDLE, SILENCE, UNSAID_MAX};
use super::wire::{self, Hello, Notice, VERSION};

/// A relay that is connected.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: Hello,
    /// What is to be said there.
    pub(super) to: mpsc::Sender<Notice>,
}

/// Whose connection it is, and for how long it is kept.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) link: LinkId,
    pub(super) me: Hello,
    /// Kept though nothing is said.
    pub(super) is_kept: bool,
}

/// Connects, and goes on until that ends.
pub(super) async fn dial(
    terms: Terms,
    (to, token, options): (SocketAddr, Option<String>, Options),
    inputs: mpsc::Sender<Input>,
) {
    let link = terms.link;
    let connecting = PocSocket::connect(to, wire::request(token.as_deref()), &options);
    let why = match timeout(CONNECT, connecting).await {
        Err(_) => "it does not answer".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Ok(Ok(socket)) => keep(terms, socket, &inputs).await,
    };
    // The driver may have ended before.
    let _ = inputs.send(Input::Link(LinkEvent::Down { link, why })).await;
}

/// Goes on with a relay that has connected, for as long as what lets it in holds; its place is given back when that
/// ends.
pub(super) async fn answer(
    terms: Terms,
    (socket, _permit): (PocSocket, Permit),
    (door, pass): (Arc<Door>, Pass),
    inputs: mpsc::Sender<Input>,
) {
    let link = terms.link;
    let why = tokio::select! {
        why = keep(terms, socket, &inputs) => why,
        () = door.revoked(&pass) => "what let it in is no longer good".to_owned(),
    };
    let _ = inputs.send(Input::Link(LinkEvent::Down { link, why })).await;
}

/// A connection while it lasts.
struct Kept<'a> {
    terms: Terms,
    socket: PocSocket,
    inputs: &'a mpsc::Sender<Input>,
    /// For the driver, as soon as the other end has said which relay it is.
    hello: Option<mpsc::Sender<Notice>>,
    heard_at: Instant,
    said_at: Instant,
    /// When something was said that is not only a sign of life.
    used_at: Instant,
}

/// Returns why it ended.
async fn keep(terms: Terms, socket: PocSocket, inputs: &mpsc::Sender<Input>) -> String {
    let (to, unsaid) = mpsc::channel::<Notice>(UNSAID_MAX);
    let now = Instant::now();
    let hello = Some(to);
    let mut kept = Kept { terms, socket, inputs, hello, heard_at: now, said_at: now, used_at: now };
    match kept.run(unsaid).await {
        Ok(never) => match never {},
        Err(why) => why,
    }
}

impl Kept<'_> {
    /// Goes on until it cannot.
    async fn run(&mut self, mut unsaid: mpsc::Receiver<Notice>) -> Result<Infallible, String> {
        let hello = Notice::Hello(Box::new(self.terms.me.clone()));
        self.say(&hello, || None).await?;
        let mut ticks = interval(ALIVE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                unit = self.socket.recv() => match unit {
                    Ok((_, unit)) => self.hear(&unit).await?,
                    Err(closed) if closed.text.is_empty() => return Err("it has left".to_owned()),
                    Err(closed) => return Err(closed.text),
                },
                said = unsaid.recv(), if self.hello.is_none() => {
                    let said = said.ok_or("this relay ends it")?;
                    self.say(&said, || unsaid.try_recv().ok()).await?;
                    self.used_at = self.said_at;
                }
                _ = ticks.tick() => self.look().await?,
            }
        }
    }

    async fn say(&mut self, said: &Notice, more: impl FnMut() -> Option<Notice>) -> Result<(), String> {
        self.said_at = Instant::now();
        let sent = self.socket.send(wire::write(said, more)).await;
        sent.map(drop).map_err(|error| error.to_string())
    }

    async fn hear(&mut self, unit: &[u8]) -> Result<(), String> {
        self.heard_at = Instant::now();
        for said in wire::read(unit).map_err(|strange| strange.to_string())? {
            let link = self.terms.link;
            let event = match said {
                Notice::Alive => continue,
                Notice::Hello(peer) => match self.greet(&peer)? {
                    Some(to) => LinkEvent::Up { link, peer, to },
                    None => continue,
                },
                _ if self.hello.is_some() => return Err("it does not say its name".to_owned()),
                said => {
                    self.used_at = self.heard_at;
                    LinkEvent::Heard { link, said }
                }
            };
            self.inputs.send(Input::Link(event)).await.map_err(|_| "this relay ends".to_owned())?;
        }
        Ok(())
    }

    /// The other end says which relay it is. None if it has said so before.
    fn greet(&mut self, peer: &Hello) -> Result<Option<mpsc::Sender<Notice>>, String> {
        let me = &self.terms.me;
        if peer.v != VERSION {
            return Err(format!("it speaks version {}, this relay {VERSION}", peer.v));
        }
        if peer.contact.relay == me.contact.relay {
            return Err(format!("it has the same name as this relay, '{}'", me.name));
        }
        Ok(self.hello.take())
    }

    /// Looks whether the other end is there, and says that this one is.
    async fn look(&mut self) -> Result<(), String> {
        if self.heard_at.elapsed() > SILENCE {
            return Err(format!("it has said nothing for {} ms", self.heard_at.elapsed().as_millis()));
        }
        if !self.terms.is_kept && self.used_at.elapsed() > IDLE {
            return Err("nothing is to be said".to_owned());
        }
        if self.said_at.elapsed() >= ALIVE_EVERY {
            self.say(&Notice::Alive, || None).await?;
        }
        Ok(())
    }
}
