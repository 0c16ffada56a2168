//! Routers alone, with neighbours made up, and in networks of virtual time.

mod chaos;
mod floods;
mod levels;
mod network;
mod oracle;
mod peer;
mod rules;
mod trees;
