//! A parent whose packets are not published yet.

use outflow_client::{Packet, Received};
use outflow_front_pull::Failure;
use outflow_packet::Level;
use tokio::time::{Instant, sleep_until};

use super::super::input::Parent;
use super::super::limits::{LEVELS_PACKETS, LEVELS_WAIT};
use super::super::splice::Approach;
use super::{ParentPath, Published};

/// A subscription whose packets are not published yet: those of the parent before still are.
pub(super) struct Coming {
    pub(super) subscription: ParentPath,
    pub(super) parent: Parent,
    pub(super) held: Vec<Received>,
    /// When packets go on though it is not known how many levels there are.
    until: Option<Instant>,
    has_waited: bool,
    pub(super) layers: Option<u8>,
    /// How near it is to what is published, while the parent before still sends.
    approach: Approach,
}

impl Coming {
    pub(super) fn of(subscription: ParentPath, parent: &Parent, level: Level) -> Self {
        let layers = subscription.levels();
        let until = (level == Level::BEST).then(Instant::now);
        let (parent, held, approach) = (parent.clone(), Vec::new(), Approach::default());
        Coming { subscription, parent, held, until, has_waited: false, layers, approach }
    }
}

/// Waits for the first packets of a new parent. True once they can go on: at once, where it is known how many
/// levels there are and nothing was published before, so that those below need not wait for packets to be told of
/// the stream; while another one sends, once they have come to what that sends.
pub(super) async fn arrive(
    coming: &mut Option<Coming>,
    published: &Option<Published>,
    is_other_there: bool,
) -> Result<bool, Failure> {
    let Some(begun) = coming else { return std::future::pending().await };
    if begun.layers.is_some() && published.is_none() {
        return Ok(true);
    }
    let late = begun.until.filter(|_| !begun.held.is_empty());
    let received = tokio::select! {
        received = begun.subscription.recv() => received?,
        () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => {
            (begun.until, begun.has_waited) = (None, true);
            return Ok(!is_other_there);
        }
    };
    let mut is_near = !is_other_there;
    match &received {
        Received::Levels { rates, .. } => begun.layers = u8::try_from(rates.len()).ok(),
        Received::Packet(packet) => {
            if begun.layers.is_none() && !begun.has_waited {
                begun.until.get_or_insert_with(|| Instant::now() + LEVELS_WAIT);
            }
            if let Some(Published { splice, .. }) = published {
                is_near |= !splice.may_go_on(begun.subscription.format(), packet)
                    || splice.is_reached(&mut begun.approach, packet);
            }
        }
        Received::SenderReport { .. } => {}
    }
    begun.held.push(received);
    let has_packet = begun.held.iter().any(|held| packet(held).is_some());
    let is_ready = has_packet && (begun.layers.is_some() || begun.has_waited) && is_near;
    Ok(is_ready || begun.held.len() >= LEVELS_PACKETS)
}

pub(super) fn packet(received: &Received) -> Option<&Packet> {
    match received {
        Received::Packet(packet) => Some(packet),
        Received::SenderReport { .. } | Received::Levels { .. } => None,
    }
}
