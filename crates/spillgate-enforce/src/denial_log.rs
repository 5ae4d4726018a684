use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use spillgate::{Clock, Limiter, Quota, QuotaBuilder, SystemClock, Timestamp};
use spillgate_policy::{Answer, Ban, Error, LimitState, Mode, Outcome, Subject};
use tracing::{Level, error, event_enabled, field, info, warn};

use crate::headers::whole_millis;
use crate::per_limit::PerLimit;

/// Logs denials, rate-limited per limit: an attack must not fill the disk.
#[derive(Default)]
pub(crate) struct DenialLog {
    limits: PerLimit<Throttle>,
    blocked: Throttle,
    banned: Throttle,
    bans: Throttle,
    without_host: Throttle,
    store: StoreThrottle,
    debts: Throttle,
}

impl DenialLog {
    pub(crate) fn decided(&self, subject: Subject<'_>, outcome: &Outcome<'_>) {
        let about = &About::of(subject);
        match outcome.answer() {
            Answer::Denied => self.denied(about, outcome),
            Answer::Shed => self.shed(about, outcome),
            Answer::Blocked => refused(&self.blocked, about, outcome, "blocked"),
            Answer::Banned => refused(&self.banned, about, outcome, "refused: banned"),
            Answer::HostRequired => refused(&self.without_host, about, outcome, WITHOUT_HOST),
            _ => {
                // Any other limit that says no is heard.
                let shadow = outcome.limits().filter(|limit| limit.decision().is_denied());
                shadow.for_each(|limit| self.denied_in_shadow(about, limit));
            }
        }
    }

    fn denied(&self, about: &About<'_>, outcome: &Outcome<'_>) {
        if !event_enabled!(target: "spillgate", Level::WARN) {
            return;
        }
        let Some(limit) = outcome.nearest() else { return };
        let Some(suppressed) = self.admit(limit) else { return };
        warn!(
            target: "spillgate",
            limit = limit.name(),
            caller = outcome.refused_caller().map(field::display),
            counted = %limit.counted(),
            domain = about.domain.map(field::display),
            method = about.method.map(field::display),
            path = about.path.map(field::display),
            retry_after_ms = outcome.retry_after().map(whole_millis),
            suppressed,
            "denied"
        );
    }

    /// Logs a request that the service could not take.
    fn shed(&self, about: &About<'_>, outcome: &Outcome<'_>) {
        if !event_enabled!(target: "spillgate", Level::WARN) {
            return;
        }
        let Some(limit) = outcome.nearest() else { return };
        let Some(suppressed) = self.admit(limit) else { return };
        warn!(
            target: "spillgate",
            limit = limit.name(),
            class = outcome.priority().unwrap_or_default().class().name(),
            caller = outcome.refused_caller().map(field::display),
            method = about.method.map(field::display),
            path = about.path.map(field::display),
            retry_after_ms = outcome.retry_after().map(whole_millis),
            suppressed,
            "shed"
        );
    }

    fn denied_in_shadow(&self, about: &About<'_>, limit: LimitState<'_>) {
        if !event_enabled!(target: "spillgate", Level::INFO) {
            return;
        }
        let Some(suppressed) = self.admit(limit) else { return };
        info!(
            target: "spillgate",
            limit = limit.name(),
            counted = %limit.counted(),
            domain = about.domain.map(field::display),
            method = about.method.map(field::display),
            path = about.path.map(field::display),
            retry_after_ms = limit.decision().retry_after().map(whole_millis),
            suppressed,
            "would be denied, but the limit is in shadow"
        );
    }

    /// Logs a ban that begins.
    pub(crate) fn banned(&self, ban: &Ban) {
        if !event_enabled!(target: "spillgate", Level::WARN) {
            return;
        }
        let Some(suppressed) = self.bans.admit(SystemClock.now()) else { return };
        let message = match ban.mode() {
            Mode::Shadow => "would be banned, but the ban is in shadow",
            _ => "banned",
        };
        warn!(
            target: "spillgate",
            limit = ban.limit(),
            caller = %ban.caller(),
            duration_ms = whole_millis(ban.until().since(ban.since())),
            count = ban.count(),
            suppressed,
            "{message}"
        );
    }

    /// Notes bans that began and cannot be logged one by one.
    pub(crate) fn more_banned(&self, bans: u64) {
        self.bans.suppress(bans);
    }

    pub(crate) fn store_failed(&self, error: &Error) {
        if !event_enabled!(target: "spillgate", Level::ERROR) {
            return;
        }
        let Some(suppressed) = self.store.0.admit(SystemClock.now()) else { return };
        error!(
            target: "spillgate",
            %error,
            suppressed,
            "the store failed; logged at most once per minute"
        );
    }

    pub(crate) fn uncharged(&self, limit: &str, amount: u64) {
        if !event_enabled!(target: "spillgate", Level::WARN) {
            return;
        }
        let Some(suppressed) = self.debts.admit(SystemClock.now()) else { return };
        warn!(
            target: "spillgate",
            limit,
            uncharged = amount,
            suppressed,
            "a cost was not charged in full: the caller has reached the limit's max-debt"
        );
    }

    fn admit(&self, limit: LimitState<'_>) -> Option<u64> {
        self.limits
            .with(limit, Throttle::default, |throttle| throttle.admit(limit.decision().now()))
    }
}

const WITHOUT_HOST: &str =
    "refused: the policy has limits for hosts, and the request names none clearly";

/// Logs a request that is refused by no limit.
fn refused(throttle: &Throttle, about: &About<'_>, outcome: &Outcome<'_>, message: &str) {
    if !event_enabled!(target: "spillgate", Level::WARN) {
        return;
    }
    let Some(suppressed) = throttle.admit(SystemClock.now()) else { return };
    warn!(
        target: "spillgate",
        caller = outcome.refused_caller().map(field::display),
        domain = about.domain.map(field::display),
        method = about.method.map(field::display),
        path = about.path.map(field::display),
        suppressed,
        "{message}"
    );
}

/// Passes 10 events per second, with a burst of 20.
pub(crate) struct Throttle {
    /// `None` if there was no memory for it: then nothing passes.
    limiter: Option<Limiter<()>>,
    suppressed: AtomicU64,
}

impl Throttle {
    pub(crate) fn new(quota: QuotaBuilder) -> Self {
        let limiter = Limiter::builder(quota).capacity(1).build();
        Self { limiter: limiter.ok(), suppressed: AtomicU64::new(0) }
    }

    /// How many events were suppressed since the last; `None` if this one is, too.
    pub(crate) fn admit(&self, now: Timestamp) -> Option<u64> {
        // Relaxed: the count orders nothing.
        if self.limiter.as_ref().is_some_and(|limiter| limiter.check_at(&(), 1, now).is_allowed()) {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppress(1);
        None
    }

    /// Notes events that are not logged.
    fn suppress(&self, events: u64) {
        self.suppressed.fetch_add(events, Ordering::Relaxed);
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(Quota::per_second(10).burst(20))
    }
}

/// Passes one event per minute: an outage of the store lasts, and metrics count it.
struct StoreThrottle(Throttle);

impl Default for StoreThrottle {
    fn default() -> Self {
        Self(Throttle::new(Quota::per_minute(1)))
    }
}

/// What a question is about, as far as a client has sent it.
#[derive(Default)]
struct About<'a> {
    domain: Option<Shown<'a>>,
    method: Option<Shown<'a>>,
    path: Option<Shown<'a>>,
}

impl<'a> About<'a> {
    fn of(subject: Subject<'a>) -> Self {
        match subject {
            Subject::Request(request) => {
                let (method, path) = (request.method().as_str(), request.path());
                Self { method: Some(Shown(method)), path: Some(Shown(path)), domain: None }
            }
            Subject::Descriptors(domain) => Self { domain: Some(Shown(domain)), ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// A text that a client sent: cut, and escaped against log injection.
#[derive(Clone, Copy)]
struct Shown<'a>(&'a str);

const SHOWN: usize = 128;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(SHOWN) {
            write!(f, "{}", character.escape_default())?;
        }
        if characters.next().is_some() { f.write_str("…") } else { Ok(()) }
    }
}
