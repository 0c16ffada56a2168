//! Many receivers by the partial-order transport in one thread. Their delays are those until they are read: the
//! transport has packets for as long as their order wants it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use outflow_poc::connection::Event;
use outflow_poc_socket::media::{Form, to_receive};
use outflow_poc_socket::{Options, PocSocket, Security};
use tokio::sync::oneshot;

use super::{Meter, Period};
use crate::figures::{Delays, delays};
use crate::media::{TS_PACKET, wall_nanos};
use crate::net::Namespace;

/// Receivers that are being read. They leave when this is dropped.
#[derive(Debug)]
pub struct PocCrowd {
    relay: SocketAddr,
    streams: Vec<String>,
    seen: Arc<Mutex<Seen>>,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Seen {
    meters: Vec<Meter>,
    delays: Delays,
}

impl PocCrowd {
    /// One receiver in the namespace for each of these streams, which are asked for without encryption.
    pub fn start(namespace: &Namespace, relay: SocketAddr, streams: Vec<String>) -> Result<Self> {
        let meters = vec![Meter::default(); streams.len()];
        let seen = Arc::new(Mutex::new(Seen { meters, delays: delays() }));
        let mut crowd = Self { relay, streams, seen, over: None, thread: None };
        crowd.ask(namespace)?;
        Ok(crowd)
    }

    /// All have asked again: what they get from now on is compared with what they got before, by the numbers of the
    /// source.
    pub fn ask_again(&mut self, namespace: &Namespace) -> Result<()> {
        self.leave();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.meters.iter_mut().for_each(|meter| *meter = meter.of_new_session());
        drop(seen);
        self.ask(namespace)
    }

    fn ask(&mut self, namespace: &Namespace) -> Result<()> {
        let (relay, streams, theirs) = (self.relay, self.streams.clone(), Arc::clone(&self.seen));
        let (over, is_over) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        self.over = Some(over);
        self.thread = Some(namespace.spawn(move || {
            let told = ready.clone();
            if let Err(error) = receive(relay, &streams, &theirs, ready, is_over) {
                let _not_awaited = told.send(Err(error));
            }
        }));
        is_ready.recv().context("the receiving thread ended")?
    }

    fn leave(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }

    /// The counts since the last split, or since the start.
    pub fn split(&self) -> Period {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let meters = seen.meters.iter_mut().map(Meter::split).collect();
        Period { meters, delays: std::mem::replace(&mut seen.delays, delays()) }
    }
}

impl Drop for PocCrowd {
    fn drop(&mut self) {
        self.leave();
    }
}

/// All receivers, until it is over.
fn receive(
    relay: SocketAddr,
    streams: &[String],
    seen: &Arc<Mutex<Seen>>,
    ready: std::sync::mpsc::Sender<Result<()>>,
    is_over: oneshot::Receiver<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let options = Options::new(Security::Plain);
    runtime.block_on(async {
        for (number, stream) in streams.iter().enumerate() {
            let request = to_receive(&format!("/{stream}"), Form::Ts, None);
            let socket = PocSocket::connect(relay, request, &options).await;
            let socket = socket.with_context(|| format!("the transport brings no {stream}"))?;
            tokio::spawn(read(socket, number, Arc::clone(seen)));
        }
        let _not_awaited = ready.send(Ok(()));
        let _ends_either_way = is_over.await;
        Ok(())
    })
}

async fn read(socket: PocSocket, number: usize, seen: Arc<Mutex<Seen>>) {
    loop {
        let event = socket.event().await;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Seen { meters, delays } = &mut *seen;
        match event {
            Event::Delivered { data, .. } => {
                let whole = data.len() - data.len() % TS_PACKET;
                meters[number].transport(&data[..whole], wall_nanos(), delays);
            }
            Event::Closed(closed) => {
                meters[number].ended = Some(closed.text);
                return;
            }
            _ => {}
        }
    }
}
