//! The whole tree, as far as it can be seen from one relay: each is asked for its part, and the relays that
//! it names are asked, too.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use outflow_routing::tree::{Contact, Location, RelayId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::input::{Input, To};
use super::limits::{VIEW, VIEW_AT_ONCE, VIEW_RELAYS_MAX};
use super::view::{PeerView, RelayView};
use super::wire::Notice;

pub(super) async fn survey(inputs: &mpsc::Sender<Input>) -> Vec<RelayView> {
    let (reply, answer) = oneshot::channel();
    let own = match inputs.send(Input::Own { reply }).await {
        Ok(()) => answer.await.ok(),
        Err(_) => None,
    };
    let Some((own, others)) = own else { return Vec::new() };
    let mut seen = BTreeSet::from([own.relay.clone()]);
    let mut waiting: Vec<PeerView> = others.into_iter().chain(peers(&own)).collect();
    let mut all = BTreeMap::from([(own.relay.clone(), own)]);
    let mut asked = FuturesUnordered::new();
    loop {
        while asked.len() < VIEW_AT_ONCE
            && seen.len() < VIEW_RELAYS_MAX
            && let Some(peer) = waiting.pop()
        {
            if seen.insert(peer.relay.clone()) {
                asked.push(ask(peer, inputs));
            }
        }
        let Some(view) = asked.next().await else { break };
        waiting.extend(peers(&view));
        all.insert(view.relay.clone(), view);
    }
    all.into_values().collect()
}

/// All relays that one names.
fn peers(view: &RelayView) -> impl Iterator<Item = PeerView> + use<> {
    let named = view.streams.iter().flat_map(|stream| stream.children.iter().chain(&stream.parent));
    named.cloned().collect::<Vec<_>>().into_iter()
}

async fn ask(peer: PeerView, inputs: &mpsc::Sender<Input>) -> RelayView {
    match asked(&peer, inputs).await {
        Some(view) => *view,
        None => RelayView {
            name: peer.name,
            relay: peer.relay,
            address: peer.address,
            unreachable: Some("it does not answer".to_owned()),
            ..RelayView::default()
        },
    }
}

async fn asked(peer: &PeerView, inputs: &mpsc::Sender<Input>) -> Option<Box<RelayView>> {
    let relay: RelayId = peer.relay.parse().ok()?;
    let contact = Contact { relay, address: peer.address.parse().ok()?, location: Location::default() };
    let (reply, answer) = oneshot::channel();
    let said = Box::new(|number| Notice::Show { number });
    inputs.send(Input::Ask { to: To::Relay(contact), said, reply }).await.ok()?;
    match timeout(VIEW, answer).await {
        // It speaks for no other relay.
        Ok(Ok(Notice::Shown { view, .. })) if view.relay == peer.relay => Some(view),
        _ => None,
    }
}
