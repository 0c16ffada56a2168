//! What goes wrong on a line. But for lateness before anything came, the line is of no use then.

use std::io;

/// Why a message was not sent, or did not come.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It took too long.
    #[error("the other process is late: see its log, and try again when this machine has less to do")]
    Late,
    /// The other process has closed its end, or has ended.
    #[error("the other process has ended: the last lines of its log say why")]
    Gone,
    /// The system refused.
    #[error("the system does not let the two processes talk: {0}")]
    System(#[from] io::Error),
    /// What came is no message.
    #[error(
        "what the other process says makes no sense ({0}): upgrade between versions that know each other"
    )]
    Malformed(&'static str),
    /// This process may have no more descriptors.
    #[error(
        "descriptors were lost on their way: raise the limit of open files (LimitNOFILE=), and try again"
    )]
    Lost,
    /// It would be a greater message than there may be.
    #[error("{what} of a message are {number}, of {most} at most: end some streams or receivers first")]
    TooMuch {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        number: usize,
        /// How many there may be.
        most: usize,
    },
}
