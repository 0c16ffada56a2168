//! Why a study is none.

use outflow_sim::network::NetworkError;

/// Why a study is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// It is not TOML of the right shape.
    #[error("the study cannot be read: {0}")]
    Syntax(String),
    /// The network is wrong, at some point.
    #[error("{at}{error}")]
    Network {
        /// Values that were put in place, empty if there are none.
        at: String,
        /// What is wrong.
        error: NetworkError,
    },
    /// A sweep or a search names something that is not there, or does not fit.
    #[error("{0}")]
    Values(String),
}
