//! Viewers go on in another process, with the keys that they have: nothing is agreed on again. Those by TCP do so by their
//! gateways in the old process, which lives as long. Publishers are told that the relay has gone, and come back.

use std::sync::{Arc, Mutex, PoisonError};

use outflow_control::{Control, Part, Playing, SessionToken, Upgrade};
use outflow_dtls::Identity;
use outflow_engine::message::{ControlError, PeerPath, ReceiverId};
use outflow_webrtc::Session;

use crate::play::stay;
use crate::port::News;
use crate::saved::{SavedPort, SavedViewer, encode};
use crate::sessions::Sessions;
use crate::site::{Site, secret};
use crate::viewer::{Fec, Viewer};

/// What the parts of this front are called.
pub(crate) const PARTS: &str = "webrtc";

/// What another process has given, until the relay listens.
#[derive(Default)]
pub(crate) struct Taken(Mutex<Option<SavedPort>>);

impl Taken {
    /// What is given there cannot be read by another version: viewers ask again.
    pub(crate) fn put(&self, part: &Part) {
        match minicbor::decode(&part.value) {
            Ok(saved) => *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(saved),
            Err(error) => tracing::warn!(%error, "browsers have to ask again"),
        }
    }

    pub(crate) fn take(&self) -> Option<SavedPort> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl SavedPort {
    /// The certificate that peers know.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn identity(&self) -> Result<Identity, ControlError> {
        let identity = Identity::from_der(self.certificate.to_vec(), self.key.to_vec());
        identity.map_err(|error| ControlError::Configuration(format!("of the process before: {error}")))
    }
}

/// What another process has to know of the port, which has these peers.
pub(crate) fn value(identity: Identity) -> impl Fn(Vec<ReceiverId>) -> Vec<u8> {
    move |viewers| {
        let (certificate, key) = (identity.certificate().to_vec().into(), identity.key().to_vec().into());
        encode(&SavedPort { certificate, key, viewers })
    }
}

/// Goes on with the viewers of another process.
pub(crate) fn go_on(control: &Control, site: &Arc<Site>, taken: SavedPort) {
    let upgrade = control.shared::<Upgrade>();
    let mut lost = 0;
    for id in taken.viewers {
        // Others are publishers, or have not come.
        let Some((playing, value)) = upgrade.playing(id).zip(upgrade.peer(id)) else { continue };
        lost += usize::from(restore(control, site, playing, &value).is_none());
    }
    if lost > 0 {
        tracing::info!(lost, "browsers do not go on, and ask again");
    }
}

/// None if it cannot be read, or there is no randomness; it ends then.
fn restore(control: &Control, site: &Arc<Site>, playing: Playing, value: &[u8]) -> Option<()> {
    let SavedViewer { session, tracks, way, token, protection } = minicbor::decode(value).ok()?;
    let token: SessionToken = token.parse().ok()?;
    let saved = session.read()?;
    let (path, name, called) =
        (saved.agent.selected, saved.agent.ours.ufrag.clone(), &saved.agent.theirs.ufrag);
    let port = &site.port;
    let (peer, known) = (port.gateways.place(path), port.gateways.adopt(path));
    let id = playing.id();
    let (place, restarts) = control.shared::<Sessions>().resume(token, id, called);
    let session = Session::resume(secret().ok()?, saved);
    // It says where it is as soon as it is driven; what comes before is found by the name.
    let expected = News::Expect(id, name, playing.inbox());
    let (news, confirmed) = (port.news.clone(), News::Confirm(id, peer));
    let told = (news.clone(), Arc::clone(&port.gateways), restarts);
    let fec = protection.map(|saved| Box::new(Fec::resume(saved, control.shared())));
    let viewer = Viewer::resume(id, session, told, (tracks, token), (way, fec));
    playing.start_peer(Box::new(viewer), PeerPath { udp: Arc::clone(&port.udp), peer, own: None });
    let site = Arc::clone(site);
    tokio::spawn(async move {
        // If the port is gone, so is its table.
        let _ = news.send(expected).await;
        let _ = news.send(confirmed).await;
        stay(playing, place, site).await;
        drop(known);
    });
    Some(())
}
