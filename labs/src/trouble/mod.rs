//! Faults, and what viewers notice of them: a relay with two workers, three streams and viewers of all kinds, and what
//! goes wrong there. `labs/chaos` has one fault after the other, `labs/soak` has them come by chance for hours.

mod audience;
mod background;
mod clock;
mod fault;
mod faults;
mod health;
mod logs;
mod places;
mod scene;
mod stage;
mod watch;

pub use audience::Viewer;
pub use clock::Clock;
pub use fault::Fault;
pub use places::Places;
pub use scene::{STREAMS, Scene};
pub use stage::{Stage, by_chance, cannot_be_made, chosen};
pub use watch::Noticed;
