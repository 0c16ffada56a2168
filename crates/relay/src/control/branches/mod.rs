//! The branches of a stream: the stream itself, those that its services make, and those that are
//! derived from one because a receiver wants it in another form.

mod far;
mod lifecycle;
mod messages;
mod places;
mod senders;
mod services;
mod serving;
mod slot;
mod stages;
mod table;

pub use far::{Far, Stages};
pub(in crate::control) use places::{restore_ts, save_ts, whole_for};
pub(in crate::control) use services::Services;
pub(in crate::control) use serving::put;
pub(in crate::control) use slot::{Made, Slot, What};
pub(in crate::control) use table::{Branches, ORIGINAL, held};
