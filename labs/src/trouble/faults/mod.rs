//! The faults, in groups.

mod access;
mod floods;
mod host;
mod network;
mod overload;
mod publisher;
mod relay;
mod reload;
mod time;

use std::time::Duration;

use crate::trouble::fault::{Concerns, Fault};
use crate::trouble::logs::LogTo;

/// TCP sends again within 2 s when a path is whole again (`BACK_OFF_MAX` of the door), and what was missed follows. With
/// kernels before Linux 6.15 it waits about as long as the path was broken.
const TCP_AND_CATCH_UP: Duration = Duration::from_secs(5);
/// The longest wait of the relay until it starts a program that has ended again (`AGAIN` of crates/external), and a
/// little more: it doubles from a second on while the program dies within half a minute.
const PROGRAM_AGAIN: Duration = Duration::from_secs(32);

/// All of them, in the order in which they happen.
pub(crate) const ALL: [Fault; 24] = [
    Fault::new("log_disk_full", Concerns::None, host::log_fails).logged(LogTo::Disk),
    Fault::new("log_pipe_stalled", Concerns::None, host::log_fails).logged(LogTo::Pipe),
    Fault::new("descriptors_exhausted", Concerns::None, host::descriptors),
    Fault::new("memory_near", Concerns::None, overload::memory),
    Fault::new("program_dies", Concerns::Copied, host::program).back_within(PROGRAM_AGAIN),
    Fault::new("certificate_exchanged", Concerns::None, host::certificate),
    Fault::new("nats_away", Concerns::None, host::nats),
    Fault::new("clock_set", Concerns::None, time::set),
    Fault::new("publisher_killed", Concerns::Studio, publisher::killed),
    Fault::new("publisher_blackholed", Concerns::Studio, publisher::blackholed),
    Fault::new("publisher_replaced", Concerns::Studio, publisher::replaced),
    Fault::new("publisher_rivalled", Concerns::Studio, publisher::rivalled),
    Fault::new("device_down", Concerns::Fragile, network::device).back_within(TCP_AND_CATCH_UP),
    Fault::new("neighbour_gone", Concerns::Fragile, network::neighbour).back_within(TCP_AND_CATCH_UP),
    Fault::new("bad_reloads", Concerns::None, reload::by_signal),
    Fault::new("bad_reloads_by_api", Concerns::None, reload::by_api),
    Fault::new("rtcp_flood", Concerns::None, floods::rtcp),
    Fault::new("junk_datagrams", Concerns::None, floods::junk),
    Fault::new("idle_connections", Concerns::None, access::idle),
    Fault::new("joins_and_leaves", Concerns::None, access::joins),
    Fault::new("token_guessing", Concerns::None, access::guesses),
    // Between the others: a relay that is started again may recover again.
    Fault::new("worker_panics", Concerns::All, relay::worker_panics),
    Fault::new("worker_killed", Concerns::All, relay::worker_killed),
    Fault::new("control_panics", Concerns::All, relay::control_panics),
];
