//! Keeps the keys of signed tokens as new as they need to be.

use std::sync::Arc;
use std::time::Duration;

use outflow_config::{KeysAt, TrustedUrl};
use outflow_fetch::{Agent, agent, document};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::Keys;
use crate::access::Door;
use crate::limits::{JWKS_AGAIN, JWKS_BYTES_MAX, JWKS_EACH, JWKS_EVERY, JWKS_STALE, JWKS_WITHIN};

/// Looks at the keys where `[access.jwt]` says, again and again, until the relay ends.
pub async fn keep_keys(door: Arc<Door>) {
    let (mut changes, mut again, mut asking) = (door.changes(), JWKS_AGAIN, None);
    let mut known: Option<(KeysAt, Instant)> = None;
    loop {
        changes.mark_unchanged();
        let Some(jwt) = door.jwt() else {
            (known, again) = (None, JWKS_AGAIN);
            door.set_keys(None);
            // The door, which tells changes, is there as long as this is.
            let _ = changes.changed().await;
            continue;
        };
        // Made with the first: the certificates that it reads are for relays that need it.
        let asking: &Agent = asking.get_or_insert_with(|| agent(JWKS_WITHIN));
        let (rest, then) = match look(asking.clone(), jwt.jwks.clone()).await {
            Ok(keys) => {
                if known.as_ref().is_none_or(|(from, _)| *from != jwt.jwks) {
                    tracing::info!(from = %jwt.jwks, "the keys of signed tokens are there");
                }
                again.reset();
                known = Some((jwt.jwks.clone(), Instant::now()));
                door.set_keys(Some(keys));
                (JWKS_EACH, JWKS_EVERY.saturating_sub(JWKS_EACH))
            }
            Err(error) => {
                let is_good = |(from, at): &(KeysAt, Instant)| *from == jwt.jwks && at.elapsed() < JWKS_STALE;
                let keeps = known.as_ref().is_some_and(is_good);
                let so = if keeps { "those of before are kept" } else { "no signed token is taken" };
                tracing::warn!(from = %jwt.jwks, error, "the keys of signed tokens cannot be had: {so}");
                if !keeps {
                    door.set_keys(None);
                }
                (again.wait(), Duration::ZERO)
            }
        };
        // The place is asked no more often, whatever tokens come; at once only where the rules have changed.
        if timeout(rest, changes.changed()).await.is_err() {
            tokio::select! {
                _ = changes.changed() => {}
                () = door.keys_wanted() => {}
                () = sleep(then) => {}
            }
        }
    }
}

/// The keys that are at this place now.
async fn look(asking: Agent, place: KeysAt) -> Result<Keys, String> {
    let looking = spawn_blocking(move || {
        let json = match &place {
            KeysAt::Url(TrustedUrl(url)) => {
                document(&asking, url.reveal(), JWKS_BYTES_MAX).map_err(|error| error.to_string())?
            }
            KeysAt::File(path) => {
                outflow_file::read(path, JWKS_BYTES_MAX).map_err(|error| error.to_string())?
            }
        };
        Keys::parse(place, &json).map_err(|error| error.to_string())
    });
    looking.await.unwrap_or_else(|error| Err(error.to_string()))
}
