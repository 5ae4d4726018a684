use std::sync::Arc;
use std::task::Context;

use http::StatusCode;
use tracing::warn;

use super::client::Client;
use super::failure::Failure;
use spillgate_net::{Activity, InProgress};

/// A request whose response is being sent. It is counted when that has ended.
#[derive(Debug)]
pub(super) struct ResponseGuard {
    client: Arc<Client>,
    status: StatusCode,
    is_cut: bool,
    /// The client is served for as long as this lives.
    _in_progress: InProgress<Arc<Activity>>,
}

impl ResponseGuard {
    pub(super) fn new(
        client: &Arc<Client>,
        status: StatusCode,
        in_progress: InProgress<Arc<Activity>>,
    ) -> Self {
        Self { client: Arc::clone(client), status, is_cut: false, _in_progress: in_progress }
    }

    /// The response has no end.
    pub(super) fn cut(&mut self, failure: Failure, over_http2: bool, context: &Context<'_>) -> Cut {
        self.is_cut = true;
        let proxy = &self.client.proxy;
        proxy.stats.failed(&failure);
        proxy.log_limit.log(|suppressed| {
            warn!(error = %failure, suppressed, "a response broke off");
        });
        if over_http2 {
            // The connection has a task of its own, whose turn is before the next of this one.
            context.waker().wake_by_ref();
        }
        Cut { failure, flushes: (!over_http2).then(|| self.client.activity.flushes()) }
    }

    /// True if the client has not been sent what came before.
    pub(super) fn holds_back(&self, cut: &Cut) -> bool {
        cut.flushes == Some(self.client.activity.flushes())
    }
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        let stats = &self.client.proxy.stats;
        if self.is_cut { stats.cut() } else { stats.answered(self.status) }
    }
}

/// Why a response breaks off. hyper forgets what it has not sent as soon as it hears of that, the
/// head of the response included, so it is told after everything else was sent.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) failure: Failure,
    /// How often everything had been sent before; `None` if it is enough to wait for a turn.
    flushes: Option<u64>,
}
