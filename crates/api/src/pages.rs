//! What fronts add to HTTP: routes with their descriptions, and metrics.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use outflow_control::{Control, Task};
use prometheus_client::collector::Collector;
use utoipa_axum::router::OpenApiRouter;

use crate::{Http, HttpError};

/// Makes a front's metrics, whenever they are asked for.
pub type Measure = fn(Control) -> Task<Result<Box<dyn Collector>, HttpError>>;

/// What one front adds.
#[derive(Clone, Default)]
pub struct Page {
    /// What needs the right to control.
    pub guarded: OpenApiRouter<Http>,
    /// What does not.
    pub open: OpenApiRouter<Http>,
    /// Its metrics.
    pub measure: Option<Measure>,
}

/// What all fronts add; shared by [`Control::shared`].
#[derive(Default)]
pub struct Pages(Mutex<Vec<Page>>);

impl Pages {
    /// Adds a front's, before [`router`](crate::router) is made.
    pub fn add(&self, page: Page) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(page);
    }

    /// All routes.
    pub(crate) fn together(&self) -> Page {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        pages.into_iter().fold(Page::default(), |all, page| Page {
            guarded: all.guarded.merge(page.guarded),
            open: all.open.merge(page.open),
            measure: None,
        })
    }

    /// All metrics.
    pub(crate) fn measures(&self) -> Vec<Measure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(|page| page.measure).collect()
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pages")
    }
}
