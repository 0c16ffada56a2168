//! Which flow loses what when a buffer of a link is full: the rules by which packets are discarded.
//!
//! What shares a buffer is the other half of a policy; [`Policy`] names both. Those of the paper (ABD,
//! section 2.3) come first, then ours.

mod alone;
mod application;
mod dependents;
mod least_value;
mod rule;

pub use rule::Unit;
pub(super) use rule::{Discard, Verdict};

/// What shares a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grouping {
    /// Everything.
    Link,
    /// The packets of a flow.
    Flow,
    /// The flows of an application.
    Application,
}

macro_rules! policies {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $grouping:ident, $discard:path),+ $(,)?) => {
        /// How packets wait for a link and which of them are discarded: the policies there are, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Policy {
            $($(#[$doc])* $variant,)+
        }

        impl Policy {
            /// All policies.
            pub const ALL: &[Policy] = &[$(Policy::$variant,)+];

            /// Its name, as it stands in configurations.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Policy::$variant => $name,)+
                }
            }

            /// The policy of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Policy::ALL.iter().copied().find(|policy| policy.as_str() == name)
            }

            /// What shares a buffer.
            pub const fn grouping(self) -> Grouping {
                match self {
                    $(Policy::$variant => Grouping::$grouping,)+
                }
            }

            /// The rule of one buffer, at its beginning.
            pub(super) fn begin(self, unit: Unit) -> Box<dyn Discard> {
                match self {
                    $(Policy::$variant => Box::new(<$discard>::new(unit)),)+
                }
            }
        }
    };
}

policies! {
    /// Shared buffer: one for everything; what does not fit is discarded alone.
    Shb = "shb": Link, alone::Alone,
    /// Per-flow buffering: one a flow; what does not fit is discarded alone.
    Pfb = "pfb": Flow, alone::Alone,
    /// Per-flow buffering with active discard: and with it all that needs it.
    PfbAd = "pfb-ad": Flow, dependents::Dependents,
    /// Active buffering and discard: one an application; after an I that does not fit all flows are silent up to
    /// the next I of any, after a P up to the next I or P.
    Abd = "abd": Application, application::Application,
    /// Ours: one an application; what does not fit is discarded, and with it all of its flow that needs it.
    Marked = "marked": Application, dependents::Dependents,
    /// Ours: one an application; room is made by those packets that cost least: what is of no use already, then
    /// what nothing needs, then the ends of chains, waiting or arriving.
    LeastValue = "least-value": Application, least_value::LeastValue,
    /// Ours: the same, and room that an application does not need is lent to others, until it does: then they
    /// give back what costs them least.
    Elastic = "elastic": Application, least_value::LeastValue,
}

impl Policy {
    /// Whether buffers lend each other room.
    pub const fn lends(self) -> bool {
        matches!(self, Policy::Elastic)
    }
}
