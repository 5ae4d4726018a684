//! Decides requests of a log as a live gate would have.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use spillgate::{ManualClock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Caller, Error, Gate, Outcome, Policy, RequestView};

use crate::{Record, Wanted};

/// A gate whose clock is the time of the log. Decisions, lists, tiers, overrides and bans are the
/// gate's own.
pub struct Engine {
    gate: Gate<Memory<ManualClock>>,
    policy: Arc<Policy>,
    clock: ManualClock,
    now: Timestamp,
    wanted: Wanted,
    headers: HeaderMap,
    uri: Uri,
    options: EngineOptions,
}

/// What a log does not say.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The host of requests in logs that have none.
    pub host: Option<String>,
    /// Counts requests by the user that the log names.
    pub counts_users: bool,
}

impl Engine {
    /// A gate that begins at `start` with full quotas.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for the capacities of the limits.
    pub fn new(
        policy: Policy,
        wanted: Wanted,
        start: Timestamp,
        options: EngineOptions,
    ) -> Result<Self, Error> {
        let clock = ManualClock::new(start);
        let gate = Gate::with_store(policy, Memory::new(clock.clone()))?;
        let (headers, uri) = Default::default();
        let policy = gate.policy();
        Ok(Self { gate, policy, clock, now: start, wanted, headers, uri, options })
    }

    /// Decides a request at its time, or at that of the one before if it is earlier. `look` sees
    /// the request, who sent it, and the outcome.
    ///
    /// # Errors
    ///
    /// If the gate cannot decide.
    #[inline]
    pub fn decide<T>(
        &mut self,
        record: &Record<'_>,
        look: impl FnOnce(Timestamp, &Caller<'_>, &Outcome<'_>) -> T,
    ) -> Result<T, Error> {
        if record.time > self.now {
            self.now = record.time;
            self.clock.set(record.time);
        }
        let method = Method::from_bytes(record.method).unwrap_or_default();
        if !(self.headers.is_empty() && record.headers.is_empty()) {
            fill(&mut self.headers, &self.wanted, record);
        }
        let user = record.user.filter(|_| self.options.counts_users);
        let user = user.map(|user| Caller::User(Cow::Owned(user.to_vec())));
        let host = record.host.or(self.options.host.as_deref());
        let request = RequestView::new(&method, &self.uri, &self.headers, Some(record.peer))
            .with_path(record.path)
            .with_host(host)
            .with_caller(user.as_ref());
        let (gate, now) = (&self.gate, self.now);
        let caller = self.policy.caller(&request);
        let decided = gate.try_decide(&request, |outcome| {
            let outcome = outcome?;
            if outcome.needs_settling()
                && let Ok(status) = StatusCode::from_u16(record.status)
                && let Some(settled) = gate.settle_now(outcome, status, &HeaderMap::new())
                && let Some(error) = settled.error
            {
                return Err(error);
            }
            Ok(look(now, &caller, outcome))
        });
        // A store in memory never waits.
        decided.unwrap_or_else(|| Err(Error::store("the store did not decide at once")))
    }

    /// The gate.
    pub fn gate(&self) -> &Gate<Memory<ManualClock>> {
        &self.gate
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Fills in the headers of a request, those that a header may hold.
fn fill(headers: &mut HeaderMap, wanted: &Wanted, record: &Record<'_>) {
    headers.clear();
    for (place, value) in &record.headers {
        if let (Some(name), Ok(value)) = (wanted.name(*place), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
}
