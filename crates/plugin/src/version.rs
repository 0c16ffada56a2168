//! The contract with plug-ins: its text, and which version of it is spoken here.

/// The contract: `wit/plugin.wit`.
pub const WIT: &str = include_str!("../wit/plugin.wit");

/// The package of the contract, without its version.
#[cfg(feature = "host")]
pub(crate) const PACKAGE: &str = "outflow:plugin/";

/// The version of the contract that is spoken here. A plug-in that was built for an earlier one with the same first
/// number works, too.
pub const VERSION: (u32, u32, u32) = (1, 0, 0);
