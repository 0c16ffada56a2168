//! The pages that fronts have of each stream, for the status page to lead to.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use utoipa::ToSchema;

/// A page that there is of each stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct StreamPage {
    /// What it does, for people.
    pub label: &'static str,
    /// What its path begins with; the stream's name follows.
    pub path: &'static str,
    /// Whether it is for streams that wait for a publisher.
    pub publishes: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct StreamPages(Mutex<Vec<StreamPage>>);

impl StreamPages {
    /// Adds those of one front.
    pub fn add(&self, pages: &[StreamPage]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(pages);
    }

    pub(crate) fn all(&self) -> Vec<StreamPage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
