//! A feed that goes on in another process: what its parent sends, and what of that was published.

use std::os::fd::OwnedFd;
use std::time::Instant;

use minicbor::{Decode, Encode};
use outflow_client::{Received, Subscription};
use outflow_control::{Control, Part, Upgrade};
use outflow_packet::Level;
use outflow_routing::tree::RelayId;
use tokio::sync::mpsc;

use super::super::group::{Grouped, SavedGrouped};
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
    /// What is beside that which carries, where the stream comes by multicast.
    #[n(7)]
    group: Option<SavedGrouped>,
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
        if saved.group.is_some() != feeding.is_by_multicast() {
            return None;
        }
        let (subscription, epoch) = ((&saved.subscription[..], part.descriptors), control.epoch());
        let subscription = match saved.group {
            Some(group) => {
                let (of, asked) = ((&saved.at[..], stream), (options, level.number()));
                let its = (group, subscription);
                let grouped = Grouped::restore(of, asked, feeding.shown.clone(), its, epoch)?;
                ParentPath::Grouped(Box::new(grouped))
            }
            None => ParentPath::Alone(Box::new(Subscription::restore(&url, options, subscription, epoch)?)),
        };
        let format = subscription.format().clone();
        let splice = Splice::restore(&format, saved.splice)?;
        saved.layers.into_iter().for_each(|layers| feeding.set_layers(layers));
        feeding.heard = publisher.take_feedback();
        feeding.published = Some(Published { publisher, splice });
        let parent = Parent { relay: RelayId(saved.relay), name: saved.name, at, turn: 0 };
        let mut current = Current::new(subscription, format, parent);
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

    /// None if it has to begin again: between two parents.
    async fn save(&mut self, current: &mut Current) -> Option<Part> {
        let Current { subscription, format, parent, .. } = current;
        for received in subscription.take_received() {
            self.pass(received, format, parent).await.ok()?;
        }
        let Published { publisher, splice } = self.published.as_ref()?;
        let splice = splice.save()?;
        let (group, subscription, descriptors) = subscription.save(self.control.epoch()).await?;
        let saved = SavedFeed {
            relay: parent.relay.0,
            name: parent.name.clone(),
            at: parent.at.to_string(),
            level: self.levels.borrow().number(),
            layers: self.layers,
            subscription,
            splice,
            group,
        };
        Some(Part { value: minicbor::to_vec(saved).ok()?, descriptors, turn: Some(publisher.id()) })
    }
}

impl ParentPath {
    /// What came and was not passed on yet, before another process goes on with it.
    fn take_received(&mut self) -> Vec<Received> {
        match self {
            ParentPath::Alone(subscription) => subscription.take_received().collect(),
            ParentPath::Grouped(grouped) => grouped.take_received(),
        }
    }

    /// What another process needs to go on with it: of a group, the subscription, and its descriptors.
    async fn save(&mut self, epoch: Instant) -> Option<(Option<SavedGrouped>, Vec<u8>, Vec<OwnedFd>)> {
        match self {
            ParentPath::Alone(alone) => {
                let (subscription, descriptors) = alone.save(epoch).await?;
                Some((None, subscription, descriptors))
            }
            ParentPath::Grouped(grouped) => {
                let (group, subscription, descriptors) = grouped.save(epoch).await?;
                Some((Some(group), subscription, descriptors))
            }
        }
    }
}
