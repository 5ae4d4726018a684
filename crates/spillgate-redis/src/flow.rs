//! On whose behalf Redis is called: where more is asked than it answers, calls take turns by
//! this.

use std::future::Future;

use tokio::task::{self, Id};

use crate::Name;

tokio::task_local! {
    static FLOW: Flow;
}

/// Calls of one client under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    /// `None` for calls that belong to no limit.
    pub(crate) limit: Option<Name>,
    /// The task that serves the client; `None` outside of any.
    pub(crate) client: Option<Id>,
}

impl Flow {
    /// That of the current task, unless it works for [another](inherit_client).
    pub(crate) fn current() -> Self {
        let own = |_| Self { limit: None, client: task::try_id() };
        FLOW.try_with(|flow| *flow).unwrap_or_else(own)
    }
}

/// Runs a future whose calls are about a limit, for the client of the current task.
pub(crate) fn of_limit<F: Future>(limit: Name, future: F) -> impl Future<Output = F::Output> {
    FLOW.scope(Flow { limit: Some(limit), ..Flow::current() }, future)
}

/// Runs a future, in whatever task, on behalf of the client that the current task serves.
///
/// While more is asked of a store than its server answers, clients take turns, and a task is
/// taken for a client. A server that handles the requests of one client in several tasks must wrap
/// what it spawns, or the client gets a turn for each.
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
