use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use super::Limiter;
use super::act::Own;
use super::tiers::Caller;
use crate::algorithm::TokenBucket;
use crate::decision::whole_seconds;
use crate::table::Written;
use crate::{Clock, Decision, Timestamp, Verdict};

/// Spends on several limiters, all or nothing: if one of them denies, nothing is spent on any.
///
/// All decide at the same time, read from the clock of the first limiter. Put limiters that many
/// callers share last: if two calls race for the last token of one limiter, the loser undoes its
/// spends on those before it, which is cheap and reliable where no other call spends. If another
/// call has spent there since, the spend stays and counts in
/// [`Counts::kept_spends`](super::Counts::kept_spends).
///
/// ```
/// use spillgate::{Limiter, check_all};
/// use std::net::IpAddr;
///
/// let per_ip: Limiter<IpAddr> = Limiter::new("10/s")?;
/// let in_all: Limiter<()> = Limiter::new("1000/s")?;
///
/// let address = IpAddr::from([203, 0, 113, 7]);
/// let decision = check_all([per_ip.spend(&address, 1), in_all.spend(&(), 1)]);
/// assert!(decision.is_allowed());
/// # Ok::<(), spillgate::Error>(())
/// ```
pub fn check_all<'a, A: AsMut<[Spend<'a>]>>(mut spends: A) -> AllDecision<A> {
    let now = spends.as_mut().first().map_or(Timestamp::ZERO, |spend| spend.limiter.now());
    check_all_at(spends, now)
}

/// [`check_all`] at a given time.
pub fn check_all_at<'a, A: AsMut<[Spend<'a>]>>(mut spends: A, now: Timestamp) -> AllDecision<A> {
    let all = spends.as_mut();
    let allowed = evaluate(all, now) && spend_all(all, now);
    for spend in all {
        spend.limiter.count(spend.decision.as_ref(), allowed);
    }
    AllDecision { spends, allowed }
}

/// Peeks every spend, and returns whether all would be allowed.
fn evaluate(spends: &mut [Spend<'_>], now: Timestamp) -> bool {
    let mut allowed = true;
    for spend in spends {
        let decision = spend.look(now);
        allowed &= decision.is_allowed();
        spend.decision = Some(decision);
    }
    allowed
}

/// Spends all, or undoes them if one is denied after all.
fn spend_all(spends: &mut [Spend<'_>], now: Timestamp) -> bool {
    for index in 0..spends.len() {
        let (earlier, rest) = spends.split_at_mut(index);
        let Some(spend) = rest.first_mut() else {
            break;
        };
        let (decision, written) =
            spend.limiter.decide(spend.caller, spend.own.as_ref(), spend.cost, now);
        spend.decision = Some(decision);
        spend.written = written;
        if decision.is_denied() {
            undo_all(earlier, now);
            return false;
        }
    }
    true
}

/// Undoes spends, the last one first, so that two of one caller can be undone.
fn undo_all(spends: &mut [Spend<'_>], now: Timestamp) {
    for spend in spends.iter_mut().rev() {
        if let Some(written) = spend.written.take() {
            spend.limiter.undo(spend.caller, spend.own.as_ref(), written, now);
        }
    }
    for spend in spends {
        spend.decision = Some(spend.look(now));
    }
}

/// A cost for one caller of one limiter, for [`check_all`].
#[must_use = "a spend is spent by `check_all`"]
pub struct Spend<'a> {
    limiter: &'a dyn Decide,
    caller: Caller,
    /// The quota that comes with the call, if it is not the limiter's.
    own: Option<TokenBucket>,
    cost: u64,
    decision: Option<Decision>,
    written: Option<Written>,
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// A cost for one caller, for [`check_all`].
    pub fn spend(&self, key: &K, cost: u64) -> Spend<'_>
    where
        S: Send + Sync,
    {
        let caller = self.caller(key);
        Spend { limiter: self, caller, own: None, cost, decision: None, written: None }
    }
}

impl Spend<'_> {
    /// The same under a quota of its own.
    pub(super) fn with(self, bucket: TokenBucket) -> Self {
        Self { own: Some(bucket), ..self }
    }

    fn look(&self, now: Timestamp) -> Decision {
        self.limiter.look(self.caller, self.own.as_ref(), self.cost, now)
    }
}

impl fmt::Debug for Spend<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spend")
            .field("cost", &self.cost)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

/// The result of [`check_all`].
#[derive(Debug)]
#[must_use]
pub struct AllDecision<A> {
    spends: A,
    allowed: bool,
}

impl<'a, A: AsRef<[Spend<'a>]>> AllDecision<A> {
    /// True if every limiter allowed the call, and all costs were spent.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// True if a limiter denied the call, and no cost was spent.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        !self.allowed
    }

    /// The decision of each limiter, in the order of the spends. If the call was denied, the
    /// decisions of the other limiters are peeks.
    pub fn decisions<'s>(&'s self) -> impl Iterator<Item = Decision> + use<'s, 'a, A>
    where
        'a: 's,
    {
        self.spends.as_ref().iter().filter_map(|spend| spend.decision)
    }

    /// The decision as an enum. `retry_after` is the latest of all.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.retry_after() {
            _ if self.allowed => Verdict::Allowed,
            Some(retry_after) => Verdict::Denied { retry_after },
            None => Verdict::Never,
        }
    }

    /// The time until all would allow the same call: zero if they did, `None` if waiting does
    /// not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.decisions()
            .try_fold(Duration::ZERO, |latest, decision| Some(latest.max(decision.retry_after()?)))
    }

    /// [`retry_after`](Self::retry_after) in seconds, rounded up, as a `Retry-After` header
    /// has it.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after().map(whole_seconds)
    }

    /// The longest [wait](Decision::wait) of an allowed call.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let waits = self.decisions().map(|decision| decision.wait()).filter(|_| self.allowed);
        waits.max().unwrap_or_default()
    }
}

/// A limiter of any key, clock and hasher.
trait Decide: Send + Sync {
    fn now(&self) -> Timestamp;
    fn look(&self, caller: Caller, own: Own<'_>, cost: u64, now: Timestamp) -> Decision;
    fn decide(
        &self,
        caller: Caller,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Written>);
    fn undo(&self, caller: Caller, own: Own<'_>, written: Written, now: Timestamp);
    fn count(&self, decision: Option<&Decision>, allowed: bool);
}

impl<K: ?Sized, C: Clock, S: Send + Sync> Decide for Limiter<K, C, S> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn look(&self, caller: Caller, own: Own<'_>, cost: u64, now: Timestamp) -> Decision {
        Limiter::look(self, caller, own, cost, now)
    }

    fn decide(
        &self,
        caller: Caller,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Written>) {
        self.spend_and_record(caller, own, cost, now)
    }

    fn undo(&self, caller: Caller, own: Own<'_>, written: Written, now: Timestamp) {
        if !Limiter::undo(self, caller, own, written, now) {
            self.counters.kept_spend();
        }
    }

    /// Counts a call that was allowed, or that this limiter denied.
    fn count(&self, decision: Option<&Decision>, allowed: bool) {
        if let Some(decision) = decision.filter(|decision| allowed || decision.is_denied()) {
            self.counters.count(decision);
        }
    }
}
