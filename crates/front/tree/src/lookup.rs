//! The relays that have a stream: configured parents are asked one after the other, then the directory.

use outflow_directory::Directory;
use outflow_routing::Level;
use outflow_routing::tree::{Location, Offer, StreamId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::input::{Input, To};
use super::limits::LOOKUP;
use super::wire::Notice;

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) id: StreamId,
    pub(super) stream: String,
    /// A relay that does not have it is to fetch it, at this level.
    pub(super) fetch: Option<Level>,
    /// Where this relay is.
    pub(super) near: Location,
    /// How many configured parents there are.
    pub(super) parents: usize,
}

/// Finds out, and tells the driver.
pub(super) async fn look_up(question: Question, directory: Option<Directory>, inputs: mpsc::Sender<Input>) {
    let mut offers = Vec::new();
    for parent in 0..question.parents {
        offers.extend(ask(&question, parent, &inputs).await);
        // A further one would fetch it, too.
        if question.fetch.is_some() && !offers.is_empty() {
            break;
        }
    }
    if let Some(directory) = directory.filter(|_| offers.is_empty() || question.fetch.is_none()) {
        // No answer is known while it is away; it is asked again.
        let found = directory.lookup(&question.stream, question.near).await.unwrap_or_default();
        offers.extend(found.into_iter().map(|entry| entry.offer));
    }
    // The driver may have ended.
    let _ = inputs.send(Input::Offers { id: question.id, offers }).await;
}

async fn ask(question: &Question, parent: usize, inputs: &mpsc::Sender<Input>) -> Vec<Offer> {
    let (reply, answer) = oneshot::channel();
    let (stream, fetch) = (question.stream.clone(), question.fetch);
    let said = Box::new(move |number| Notice::Lookup { number, stream, fetch });
    let sent = inputs.send(Input::Ask { to: To::Parent(parent), said, reply }).await;
    match timeout(LOOKUP, answer).await {
        Ok(Ok(Notice::Offers { offers, .. })) if sent.is_ok() => offers,
        _ => Vec::new(),
    }
}
