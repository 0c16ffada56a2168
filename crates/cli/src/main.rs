//! The `outflow` command.
fn main() {}
