//! A feed that goes on in another process: what its parent sends, and what of that was published.

use minicbor::{Decode, Encode};
use outflow_client::Subscription;
use outflow_control::{Control, Part, Upgrade};
use outflow_packet::Level;
use outflow_routing::tree::RelayId;
use tokio::sync::mpsc;

use super::super::input::{Input, Parent};
use super::super::splice::{SavedSplice, Splice};
use super::{Current, Feed, Feeding, ParentPath, Published, Turn};

/// As it is said.
#[derive(Encode, Decode)]
#[cbor(map)]
struct SavedFeed {
    /// The parent: its number, its name, and where it is asked.
    #[n(0)]
    relay: u64,
    #[n(1)]
    name: String,
    #[n(2)]
    at: String,
    /// The level that is asked for.
    #[n(3)]
    level: u8,
    /// How many there are, if it has said so.
    #[n(4)]
    layers: Option<u8>,
    #[cbor(n(5), with = "minicbor::bytes")]
    subscription: Vec<u8>,
    #[n(6)]
    splice: SavedSplice,
}

impl Feed {
    /// Goes on with what the process before took of a parent. None if there is nothing, or it has to begin again.
    pub(in super::super) fn go_on(
        control: &Control,
        stream: &str,
        inputs: mpsc::Sender<Input>,
    ) -> Option<Feed> {
        let (mut publisher, part) = control.shared::<Upgrade>().pulled(control, stream)?;
        let saved: SavedFeed = minicbor::decode(&part.value).ok()?;
        let (level, at) = (Level::new(saved.level)?, saved.at.parse().ok()?);
        let (told, mut feeding) = Feeding::new(control.clone(), stream, level, inputs);
        let (url, options) = feeding.asked(at, level).ok()?;
        let subscription = (&saved.subscription[..], part.descriptors);
        let subscription = Subscription::restore(&url, options, subscription, control.epoch())?;
        let format = subscription.format().clone();
        let splice = Splice::restore(&format, saved.splice)?;
        saved.layers.into_iter().for_each(|layers| feeding.set_layers(layers));
        feeding.heard = publisher.take_feedback();
        feeding.published = Some(Published { publisher, splice });
        let parent = Parent { relay: RelayId(saved.relay), name: saved.name, at, turn: 0 };
        let mut current = Current::new(ParentPath::Alone(Box::new(subscription)), format, parent);
        // Which relay is the parent from now on is found out while that sends.
        current.leave();
        let turn = Turn { current: Some(current), ..Turn::default() };
        let mut feed = Feed::of(told, feeding, turn);
        feed.is_up = true;
        Some(feed)
    }
}

impl Feeding {
    /// Hands over what another process needs to go on. Whether one does.
    pub(super) async fn hand_over(&mut self, turn: &mut Turn) -> bool {
        let part = match &mut turn.current {
            Some(current) => self.save(current).await,
            None => None,
        };
        let is_saved = part.is_some();
        if !self.member.give(part).await {
            if let Some(Current { subscription: ParentPath::Alone(subscription), .. }) = &turn.current {
                subscription.go_on();
            }
            return false;
        }
        // Without a word to the parent.
        if is_saved
            && let Some(Current { subscription: ParentPath::Alone(subscription), .. }) = turn.current.take()
        {
            subscription.vanish();
        }
        true
    }

    /// None if it has to begin again: by a group, or between two parents.
    async fn save(&mut self, current: &mut Current) -> Option<Part> {
        let Current { subscription: ParentPath::Alone(subscription), format, parent, .. } = current else {
            return None;
        };
        for received in subscription.take_received().collect::<Vec<_>>() {
            self.pass(received, format, parent).await.ok()?;
        }
        let Published { publisher, splice } = self.published.as_ref()?;
        let splice = splice.save()?;
        let (subscription, descriptors) = subscription.save(self.control.epoch()).await?;
        let saved = SavedFeed {
            relay: parent.relay.0,
            name: parent.name.clone(),
            at: parent.at.to_string(),
            level: self.levels.borrow().number(),
            layers: self.layers,
            subscription,
            splice,
        };
        Some(Part { value: minicbor::to_vec(saved).ok()?, descriptors, turn: Some(publisher.id()) })
    }
}
