//! What rules have decided, for people to see.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use utoipa::ToSchema;

use crate::limits::DECISIONS_KEPT;

/// A rule began or ended to be in force.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RuleDecision {
    /// The stream.
    pub stream: String,
    /// The rule; "(own context)" is the relay's own.
    pub rule: String,
    /// Whether it is in force since then.
    pub in_force: bool,
    /// What was measured, and what it was compared with.
    pub why: String,
    /// What changes by that, or is undone; nothing of a rule that the configuration has no more.
    pub changes: Vec<String>,
    /// Why what it says could not be done, if so.
    pub failed: Option<String>,
}

/// A decision, and when it was made.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RuleLogLine {
    /// Seconds since 1970.
    pub at: f64,
    /// What was decided.
    #[serde(flatten)]
    pub decision: RuleDecision,
}

/// What rules have decided.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct RuleLog {
    /// The rules that are in force now, by stream.
    pub in_force: BTreeMap<String, Vec<String>>,
    /// The last decisions, the newest first.
    pub decisions: Vec<RuleLogLine>,
}

/// The log, shared by the rules that decide and the clients that look.
#[derive(Debug, Default)]
pub struct Decisions(Mutex<RuleLog>);

impl Decisions {
    /// What they have decided.
    pub fn log(&self) -> RuleLog {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a decision down; `in_force` are the rules of that stream from now on.
    pub(crate) fn put(&self, decision: RuleDecision, in_force: Vec<String>) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if in_force.is_empty() {
            log.in_force.remove(&decision.stream);
        } else {
            log.in_force.insert(decision.stream.clone(), in_force);
        }
        log.decisions.insert(0, RuleLogLine { at, decision });
        log.decisions.truncate(DECISIONS_KEPT);
    }
}
