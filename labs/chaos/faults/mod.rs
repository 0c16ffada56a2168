//! The faults, in groups.

mod access;
mod floods;
mod host;
mod network;
mod publisher;
mod reload;

use crate::fault::{Concerns, Fault};
use crate::logs::LogTo;

/// All of them, in the order in which they happen.
pub(crate) const ALL: [Fault; 19] = [
    Fault::new("log_disk_full", Concerns::None, host::log_fails).logged(LogTo::Disk),
    Fault::new("log_pipe_stalled", Concerns::None, host::log_fails).logged(LogTo::Pipe),
    Fault::new("descriptors_exhausted", Concerns::None, host::descriptors),
    Fault::new("program_dies", Concerns::Copied, host::program),
    Fault::new("certificate_exchanged", Concerns::None, host::certificate),
    Fault::new("nats_away", Concerns::None, host::nats),
    Fault::new("publisher_killed", Concerns::Studio, publisher::killed),
    Fault::new("publisher_blackholed", Concerns::Studio, publisher::blackholed),
    Fault::new("publisher_replaced", Concerns::Studio, publisher::replaced),
    Fault::new("publisher_rivalled", Concerns::Studio, publisher::rivalled),
    Fault::new("device_down", Concerns::Fragile, network::device),
    Fault::new("neighbour_gone", Concerns::Fragile, network::neighbour),
    Fault::new("bad_reloads", Concerns::None, reload::by_signal),
    Fault::new("bad_reloads_by_api", Concerns::None, reload::by_api),
    Fault::new("rtcp_flood", Concerns::None, floods::rtcp),
    Fault::new("junk_datagrams", Concerns::None, floods::junk),
    Fault::new("idle_connections", Concerns::None, access::idle),
    Fault::new("joins_and_leaves", Concerns::None, access::joins),
    Fault::new("token_guessing", Concerns::None, access::guesses),
];
