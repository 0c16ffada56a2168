//! What control promises of a running relay.

use outflow_config::Config;
use tokio::sync::oneshot;

use super::*;
use crate::Relay;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn once_a_worker_is_settled_all_that_it_was_told_before_is_done() {
    let text = "[listen]\nrtsp = \"off\"\nhttp = \"off\"\n[limits]\nworkers = 1\n[streams.a]\n";
    let relay = Relay::start(Config::parse(text, "test").expect("valid"), None).await.expect("started");
    let control = relay.control();
    let owner = control.entry("a").expect("there").owner;
    let mut answers = Vec::new();
    for stream in [owner.stream, u64::MAX] {
        let (reply, answer) = oneshot::channel();
        control.tell(&owner, Command::Describe { stream, wanted: Selection::default(), reply });
        answers.push(answer);
    }
    control.settled(&Owner { stream: u64::MAX, ..owner }).await;
    let mut answers = answers.iter_mut().map(|answer| answer.try_recv().expect("it has been answered"));
    assert_eq!(answers.next(), Some(Err(ControlError::NoSource("a".to_owned()))));
    assert_eq!(answers.next(), Some(Err(ControlError::StreamGone)), "there never was such a stream");
    relay.shut_down();
}
