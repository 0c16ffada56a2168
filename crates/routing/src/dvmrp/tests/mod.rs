//! Routers in networks of virtual time.

mod chaos;
mod network;
mod oracle;
