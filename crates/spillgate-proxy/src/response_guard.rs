use std::sync::Arc;
use std::task::Context;

use http::StatusCode;
use tracing::warn;

use super::client::Client;
use super::failure::Failure;
use spillgate_net::{Activity, InProgress};
use spillgate_tower::HeldPermits;

/// Held while a response is sent; counts it at the end.
#[derive(Debug)]
pub(super) struct ResponseGuard {
    client: Arc<Client>,
    status: StatusCode,
    is_cut: bool,
    /// The request is in progress for as long as this lives.
    _in_progress: InProgress<Arc<Activity>>,
    /// Of concurrency limits, released with this.
    _permits: Option<HeldPermits>,
}

impl ResponseGuard {
    pub(super) fn new(
        client: &Arc<Client>,
        status: StatusCode,
        in_progress: InProgress<Arc<Activity>>,
        permits: Option<HeldPermits>,
    ) -> Self {
        Self {
            client: Arc::clone(client),
            status,
            is_cut: false,
            _in_progress: in_progress,
            _permits: permits,
        }
    }

    /// The response is incomplete.
    pub(super) fn cut(&mut self, failure: Failure, over_http2: bool, context: &Context<'_>) -> Cut {
        self.is_cut = true;
        let proxy = &self.client.proxy;
        proxy.stats.failed(&failure);
        proxy.log_limit.log(|suppressed| {
            warn!(error = %failure, suppressed, "incomplete response");
        });
        if over_http2 {
            // The connection has a task of its own, which runs before this one is polled again.
            context.waker().wake_by_ref();
        }
        Cut { failure, flushes: (!over_http2).then(|| self.client.activity.flushes()) }
    }

    /// True if what came before has not been sent yet.
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

/// The failure that ends a response. hyper drops unsent bytes when the body fails, so the failure is
/// reported after everything else was sent.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) failure: Failure,
    /// [`Activity::flushes`] at that moment; `None` if the next poll is late enough.
    flushes: Option<u64>,
}
