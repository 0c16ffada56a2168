//! Tasks that run as long as the relay does.

use outflow_vital::{Fatal, why_panicked};
use tokio::task::{Id, JoinSet};

/// Tasks without which the relay cannot go on.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: JoinSet<()>,
    names: Vec<(Id, String)>,
}

impl Tasks {
    /// Runs one more.
    pub(crate) fn run(&mut self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) {
        let id = self.running.spawn(task).id();
        self.names.push((id, name.into()));
    }

    /// Waits until one of them has ended, which none should.
    pub(crate) async fn ended(&mut self) -> Fatal {
        let (id, why) = match self.running.join_next_with_id().await {
            Some(Ok((id, ()))) => (id, "it was over".to_owned()),
            Some(Err(error)) => (
                error.id(),
                error
                    .try_into_panic()
                    .map_or_else(|cancelled| cancelled.to_string(), |panic| why_panicked(&*panic)),
            ),
            None => std::future::pending().await,
        };
        let name = self.names.iter().find(|(named, _)| *named == id).map(|(_, name)| name.clone());
        Fatal { what: name.unwrap_or_default(), why }
    }

    pub(crate) fn abort(&mut self) {
        self.running.abort_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_one_is_told_with_its_reason() {
        let mut tasks = Tasks::default();
        tasks.run("one that goes on", std::future::pending());
        tasks.run("one that panics", async { panic!("on purpose") });
        let fatal = tasks.ended().await;
        assert_eq!((&*fatal.what, &*fatal.why), ("one that panics", "a panic: on purpose"));
        tasks.run("one that ends", async {});
        assert_eq!(tasks.ended().await.what, "one that ends");
    }
}
