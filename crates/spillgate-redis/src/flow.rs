//! The flow that a Redis call belongs to: under overload, flows take turns.

use std::future::Future;

use tokio::task::{self, Id};

use crate::Name;

tokio::task_local! {
    static FLOW: Flow;
}

/// The calls of one client under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    /// `None` for calls outside of any limit.
    pub(crate) limit: Option<Name>,
    /// The task that serves the client, if any.
    pub(crate) client: Option<Id>,
}

impl Flow {
    /// The flow of the current task, unless it [inherits](inherit_client) another.
    pub(crate) fn current() -> Self {
        let own = |_| Self { limit: None, client: task::try_id() };
        FLOW.try_with(|flow| *flow).unwrap_or_else(own)
    }
}

/// Runs a future whose calls belong to a limit, for the client of the current task.
pub(crate) fn of_limit<F: Future>(limit: Name, future: F) -> impl Future<Output = F::Output> {
    FLOW.scope(Flow { limit: Some(limit), ..Flow::current() }, future)
}

/// Runs a future, in any task, on behalf of the client that the current task serves.
///
/// Under overload clients take turns, and each task counts as a client. Wrap the tasks that a
/// server spawns for one client, or the client gets a turn for each.
pub fn inherit_client<F: Future>(future: F) -> impl Future<Output = F::Output> {
    FLOW.scope(Flow::current(), future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_is_a_client_unless_it_works_for_another() {
        let limit = Name::from_bytes([1; 16]);
        let (own, inherited, other) = tokio::spawn(of_limit(limit, async {
            let inherited = tokio::spawn(inherit_client(async { Flow::current() })).await;
            let other = tokio::spawn(async { Flow::current() }).await;
            (Flow::current(), inherited.unwrap(), other.unwrap())
        }))
        .await
        .unwrap();
        assert_eq!(own, inherited);
        assert_eq!(own.limit, Some(limit));
        assert!(other.limit.is_none() && other.client.is_some());
    }
}
