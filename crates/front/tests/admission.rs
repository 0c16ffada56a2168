//! Receivers behind a link that lets in as many as fit.

#![allow(clippy::disallowed_methods, reason = "a test of files")]

use std::os::unix::net::UnixStream;
use std::time::Duration;

use outflow_control::{Control, Playing, Relay, load};
use outflow_engine::message::{ControlError, Delivery, Framing, Receiver, RelayState, WriteSide};
use outflow_relay::{Encapsulation, Selection};
use tokio::time::timeout;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

fn configuration(rate_bps: u64, admission: &str) -> String {
    format!(
        "[listen]\nrtsp = \"off\"\nhttp = \"off\"\nrtp_ports = \"46400-46499\"\n[limits]\nworkers = 1\n\
         [link.narrow]\nrate = \"{rate_bps} bit/s\"\nadmission = \"{admission}\"\n\
         [streams.demo]\nsource = \"demo://\"\nlink = \"narrow\"\n"
    )
}

/// A relay with one stream, which goes over a link.
struct Scene {
    relay: Relay,
    folder: tempfile::TempDir,
}

impl Scene {
    async fn begin() -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("outflow.toml");
        std::fs::write(&path, configuration(WIDE, "refuse")).expect("written");
        let config = load(&path, &outflow_fronts::protocols()).expect("valid");
        let relay = Relay::start(config, Some(path), outflow_fronts::all(), None).await.expect("started");
        Scene { relay, folder }
    }

    fn control(&self) -> &Control {
        self.relay.control()
    }

    async fn link_is(&self, rate_bps: u64, admission: &str) {
        let path = self.folder.path().join("outflow.toml");
        std::fs::write(path, configuration(rate_bps, admission)).expect("written");
        let changed = self.control().reload(false).await.expect("valid");
        assert!(changed.failed.is_empty(), "{changed:?}");
    }

    /// Waits until the relay shows this.
    async fn wait<T>(&self, shows: impl Fn(&RelayState) -> Option<T>) -> T {
        let mut states = self.control().watch();
        let shown = timeout(PATIENCE, states.wait_for(|state| shows(state).is_some())).await;
        let shown = shown.expect("in time").expect("it runs");
        shows(&shown).expect("it is shown")
    }

    /// What the levels take, once the rates are known and far from each other.
    async fn rates(&self) -> Vec<u64> {
        self.wait(|state| {
            let levels = &state.stream("demo")?.levels;
            let (best, least) = (*levels.first()?, *levels.last()?);
            (least > 0 && best > 2 * least).then(|| levels.clone())
        })
        .await
    }

    /// A receiver that gets a lower level than it asked for: there is room for more than the lowest, and not for the
    /// best. Rates may change between a look and a join: then once more.
    async fn lowered(&self) -> Player {
        loop {
            let rates = self.rates().await;
            let between = (rates[0] + rates[rates.len() - 1]) / 2;
            let taken = self.wait(reserved).await;
            self.link_is(taken + between, "lower").await;
            let Ok(player) = self.play().await else { continue };
            let id = player.playing.id();
            let asked = |state: &RelayState| state.stream("demo")?.receivers.get(id).map(|it| it.level_asked);
            if self.wait(asked).await > 1 {
                return player;
            }
        }
    }

    async fn play(&self) -> Result<Player, ControlError> {
        let receiver = Receiver::new("test", "test", Default::default());
        let playing =
            self.control().play("demo", receiver, Delivery::Bytes(Encapsulation::Ts, Framing::Raw)).await?;
        let (ours, relays) = UnixStream::pair().expect("a pair");
        playing.start(Some(WriteSide::Own(relays.into())));
        Ok(Player { playing, _wire: ours })
    }
}

struct Player {
    playing: Playing,
    _wire: UnixStream,
}

fn reserved(state: &RelayState) -> Option<u64> {
    state.links.first()?.reserved_bps
}

/// More than anything here takes; and less.
const WIDE: u64 = 1_000_000_000;
const NARROW: u64 = 8_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_for_which_there_is_no_room_is_refused_or_gets_a_lower_level() {
    let scene = Scene::begin().await;
    scene.rates().await;
    let first = scene.play().await.expect("there is room");
    scene.wait(|state| reserved(state).filter(|bps| *bps > NARROW)).await;
    for admission in ["refuse", "lower"] {
        scene.link_is(NARROW, admission).await;
        let refused = scene.play().await.err();
        let Some(ControlError::NoRoom(why)) = refused else { panic!("{refused:?}") };
        assert!(why.starts_with("link 'narrow' has 0 bit/s left of 8 kbit/s, and"), "{why}");
    }
    let is_alone = |state: &RelayState| {
        let receivers = &state.stream("demo")?.receivers;
        (receivers.len() == 1).then(|| receivers.get(first.playing.id()).map(|it| it.level))
    };
    assert_eq!(scene.wait(is_alone).await, Some(1), "the one that is there stays as it is");

    let second = timeout(PATIENCE, scene.lowered()).await.expect("in time");
    let (id, best) = (second.playing.id(), Selection::default().level);
    scene.link_is(NARROW, "lower").await;
    let more = scene.control().set_level(id, best).await;
    assert!(matches!(more, Err(ControlError::NoRoom(_))), "{more:?}");
    scene.link_is(WIDE, "refuse").await;
    assert_eq!(scene.control().set_level(id, best).await, Ok(()), "there is room now");
    drop((first, second));
    scene.wait(|state| (reserved(state) == Some(0)).then_some(())).await;
}
