//! The helper that keeps a privilege for a relay which has given it up: this same program by another name.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use outflow_privilege::{Deed, serve, start_helper};
use outflow_routes::Confirmer;
use outflow_socket::{choose_multicast_table, force_buffer};

/// The name.
pub(crate) const NAME: &str = "outflow-helper";

/// Starts it, if this process has what it is for.
pub(crate) fn start() -> io::Result<()> {
    start_helper(Command::new("/proc/self/exe").arg0(NAME))
}

/// Is it: serves the relay that is at the other end of standard input, until that ends.
pub(crate) fn run() -> ExitCode {
    // Only how tools show it.
    let _ = rustix::thread::set_name(c"outflow-helper");
    let mut confirmer = Confirmer::open().ok();
    // What cannot be done, the relay does without.
    let served = serve(
        io::stdin().as_fd(),
        |socket, deed| match deed {
            Deed::Enlarge(buffer, bytes) => force_buffer(&socket, buffer, bytes as usize),
            Deed::ChooseTable(table) => choose_multicast_table(&socket, table),
        },
        |neighbours| confirmer.iter_mut().for_each(|confirmer| drop(confirmer.confirm(neighbours))),
    );
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
