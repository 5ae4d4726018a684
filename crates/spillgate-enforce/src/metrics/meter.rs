use std::cell::Cell;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use spillgate::adaptive::{PriorityClass, StepReason};
use spillgate::{Clock, SystemClock, Timestamp};
use spillgate_policy::{Answer, LimitState, Mode, Outcome, Subject};

use super::{Labels, LimitLabel, Metrics, ShedLabels, StepLabels};
use crate::per_limit::PerLimit;

/// Counts what one enforcer decides.
pub(crate) struct Meter {
    metrics: Metrics,
    limits: PerLimit<Outcomes>,
    /// By priority class, the lowest first.
    shed: PerLimit<[Counter; PriorityClass::ALL.len()]>,
}

/// The counters of one limit.
struct Outcomes {
    allowed: Counter,
    denied: Counter,
    shadow_denied: Counter,
}

impl Meter {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics, limits: PerLimit::default(), shed: PerLimit::default() }
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
        limits
            .filter(|limit| is_request || limit.decision().cost() > 0)
            .for_each(|limit| self.count_limit(limit, answer));
    }

    fn count_limit(&self, limit: LimitState<'_>, answer: Answer) {
        let make = || self.outcomes(limit.name());
        self.limits.with(limit, make, |outcomes| {
            if limit.decision().is_denied() {
                let is_shadow = limit.mode() == Mode::Shadow;
                if is_shadow { &outcomes.shadow_denied } else { &outcomes.denied }.inc();
            } else if answer == Answer::Allowed {
                outcomes.allowed.inc();
            }
        });
    }

    #[cold]
    fn count_shed(&self, outcome: &Outcome<'_>) {
        let class = outcome.priority().unwrap_or_default().class();
        for limit in outcome.limits().filter(|limit| limit.decision().is_denied()) {
            self.shed.with(
                limit,
                || self.shed_by_class(limit.name()),
                |classes| {
                    let mut classes = PriorityClass::ALL.iter().zip(classes);
                    if let Some((_, counter)) = classes.find(|(known, _)| **known == class) {
                        counter.inc();
                    }
                },
            );
        }
    }

    /// The counters of shed requests of a limit. They show 0 from then on.
    pub(crate) fn shed_by_class(&self, limit: &str) -> [Counter; PriorityClass::ALL.len()] {
        PriorityClass::ALL.map(|class| {
            let labels = ShedLabels { limit: limit.to_owned(), class: class.name() };
            self.metrics.shed.get_or_create_owned(&labels)
        })
    }

    fn outcomes(&self, limit: &str) -> Outcomes {
        let counter = |outcome| {
            let labels = Labels { limit: limit.to_owned(), outcome };
            self.metrics.requests.get_or_create_owned(&labels)
        };
        Outcomes {
            allowed: counter("allowed"),
            denied: counter("denied"),
            shadow_denied: counter("shadow-denied"),
        }
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
        // A histogram takes a lock, and most decisions are not worth it.
        decision
            .is_multiple_of(64)
            .then(|| Timer { histogram: &self.metrics.decision_seconds, start: SystemClock.now() })
    }
}

/// Times a decision until it is dropped, or [forgotten](Self::forget).
pub(crate) struct Timer<'m> {
    histogram: &'m Histogram,
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
        self.histogram.observe(SystemClock.now().since(self.start).as_secs_f64());
    }
}
