use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use super::Limiter;
use super::act::Own;
use super::tiers::Client;
use crate::algorithm::TokenBucket;
use crate::table::Written;
use crate::{Clock, Decision, Timestamp, Verdict};

/// Spends on several limiters at once, all or nothing: if any of them denies,
/// nothing is spent on any.
///
/// All are decided at one time, `now`. Put the limiters that most callers share
/// last: where two calls race for the last token of one, what the loser spent on
/// those before it is taken back, and that is cheapest and surest where nobody
/// else spends. If somebody has spent there meanwhile the spend stays, and is
/// counted in [`Counts::kept_charges`](super::Counts::kept_charges).
///
/// ```
/// use spillgate::{check_all, Clock, Limiter, SystemClock};
/// use std::net::IpAddr;
///
/// let per_ip: Limiter<IpAddr> = Limiter::new("10/s")?;
/// let in_all: Limiter<()> = Limiter::new("1000/s")?;
///
/// let address = IpAddr::from([203, 0, 113, 7]);
/// let spends = [per_ip.spend(&address, 1), in_all.spend(&(), 1)];
/// let decision = check_all(spends, SystemClock.now());
/// assert!(decision.is_allowed());
/// # Ok::<(), spillgate::Error>(())
/// ```
pub fn check_all<'a, A: AsMut<[Spend<'a>]>>(mut spends: A, now: Timestamp) -> AllDecision<A> {
    let all = spends.as_mut();
    let allowed = evaluate(all, now) && spend_all(all, now);
    for spend in all {
        spend.limiter.count(spend.decision.as_ref(), allowed);
    }
    AllDecision { spends, allowed }
}

/// Looks at every spend, and tells whether all of them would pass.
fn evaluate(spends: &mut [Spend<'_>], now: Timestamp) -> bool {
    let mut allowed = true;
    for spend in spends {
        let decision = spend.look(now);
        allowed &= decision.is_allowed();
        spend.decision = Some(decision);
    }
    allowed
}

/// Spends every spend, or takes all back if one does not pass after all.
fn spend_all(spends: &mut [Spend<'_>], now: Timestamp) -> bool {
    for index in 0..spends.len() {
        let (earlier, rest) = spends.split_at_mut(index);
        let Some(spend) = rest.first_mut() else {
            break;
        };
        let (decision, written) =
            spend.limiter.decide(spend.client, spend.own.as_ref(), spend.cost, now);
        spend.decision = Some(decision);
        spend.written = written;
        if decision.is_denied() {
            take_back(earlier, now);
            return false;
        }
    }
    true
}

/// Undoes spends, the last one first, so that two on one client come apart.
fn take_back(spends: &mut [Spend<'_>], now: Timestamp) {
    for spend in spends.iter_mut().rev() {
        if let Some(written) = spend.written.take() {
            spend.limiter.undo(spend.client, spend.own.as_ref(), written, now);
        }
    }
    for spend in spends {
        spend.decision = Some(spend.look(now));
    }
}

/// A cost for one client of one limiter, to be spent by [`check_all`].
#[must_use = "a spend is spent by `check_all`"]
pub struct Spend<'a> {
    limiter: &'a dyn Decide,
    client: Client,
    /// The quota that comes with the call, if it is not the limiter's.
    own: Option<TokenBucket>,
    cost: u64,
    decision: Option<Decision>,
    written: Option<Written>,
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// A cost for one client, to be spent together with others by [`check_all`].
    pub fn spend(&self, key: &K, cost: u64) -> Spend<'_>
    where
        S: Send + Sync,
    {
        let client = self.client(key);
        Spend { limiter: self, client, own: None, cost, decision: None, written: None }
    }
}

impl Spend<'_> {
    /// The same under a quota of its own.
    pub(super) fn with(self, bucket: TokenBucket) -> Self {
        Self { own: Some(bucket), ..self }
    }

    fn look(&self, now: Timestamp) -> Decision {
        self.limiter.look(self.client, self.own.as_ref(), self.cost, now)
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

/// What several limiters decided together.
#[derive(Debug)]
#[must_use]
pub struct AllDecision<A> {
    spends: A,
    allowed: bool,
}

impl<'a, A: AsRef<[Spend<'a>]>> AllDecision<A> {
    /// True if every limiter allowed the call, and all of it was spent.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// True if any limiter denied the call, and none of it was spent.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        !self.allowed
    }

    /// What each limiter decided, in the order of the spends. If the call was
    /// denied, those that would have allowed it say so, and show what is left
    /// without it.
    pub fn decisions<'s>(&'s self) -> impl Iterator<Item = Decision> + use<'s, 'a, A>
    where
        'a: 's,
    {
        self.spends.as_ref().iter().filter_map(|spend| spend.decision)
    }

    /// The answer as one of three. `retry_after` is the latest of all.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.retry_after() {
            _ if self.allowed => Verdict::Allowed,
            Some(retry_after) => Verdict::Denied { retry_after },
            None => Verdict::Never,
        }
    }

    /// The time until the same call would pass everywhere; zero if it was allowed,
    /// `None` if no waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.decisions()
            .try_fold(Duration::ZERO, |latest, decision| Some(latest.max(decision.retry_after()?)))
    }

    /// The longest that any shaper asks an allowed call to wait.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let waits = self.decisions().map(|decision| decision.wait()).filter(|_| self.allowed);
        waits.max().unwrap_or_default()
    }
}

/// A limiter, whatever its keys, clock and hasher.
trait Decide: Send + Sync {
    fn look(&self, client: Client, own: Own<'_>, cost: u64, now: Timestamp) -> Decision;
    fn decide(
        &self,
        client: Client,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Written>);
    fn undo(&self, client: Client, own: Own<'_>, written: Written, now: Timestamp);
    fn count(&self, decision: Option<&Decision>, allowed: bool);
}

impl<K: ?Sized, C: Clock, S: Send + Sync> Decide for Limiter<K, C, S> {
    fn look(&self, client: Client, own: Own<'_>, cost: u64, now: Timestamp) -> Decision {
        Limiter::look(self, client, own, cost, now)
    }

    fn decide(
        &self,
        client: Client,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Written>) {
        self.spend_and_tell(client, own, cost, now)
    }

    fn undo(&self, client: Client, own: Own<'_>, written: Written, now: Timestamp) {
        if !Limiter::undo(self, client, own, written, now) {
            self.counters.kept_charge();
        }
    }

    /// Counts a call that was spent, or that this limiter itself denied.
    fn count(&self, decision: Option<&Decision>, allowed: bool) {
        if let Some(decision) = decision.filter(|decision| allowed || decision.is_denied()) {
            self.counters.count(decision);
        }
    }
}
