//! What happens at this relay, told to whatever listens to it by NATS, where there is a directory.

use std::sync::Arc;

use outflow_control::Event;
use outflow_directory::Directory;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Tells all that happens at the relay of this name, each event once at most, until the relay ends.
pub(super) async fn tell(directory: Directory, relay: String, mut events: broadcast::Receiver<Arc<Event>>) {
    let relay = token(&relay);
    loop {
        let (kind, message) = match events.recv().await {
            Ok(event) => (event.what.kind(), serde_json::to_vec(&*event).unwrap_or_default()),
            // The numbers of those that follow show it.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        if let Err(away) = directory.tell(format!("outflow.events.{relay}.{kind}"), message.into()).await {
            tracing::debug!(%away, kind, "an event was not told by NATS");
        }
    }
}

/// A name as a token of a subject: what such a token cannot have becomes `_`.
fn token(name: &str) -> String {
    let kept = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    name.chars().map(|char| if kept(char) { char } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_token_of_a_subject() {
        assert_eq!(token("edge-1.west *>"), "edge-1_west___");
    }
}
