//! What experiments and end-to-end tests share: network namespaces, programs run in them, a relay
//! under test, a source that stamps its packets, and receivers that measure.
//!
//! An experiment (`labs/NAME/main.rs`) and a test (`labs/tests/*.rs`) reads as what it shows and
//! nothing else; how it is done stands here.

pub mod arrivals;
pub mod baseline;
pub mod bench;
pub mod browser;
pub mod cage;
pub mod code;
pub mod core_time;
pub mod drain;
pub mod figures;
pub mod media;
pub mod membership;
pub mod moving;
pub mod nats;
pub mod net;
pub mod page;
pub mod path;
pub mod pion;
pub mod process;
pub mod programs;
pub mod receive;
pub mod relay;
pub mod scene;
pub mod search;
pub mod stolen;
mod successor;
pub mod supervisor;
pub mod svc;
pub mod trouble;
pub mod wavelet;
