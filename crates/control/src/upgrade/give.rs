//! The old process: it starts the new one, stands still, says all that it has, and ends; or goes on.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outflow_engine::message::{
    Command, ControlError, Ingest, LastMedia, Moved, SavedWorker, SourceId, StreamId, UpgradeCommand,
};
use outflow_handover::{Line, Message};
use tokio::sync::{mpsc, oneshot};

use super::parts::Phase;
use super::saved::{
    Base, FORMAT, Hello, SavedAt, SavedEntry, SavedPart, SavedPublisher, SavedRelay, decode, encode, kind,
};
use super::{Part, Upgrade, pipe};
use crate::change::Changed;
use crate::control::{Control, zero};
use crate::registry::{Entered, Written};
use crate::workers::Owner;

/// How long the new process may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take to load the configuration and all that it names.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long it may take to go on with all that this one has. Peers wait meanwhile.
const RESTORED_WITHIN: Duration = Duration::from_secs(2);

/// How long a worker may take to stand still, and to say what it has.
const STANDS_WITHIN: Duration = Duration::from_secs(1);

/// What goes on through this process: the source's turn, where its packets are written, and where it is said that they
/// have come.
type Piped = BTreeMap<SourceId, (UnixStream, LastMedia)>;

/// Hands the relay over to a new process. If that cannot go on with it, this one does, as if nothing had been.
///
/// # Errors
/// Why it was not handed over.
pub(crate) async fn give(control: &Control) -> Result<Changed, ControlError> {
    let config = control.config();
    if let Some(why) = control.fronts().iter().find_map(|front| front.stays(&config)) {
        return Err(ControlError::NotUpgraded(format!("{why}: drain the relay, and start the new one")));
    }
    let (line, successor) = call(control).await?;
    let began = Instant::now();
    let upgrade = control.shared::<Upgrade>();
    control.door().hold(true);
    let (parts, late) = upgrade.parts.collect().await;
    let given = hand_over(control, &upgrade, &line, parts).await;
    let piped = match given {
        Ok(piped) => piped,
        Err(error) => {
            go_on(control, &upgrade);
            return Err(error);
        }
    };
    let waited = began.elapsed();
    tracing::info!(
        pid = successor.pid,
        version = successor.version,
        ?waited,
        late,
        "another process has the relay"
    );
    control.events().close();
    let queues = vanish(control).await;
    upgrade.parts.set(Phase::Gone);
    write_pipes(control, &upgrade, queues, piped);
    upgrade.successor.send_replace(Some(successor.pid));
    Ok(Changed { lines: vec![successor.version], waited: Some(waited), ..Changed::default() })
}

/// Starts the new process, and waits until it could go on. Peers notice nothing of that.
async fn call(control: &Control) -> Result<(Arc<Line>, Hello), ControlError> {
    let system = |error| ControlError::system("speaking to a new process", &error);
    let (line, end) = Line::pair().map_err(system)?;
    outflow_privilege::ask(end.as_fd()).map_err(|error| {
        ControlError::NotUpgraded(format!(
            "nothing starts a new process ({error}): restart the relay instead"
        ))
    })?;
    drop(end);
    let line = Arc::new(line);
    let hello: Hello = decode(&expect(&line, kind::HELLO, BEGINS_WITHIN).await?.value)?;
    if hello.format != FORMAT {
        let why = format!(
            "version {} writes down a relay in another way: drain this one, and start the new one",
            hello.version
        );
        say(&line, kind::REFUSED, why.clone().into_bytes(), Vec::new()).await?;
        return Err(ControlError::NotUpgraded(why));
    }
    let (zero_ns, ntp_at_zero) = zero(control);
    let places = control.registry().places();
    let places = places.into_iter().map(|(name, worker)| (name, worker as u64)).collect();
    let (next_id, workers) = (control.new_id(), control.workers().count() as u64);
    let base = Base { zero_ns, ntp_at_zero, next_id, workers, places };
    say(&line, kind::BASE, encode(&base), Vec::new()).await?;
    expect(&line, kind::READY, READY_WITHIN).await?;
    Ok((line, hello))
}

/// Stands still, says all, and lets the new process go on.
async fn hand_over(
    control: &Control,
    upgrade: &Upgrade,
    line: &Arc<Line>,
    parts: Vec<(&'static str, Part)>,
) -> Result<Piped, ControlError> {
    // What sources have sent by then is with all that serve it.
    ask_all(control, |done| UpgradeCommand::Stand { done }).await?;
    let saved = ask_all(control, |reply| UpgradeCommand::Save { reply }).await?;
    let workers = saved.into_iter().collect::<Result<_, _>>()?;
    let (saved, descriptors, piped) = describe(control, upgrade, workers, parts)?;
    let value = tokio::task::spawn_blocking(move || encode(&saved)).await;
    let value = value.map_err(|_| ControlError::ShuttingDown)?;
    say(line, kind::STATE, value, descriptors).await?;
    expect(line, kind::RESTORED, RESTORED_WITHIN).await?;
    // From here on this process never goes on.
    say(line, kind::GO, Vec::new(), Vec::new()).await?;
    Ok(piped)
}

/// All goes on as before.
fn go_on(control: &Control, upgrade: &Upgrade) {
    run(control);
    upgrade.parts.set(Phase::Runs);
    control.door().hold(false);
}

/// Workers go on that stand still.
pub(crate) fn run(control: &Control) {
    for worker in 0..control.workers().count() {
        control.workers().tell(&at(worker), Command::Upgrade(UpgradeCommand::GoOn));
    }
}

/// A worker, whatever the stream.
pub(super) fn at(worker: usize) -> Owner {
    Owner { worker, stream: StreamId::default() }
}

/// Asks all workers at once. Answers what they say, in their order.
async fn ask_all<T>(
    control: &Control,
    command: impl Fn(oneshot::Sender<T>) -> UpgradeCommand,
) -> Result<Vec<T>, ControlError> {
    let ask = |worker| {
        let (reply, answer) = oneshot::channel();
        control.workers().tell(&at(worker), Command::Upgrade(command(reply)));
        answer
    };
    let asked: Vec<_> = (0..control.workers().count()).map(ask).collect();
    let mut answers = Vec::with_capacity(asked.len());
    for answer in asked {
        let answer = tokio::time::timeout(STANDS_WITHIN, answer).await.map_err(|_| late())?;
        answers.push(answer.map_err(|_| ControlError::ShuttingDown)?);
    }
    Ok(answers)
}

fn late() -> ControlError {
    ControlError::NotUpgraded("a worker is busy: try again when there is less to do".to_owned())
}

/// All that there is, with its descriptors, and what goes on through this process.
fn describe(
    control: &Control,
    upgrade: &Upgrade,
    workers: Vec<SavedWorker>,
    parts: Vec<(&'static str, Part)>,
) -> Result<(SavedRelay, Vec<OwnedFd>, Piped), ControlError> {
    let failed = |error| ControlError::system("copying descriptors for the new process", &error);
    let (mut ports, mut streams, mut descriptors) = (Vec::new(), Vec::new(), Vec::new());
    let mut lives = Vec::new();
    for (worker, saved) in (0_u64..).zip(workers) {
        ports.push(saved.ports.value);
        descriptors.extend(saved.ports.descriptors);
        lives.extend(saved.streams.into_iter().map(|live| (worker, live)));
    }
    let taken: Vec<_> = parts.iter().filter_map(|(_, part)| part.turn).collect();
    let (mut turns, mut piped, mut pipes) = (Vec::new(), Piped::new(), Vec::new());
    for Written { stream, turn, is_pushed } in control.registry().written() {
        let read_by_worker = lives.iter().any(|(_, live)| is_read(live, turn.source));
        let is_taken = taken.contains(&turn.source);
        let is_piped = is_pushed && !read_by_worker && !is_taken;
        // A source that is pulled begins again, and so does a publisher whose session ends.
        if !(is_taken || is_piped || (read_by_worker && !is_pushed)) {
            continue;
        }
        if is_piped {
            let (ours, theirs) = pipe::pair().map_err(failed)?;
            piped.insert(turn.source, (ours, turn.media()));
            pipes.push(theirs);
        }
        turns.push(SavedPublisher {
            stream,
            source: turn.source,
            peer: turn.peer.clone(),
            begun_ns: turn.begun().as_nanos(),
            media_ns: turn.media().at().map(outflow_media::Time::as_nanos),
            grant: turn.grant.as_ref().map(outflow_door::Grant::save),
            is_piped,
        });
    }
    for (worker, Moved { value: live, descriptors: own }) in lives {
        streams.push(SavedAt { worker, live, descriptors: own.len() as u32 });
        descriptors.extend(own);
    }
    descriptors.extend(pipes);
    let parts = parts.into_iter().map(|(front, Part { value, descriptors: own, turn })| {
        let count = own.len() as u32;
        descriptors.extend(own);
        SavedPart { front: front.to_owned(), value, descriptors: count, turn }
    });
    let parts = parts.collect();
    let mut listeners = Vec::new();
    for ((protocol, address), listener) in upgrade.listeners().iter() {
        listeners.push((protocol.clone(), address.to_string()));
        descriptors.push(listener.try_clone().map_err(failed)?);
    }
    let receivers = control.registry().entered().into_iter().map(entry).collect();
    let next_id = control.new_id();
    let saved = SavedRelay { next_id, ports, streams, turns, receivers, parts, listeners };
    Ok((saved, descriptors, piped))
}

/// Whether a worker reads a source from sockets.
fn is_read(live: &Moved<outflow_engine::message::SavedLive>, source: SourceId) -> bool {
    let turn = live.value.source.as_ref();
    turn.is_some_and(|turn| turn.id == source && !turn.sockets.is_empty())
}

fn entry(Entered { id, stream, worker, session, grant }: Entered) -> SavedEntry {
    let session = session.map(crate::session::SessionToken::halves);
    SavedEntry { id, stream, worker: worker as u64, session, grant: grant.map(|grant| grant.save()) }
}

/// Ends all workers. Answers the queues of sources that go on through this process.
async fn vanish(control: &Control) -> Vec<(SourceId, mpsc::Receiver<Ingest>)> {
    let mut queues = Vec::new();
    for worker in 0..control.workers().count() {
        let (told, heard) = oneshot::channel();
        control.workers().tell(&at(worker), Command::Upgrade(UpgradeCommand::Vanish { queues: told }));
        queues.extend(heard.await.unwrap_or_default());
    }
    queues
}

fn write_pipes(
    control: &Control,
    upgrade: &Upgrade,
    queues: Vec<(SourceId, mpsc::Receiver<Ingest>)>,
    mut piped: Piped,
) {
    for (source, queue) in queues {
        let Some((to, media)) = piped.remove(&source) else { continue };
        let (count, control) = (Arc::clone(&upgrade.piped), control.clone());
        count.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            // The new process sees the end.
            let _ = pipe::write(queue, to, || media.came(control.now())).await;
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Says something to the other process.
pub(super) async fn say(
    line: &Arc<Line>,
    kind: u8,
    value: Vec<u8>,
    descriptors: Vec<OwnedFd>,
) -> Result<(), ControlError> {
    let line = Arc::clone(line);
    let message = Message { kind, value, descriptors };
    let said = tokio::task::spawn_blocking(move || line.send(message, RESTORED_WITHIN)).await;
    let said = said.map_err(|_| ControlError::ShuttingDown)?;
    said.map_err(|error| ControlError::NotUpgraded(format!("the other process does not listen ({error})")))
}

/// Waits for what the other process says next.
pub(super) async fn expect(line: &Arc<Line>, kind: u8, within: Duration) -> Result<Message, ControlError> {
    let line = Arc::clone(line);
    let heard = tokio::task::spawn_blocking(move || line.receive(within)).await;
    let message = heard.map_err(|_| ControlError::ShuttingDown)?.map_err(|error| {
        ControlError::NotUpgraded(format!(
            "the other process says nothing ({error}); see its lines in the log"
        ))
    })?;
    match message.kind {
        expected if expected == kind => Ok(message),
        self::kind::REFUSED => {
            Err(ControlError::NotUpgraded(String::from_utf8_lossy(&message.value).into_owned()))
        }
        other => Err(ControlError::NotUpgraded(format!("the other process says something else ({other})"))),
    }
}
