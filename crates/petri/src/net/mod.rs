//! Services as Time Stream Petri Nets (TSPN; Sénac, Diaz, Léger, de Saqui-Sannes, IEEE JSAC 14(1), 1996; for
//! transport: Diaz, Lozes, Chassot, Amer, Annals of Telecommunications 49(5-6), 1994).
//!
//! A [`Net`] describes one period of a stream, say a GOP. Its *places* are the objects of the period
//! (transport service data units; slices of pictures, say), or only order two transitions. Its *transitions*
//! are what is completed together, a picture, say. A transition fires once a *round*: it takes a token from
//! each of its input places and puts one into each of its output places. An object may be delivered when its
//! place holds the token of its round; when its consumer fires, its time is over. An [`Engine`] runs a net.
//!
//! Objects are numbered: the one with index `i` of `n`, of round `r`, is *unit* `r * n + i`. Places are
//! declared in the order in which their objects are sent.
//!
//! # Marked graphs only
//!
//! Each place has one producer and one consumer. A place with two consumers would be a choice: which of them
//! takes the token depends on what arrived, so that two ends that run the same net would come to disagree on
//! what was delivered and what is to be sent again. Without choices the order in which transitions are
//! looked at makes no difference. And what is to be checked is simple: a marked graph is live, which is the
//! same as free of deadlocks if each place lies on a circuit, exactly if every circuit holds a token, and a
//! place never holds more tokens than the poorest circuit through it (Commoner, Holt, Even, Pnueli, 1971).
//! All objects of a live net are reachable.
//!
//! # When a transition fires
//!
//! Each place has an interval `[a, n, b]`. Each token has a date: when its producer put it there, or the
//! start; but not before there was *evidence* that the consumer's round has begun, which is that its first
//! unit or a later one was received, absent or announced. So a source that pauses does not make the net run
//! by itself. A transition whose first object was not told of yet waits, however old its tokens are. (Of one
//! without objects, the first unit of the period counts.)
//!
//! A transition is enabled when all its input places hold their tokens. A token of date `d` can be taken
//! between `d + a` and `d + b`. Nine rules make one interval of those of all input places:
//!
//! | word | from | until | completed by |
//! |---|---|---|---|
//! | `strong-or` | min d+a | min d+b | any object |
//! | `or` | min d+a | max d+b | any object |
//! | `or-master` | min d+a | d+b of the master | any object |
//! | `and` | max d+a | min d+b | all objects |
//! | `weak-and` | max d+a | max d+b | all objects |
//! | `and-master` | max d+a | d+b of the master | all objects |
//! | `strong-master` | d+a of the master | min d+b | the master's object |
//! | `weak-master` | d+a of the master | max d+b | the master's object |
//! | `master` | d+a of the master | d+b of the master | the master's object |
//!
//! The names and that there are nine are those of the model; the bounds are inferred from its structure
//! (three ways to begin, three to end). Where the model leaves something open, this is what was chosen, and
//! why:
//!
//! | question | here | because |
//! |---|---|---|
//! | when does it fire | once it is completed and `from` has come; else at `until`, completed or not | what is there need not wait, what is lost must not hold up the rest |
//! | `until` before `from` | at `until` | the later object came too late for the others |
//! | `until` before it is enabled | when it is enabled | order is never given up, time is |
//! | what is an object that is there | received, or known not to come; and its own `d + a` has come | so `or` begins with an object that can be delivered |
//! | places that only order | are not waited for beyond their token; they count in `until`, and in `from` where that is of all places, or where there are no objects | else an `or` with one of them would be completed at once |
//! | the ends | `from` belongs to the interval, `until` does not | an object that comes when its transition fires is late at both ends |
//! | the date of a token put there by a firing that was noticed late | when it was due | what is delivered does not depend on how often the engine is called |

mod build;
mod check;
mod dot;
mod edges;
mod engine;
mod generate;
mod graph;
mod interval;
mod name;
mod order;
mod pace;
mod parts;
mod rule;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod text;
mod wire;

pub use build::Builder;
pub use check::NetError;
pub use dot::dot;
pub(crate) use edges::Edges;
pub use engine::{Engine, Event, Need, Verdict};
pub use generate::{Frame, Shape, mpeg_gop, mpeg_shape, of_gop};
pub use graph::Net;
pub use interval::Interval;
pub use name::Name;
pub use parts::{Carries, Place, PlaceId, Transition, TransitionId};
pub use rule::{Driver, Rule, Upper};
pub use text::TextError;
pub use wire::{emit, parse};
