use std::cell::Cell;
use std::sync::Arc;

use spillgate::adaptive::StepReason;
use spillgate::{Clock, SystemClock, Timestamp};
use spillgate_policy::{Answer, LimitState, Outcome, Subject};

use super::limit_meter::{LimitMeter, StoreClock};
use super::{LatencyHistogram, LimitLabel, Metrics, StepLabels};
use crate::per_limit::PerLimit;

/// Counts what one enforcer decides.
pub(crate) struct Meter {
    metrics: Metrics,
    limits: PerLimit<Arc<LimitMeter>>,
    clock: Box<StoreClock>,
}

impl Meter {
    pub(crate) fn new(metrics: Metrics, clock: Box<StoreClock>) -> Self {
        Self { metrics, limits: PerLimit::default(), clock }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn count(&self, subject: Subject<'_>, outcome: &Outcome<'_>) {
        let answer = outcome.answer();
        match answer {
            Answer::Blocked => {
                self.metrics.blocked.inc();
                return;
            }
            Answer::Banned => {
                self.metrics.banned.inc();
                return;
            }
            Answer::HostRequired => {
                self.metrics.without_host.inc();
                return;
            }
            Answer::Shed => return self.count_shed(outcome),
            _ => {}
        }
        if outcome.ban().is_some() {
            self.metrics.shadow_banned.inc();
        }
        let mut limits = outcome.limits().peekable();
        if limits.peek().is_none() {
            self.metrics.unlimited.inc();
        }
        // A request may be free and still went ahead; anything else of cost 0 is a peek or refund.
        let is_request = matches!(subject, Subject::Request(_));
        limits.filter(|limit| is_request || limit.decision().cost() > 0).for_each(|limit| {
            self.with(limit, |meter| {
                if limit.decision().is_denied() {
                    meter.denied(subject, outcome, limit, &*self.clock);
                } else if answer == Answer::Allowed {
                    meter.allowed(subject, outcome, limit, &*self.clock);
                }
            });
        });
    }

    #[cold]
    fn count_shed(&self, outcome: &Outcome<'_>) {
        let class = outcome.priority().unwrap_or_default().class();
        for limit in outcome.limits().filter(|limit| limit.decision().is_denied()) {
            self.with(limit, |meter| meter.shed(class));
        }
    }

    #[inline]
    fn with(&self, limit: LimitState<'_>, then: impl FnOnce(&LimitMeter)) {
        self.limits.with(limit, || self.limit(limit.name()), |meter| then(meter));
    }

    /// The meter of a limit.
    pub(crate) fn limit(&self, name: &str) -> Arc<LimitMeter> {
        self.metrics.limits.get(name)
    }

    pub(crate) fn store_failed(&self) {
        self.metrics.store_errors.inc();
    }

    pub(crate) fn uncharged(&self, limit: &str, amount: u64) {
        let label = LimitLabel { limit: limit.to_owned() };
        self.metrics.uncharged.get_or_create(&label).inc_by(amount);
    }

    /// Counts steps that moved an adaptive limit.
    pub(crate) fn stepped(&self, limit: &str, reason: StepReason, changes: u64) {
        let labels = StepLabels { limit: limit.to_owned(), reason: reason.name() };
        self.metrics.adaptive_changes.get_or_create(&labels).inc_by(changes);
    }

    pub(crate) fn missing_peer(&self) {
        self.metrics.missing_peer.inc();
    }

    /// Times a decision, if it is one that is timed.
    pub(crate) fn time(&self) -> Option<Timer<'_>> {
        thread_local! {
            static DECISIONS: Cell<u8> = const { Cell::new(0) };
        }
        let decision = DECISIONS.get();
        DECISIONS.set(decision.wrapping_add(1));
        // Reading the clock twice costs more than most decisions.
        (decision % 64 == 0)
            .then(|| Timer { histogram: &self.metrics.decision_seconds, start: SystemClock.now() })
    }
}

/// Times a decision until it is dropped, or [forgotten](Self::forget).
pub(crate) struct Timer<'m> {
    histogram: &'m LatencyHistogram,
    start: Timestamp,
}

impl Timer<'_> {
    /// Leaves a decision out that was not made after all.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.histogram.observe(SystemClock.now().since(self.start));
    }
}
