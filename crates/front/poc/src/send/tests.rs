//! Receivers that are connected to are behind the link that their configuration says.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use outflow_config::Config;
use outflow_control::{PublishOptions, Relay};
use outflow_media::Format;
use outflow_poc_socket::{Options, PocListener, Security};
use tokio::time::timeout;

use super::*;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_sink_is_behind_the_link_of_its_stream_unless_its_own_is_off() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = PocListener::bind(any, Options::new(Security::Plain)).expect("bound");
    let sink = |name: &str| {
        let at = listener.local_addr();
        format!("[[sinks]]\nname = \"{name}\"\nstream = \"live\"\nto = \"poc://{at}/{name}\"\n")
    };
    let text = format!(
        "[limits]\nworkers = 1\n[poc]\nencryption = \"off\"\n[link.up]\nrate = \"8 Mbit/s\"\n\
         [streams.live]\nlink = \"up\"\n{}{}link = \"off\"\n",
        sink("behind"),
        sink("beside"),
    );
    tokio::spawn(async move {
        let mut taken = Vec::new();
        while let Ok(asking) = listener.accept().await {
            taken.push(asking.answer(None));
        }
    });
    let fronts = vec![crate::front()];
    let known = fronts.iter().map(|front| front.protocol()).collect();
    let config = Config::parse(&text, "test", &known).unwrap_or_else(|errors| panic!("{errors}"));
    let relay = Relay::start(config, None, fronts, None).await.expect("started");
    let options = PublishOptions { format: Format::Ts, peer: "a test".to_owned(), configured: false };
    let _publisher = relay.control().publish("live", options).await.expect("it takes one");

    let mut states = relay.control().watch();
    let both = states.wait_for(|state| state.streams.iter().any(|stream| stream.receivers.len() == 2));
    let state = timeout(PATIENCE, both).await.expect("in time").expect("it runs").clone();
    let receivers = state.streams.iter().flat_map(|stream| &stream.receivers);
    let links: BTreeMap<_, _> =
        receivers.map(|one| (one.name.as_deref().unwrap_or_default(), one.link.as_deref())).collect();
    assert_eq!(links, BTreeMap::from([("behind", Some("up")), ("beside", None)]));
    relay.shut_down();
}
