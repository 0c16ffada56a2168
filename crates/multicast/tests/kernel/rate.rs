//! How much user space forwards, beside the kernel. It prints figures, and asserts no rate.

use std::io::Write;
use std::time::{Duration, Instant};

use outflow_multicast::Snapshot;

use crate::dvmrp::came_in;
use crate::further::{Crowded, FURTHER_SOURCE, Source, goes_to, has_groups, members};
use crate::hosts::SOURCE;
use crate::net::is_skipped;

const NETWORKS: u8 = 8;
const DURATION: Duration = Duration::from_secs(1);
const PAYLOAD_BYTES: usize = 1316;

#[test]
fn user_space_forwards_a_flood_as_the_kernel_does() {
    if is_skipped("user_space_forwards_a_flood_as_the_kernel_does") {
        return;
    }
    let crowded = Crowded::new(NETWORKS, NETWORKS);
    let _joined = members(&crowded.hosts, 0..NETWORKS);
    crowded.relay.wait_until("all joined", has_groups(NETWORKS.into()));
    let came = || (0..NETWORKS).map(|net| came_in(&crowded.hosts, &format!("h{net}"))).sum::<u64>();
    let all = usize::from(NETWORKS);
    for (name, source, by_kernel) in [("kernel", SOURCE, all), ("user space", FURTHER_SOURCE, 0)] {
        let from = Source::new(&crowded.source, source);
        from.send(b"first");
        crowded.relay.wait_until("it goes", goes_to(source, by_kernel, all - by_kernel));
        let (start, before, payload) = (Instant::now(), came(), [7; PAYLOAD_BYTES]);
        let mut sent = 0_u64;
        while start.elapsed() < DURATION {
            (0..100).for_each(|_| from.send(&payload));
            sent += 100;
        }
        let (seconds, copies) = (start.elapsed().as_secs_f64(), came() - before);
        let (offered, forwarded) = (sent as f64 / seconds, copies as f64 / seconds);
        let _nobody_reads = writeln!(
            std::io::stderr(),
            "{name}: {offered:.0} packets/s came in, {forwarded:.0} copies/s went out to {NETWORKS} networks"
        );
    }
    // What comes faster than it can be forwarded is lost, and counted; nothing else is.
    let is_all = |snapshot: &Snapshot| {
        let counts = snapshot.counts.user;
        counts.copies + counts.no_room == counts.packets * u64::from(NETWORKS)
    };
    let counts = crowded.relay.wait_until("all have gone out", is_all).counts.user;
    assert_eq!((counts.malformed, counts.unresolved, counts.send_errors), (0, 0, 0), "{counts:?}");
}
