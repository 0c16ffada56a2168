//! The old process: it starts the new one, says what it has, for the most part while it stands still, and ends; or goes
//! on.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use minicbor::Encode;
use outflow_engine::limits::LETS_GO_AFTER;
use outflow_engine::message::{Command, ControlError, Ingest, SourceId, StreamId, UpgradeCommand};
use outflow_handover::{Line, LineError, Message};
use outflow_media::Time;
use outflow_vital::Fatal;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;

use super::describe::{self, Piped, Rest};
use super::parts::Phase;
use super::recoveries::Recoveries;
use super::saved::{Base, FORMAT, Hello, decode, encode, kind};
use super::{Upgrade, pipe};
use crate::change::Changed;
use crate::control::{Control, zero};
use crate::workers::Owner;

/// How long the new process may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take to load the configuration and all that it names.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long it may take to go on with all that this one has. Peers wait meanwhile.
const RESTORED_WITHIN: Duration = Duration::from_secs(2);

/// How long it may take then until it serves, all fronts' connections included.
const ON_WITHIN: Duration = Duration::from_secs(10);

/// How long a worker may take to stand still, and to say what it has.
const STANDS_WITHIN: Duration = Duration::from_secs(1);

/// Streams that are not in the file, and their sources, which have no secrets.
pub(crate) type Adopted = Vec<(String, String)>;

/// Hands the relay over to a new process. If that cannot go on with it, this one does, as if nothing had been.
///
/// # Errors
/// Why it was not handed over.
pub(crate) async fn give(control: &Control, adopted: Adopted) -> Result<Changed, ControlError> {
    if control.health().ending().has_begun() {
        let why = "the relay was told to end: start the new one when it has ended";
        return Err(ControlError::NotUpgraded(why.to_owned()));
    }
    let config = control.config();
    if let Some(why) = control.fronts().iter().find_map(|front| front.stays(&config)) {
        return Err(ControlError::NotUpgraded(format!("{why}: drain the relay, and start the new one")));
    }
    let (line, successor) = call(control, adopted).await?;
    let upgrade = control.shared::<Upgrade>();
    control.door().hold(true);
    let Given { piped, waited, late } = match hand_over(control, &upgrade, &line).await {
        Ok(given) => given,
        Err(error) => {
            go_on(control, &upgrade);
            return Err(error);
        }
    };
    tracing::info!(
        pid = successor.pid,
        version = successor.version,
        ?waited,
        late,
        "another process has the relay"
    );
    control.events().close();
    let queues = vanish(control).await;
    write_pipes(control, &upgrade, queues, piped);
    if let Err(fatal) = goes_on(&line).await {
        upgrade.successor.send_replace(Some(Err(fatal)));
        return Err(ControlError::ShuttingDown);
    }
    tokio::spawn(async move {
        tokio::time::sleep(LETS_GO_AFTER).await;
        upgrade.parts.set(Phase::Gone);
        upgrade.successor.send_replace(Some(Ok(successor.pid)));
    });
    Ok(Changed { lines: vec![successor.version], waited: Some(waited), ..Changed::default() })
}

/// Starts the new process, and waits until it could go on. Peers notice nothing of that.
async fn call(control: &Control, adopted: Adopted) -> Result<(Arc<Line>, Hello), ControlError> {
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
    let Recoveries { count: recoveries, last } = control.shared::<Upgrade>().recoveries();
    let recovered_ns = last.map(Time::as_nanos);
    let base = Base { zero_ns, ntp_at_zero, next_id, workers, places, recoveries, recovered_ns, adopted };
    say(&line, kind::BASE, encode(&base), Vec::new()).await?;
    expect(&line, kind::READY, READY_WITHIN).await?;
    Ok((line, hello))
}

/// What was given.
struct Given {
    piped: Piped,
    /// How long the relay stood still.
    waited: Duration,
    /// How many members have not given their parts in time.
    late: usize,
}

/// Says what does not change with media; then stands still, says the rest, and lets the new process go on.
async fn hand_over(control: &Control, upgrade: &Upgrade, line: &Arc<Line>) -> Result<Given, ControlError> {
    let (parts, late) = upgrade.parts.collect(Phase::Connections).await;
    let (connections, descriptors, said) = describe::connections(control, upgrade, parts)?;
    tell(line, kind::CONNECTIONS, connections, descriptors).await?;
    expect(line, kind::CONNECTED, RESTORED_WITHIN).await?;

    let began = Instant::now();
    // What sources have sent by then is with all that serve it.
    let stood = ask_all(control, |done| UpgradeCommand::Stand { done });
    let ((parts, later), stood) = tokio::join!(upgrade.parts.collect(Phase::Stands), stood);
    stood?;
    tracing::debug!(after = ?began.elapsed(), "workers stand still");
    let saved = ask_all(control, |reply| UpgradeCommand::Save { reply }).await?;
    let workers = saved.into_iter().collect::<Result<_, _>>()?;
    let Rest { relay, descriptors, piped } = describe::rest(control, workers, parts, said)?;
    tracing::debug!(after = ?began.elapsed(), "workers have said what they have");
    tell(line, kind::STATE, relay, descriptors).await?;
    tracing::debug!(after = ?began.elapsed(), "the other process is told");
    expect(line, kind::RESTORED, RESTORED_WITHIN).await?;
    // From here on this process never goes on.
    say(line, kind::GO, Vec::new(), Vec::new()).await?;
    Ok(Given { piped, waited: began.elapsed(), late: late + later })
}

/// Waits until the new process serves. One that takes longer than it should has the relay nevertheless.
///
/// # Errors
/// It has ended instead.
async fn goes_on(line: &Arc<Line>) -> Result<(), Fatal> {
    match hear(line, ON_WITHIN).await {
        Ok(Err(error @ (LineError::Gone | LineError::System(_)))) => {
            Err(Fatal { what: "the process that took the relay over".to_owned(), why: error.to_string() })
        }
        _ => Ok(()),
    }
}

/// All goes on as before.
fn go_on(control: &Control, upgrade: &Upgrade) {
    run(control);
    upgrade.parts.set(Phase::Runs);
    control.door().hold(false);
}

/// Workers go on that stand still.
pub(super) fn run(control: &Control) {
    for worker in 0..control.workers().count() {
        control.workers().tell(&at(worker), Command::Upgrade(UpgradeCommand::GoOn));
    }
}

/// A worker, whatever the stream.
pub(super) fn at(worker: usize) -> Owner {
    Owner { worker, stream: StreamId::default() }
}

/// Asks a worker.
pub(super) fn ask<T>(
    control: &Control,
    worker: &Owner,
    command: impl FnOnce(oneshot::Sender<T>) -> UpgradeCommand,
) -> oneshot::Receiver<T> {
    let (reply, answer) = oneshot::channel();
    control.workers().tell(worker, Command::Upgrade(command(reply)));
    answer
}

/// What a worker says that was asked.
pub(super) async fn answer<T>(asked: oneshot::Receiver<T>) -> Result<T, ControlError> {
    let answer = tokio::time::timeout(STANDS_WITHIN, asked).await.map_err(|_| late())?;
    answer.map_err(|_| ControlError::ShuttingDown)
}

/// Asks all workers at once. Answers what they say, in their order.
pub(super) async fn ask_all<T>(
    control: &Control,
    command: impl Fn(oneshot::Sender<T>) -> UpgradeCommand,
) -> Result<Vec<T>, ControlError> {
    let workers = 0..control.workers().count();
    let asked: Vec<_> = workers.map(|worker| ask(control, &at(worker), &command)).collect();
    let mut answers = Vec::with_capacity(asked.len());
    for asked in asked {
        answers.push(answer(asked).await?);
    }
    Ok(answers)
}

fn late() -> ControlError {
    ControlError::NotUpgraded("a worker is busy: try again when there is less to do".to_owned())
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
        let (lingering, control) = (upgrade.lingering(), control.clone());
        tokio::spawn(async move {
            // The new process sees the end.
            let _ = pipe::write(queue, to, || media.came(control.now())).await;
            drop(lingering);
        });
    }
}

/// Says a value to the other process.
async fn tell(
    line: &Arc<Line>,
    kind: u8,
    value: impl Encode<()> + Send + 'static,
    descriptors: Vec<OwnedFd>,
) -> Result<(), ControlError> {
    let value = tokio::task::spawn_blocking(move || encode(&value)).await;
    say(line, kind, value.map_err(|_| ControlError::ShuttingDown)?, descriptors).await
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

/// What the other process says next; an error that is not the line's is of this process, which ends.
async fn hear(line: &Arc<Line>, within: Duration) -> Result<Result<Message, LineError>, JoinError> {
    let line = Arc::clone(line);
    tokio::task::spawn_blocking(move || line.receive(within)).await
}

/// Waits for what the other process says next.
pub(super) async fn expect(line: &Arc<Line>, kind: u8, within: Duration) -> Result<Message, ControlError> {
    let heard = hear(line, within).await.map_err(|_| ControlError::ShuttingDown)?;
    let message = heard.map_err(|error| {
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
