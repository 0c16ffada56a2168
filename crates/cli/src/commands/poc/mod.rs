//! `outflow poc`

mod common;
mod key;
mod recv;
mod send;
mod statistics;
mod units;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use outflow_serve::fail;

pub(super) use self::common::keys;

/// Sends and receives by the partial-order transport
///
/// Between what TCP promises (everything, in order, late) and UDP (nothing) lies what media needs: this has to
/// come before that, this has to come at all, this only while it is of use. A service says so; see
/// `outflow poc send --help` for those that have a name. Either end may listen.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    outflow poc key > poc.key\n  \
    outflow poc recv poc://0.0.0.0:7000/cam --listen --key-file poc.key --to udp://127.0.0.1:5000\n  \
    outflow poc send poc://127.0.0.1:7000/cam --key-file poc.key --from udp://127.0.0.1:6000\n\n\
    ffmpeg over it:\n  \
    ffmpeg -re -i clip.mp4 -c copy -f mpegts - | outflow poc send poc://192.0.2.1:7000/cam --insecure\n  \
    outflow poc recv poc://0.0.0.0:7000/cam --listen --insecure | ffplay -")]
pub(crate) struct Poc {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Send(send::Send),
    Recv(recv::Recv),
    Key(key::MakeKey),
}

impl Poc {
    pub(crate) fn run(self) -> ExitCode {
        let done = match self.what {
            What::Send(send) => send.run(),
            What::Recv(recv) => recv.run(),
            What::Key(key) => key.run(),
        };
        done.map_or_else(fail, |()| ExitCode::SUCCESS)
    }
}
