use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, AnyAlgorithm, Layout, Word};
use spillgate::{Decision, Timestamp};

use super::cache::{Cache, Cached};
use crate::clock_sample::ClockSample;
use crate::effective_quota::EffectiveQuota;
use crate::{Name, Terms};

/// The last word that Redis returned for each caller.
///
/// Two uses: during an outage, a caller continues from its [last word](LastWord); and a denied caller
/// that keeps retrying costs Redis next to nothing.
///
/// The word is remembered, not the verdict: a call that would pass by it asks Redis. Then the cost is
/// assumed spent until the reply arrives, so that concurrent calls do not all ask for the one token that
/// was refilled. Time is taken to be the earliest possible, counted from the reply: a caller that waits
/// for `retry-after` has waited long enough, and one that does not is not sent to Redis too early.
///
/// A word denies for one second after its call was sent. Then one call asks again, and others use the
/// old word until that is answered, so that a reset or a refund by another node is noticed.
pub(super) struct LastWords(Cache<CallerWord>);

/// What is known of one caller.
#[derive(Clone, Copy)]
struct CallerWord {
    last: LastWord,
    /// The last word plus what was asked for since and is not answered.
    assumed: Word,
    /// True if it may deny: the caller was denied, and the word is not in doubt.
    denies: bool,
    /// When a call last asked Redis.
    asked: Option<Timestamp>,
    /// When nothing is spent any more, by this node's clock.
    idle_at: Timestamp,
    /// Cost in flight from this node.
    in_flight: u64,
}

/// A cost in flight: until this is dropped, it may be spent in Redis. A call that ends without an
/// [answer](Self::answered), also by being dropped, leaves the word in doubt.
pub(super) struct InFlight {
    words: Arc<LastWords>,
    name: Name,
    cost: u64,
    /// True if others are denied as if the cost were spent.
    is_assumed: bool,
}

/// A word as Redis returned it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastWord {
    /// How to read the word, whatever the tier or the quota of the next call.
    terms: Terms,
    word: Word,
    sample: ClockSample,
    /// Cost in flight since then.
    in_flight: u64,
}

/// How long a word denies, and how long a call may take.
const LIFETIME: Duration = Duration::from_secs(1);

impl LastWords {
    /// Room for about so many callers.
    pub(super) fn new(callers: usize) -> Self {
        Self(Cache::new(callers))
    }

    /// The last word of a caller.
    pub(super) fn last(&self, name: Name) -> Option<LastWord> {
        let last = |known: CallerWord| LastWord { in_flight: known.in_flight, ..known.last };
        self.0.with(name, |known| known.map(last))
    }

    /// The decision by the last word, if it may deny; allowed means that Redis must be asked.
    pub(super) fn peek(
        &self,
        name: Name,
        effective: &EffectiveQuota,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        self.0.with(name, |known| known.as_ref()?.decision(effective, cost, local))
    }

    /// Begins a call to Redis.
    ///
    /// # Errors
    ///
    /// The denial, if the call need not be made.
    pub(super) fn begin(
        self: &Arc<Self>,
        name: Name,
        effective: &EffectiveQuota,
        cost: u64,
        local: Timestamp,
    ) -> Result<Option<InFlight>, Decision> {
        self.0.with(name, |known| {
            let Some(known) = known else { return Ok(None) };
            let decision = known.decision(effective, cost, local);
            if let Some(denied) = decision.filter(Decision::is_denied) {
                return Err(denied);
            }
            let is_assumed = known.denies;
            if is_assumed {
                let now = known.last.sample.earliest(local);
                let spent = effective.algorithm.spend(known.assumed, now, cost);
                known.assumed = spent.unwrap_or(known.assumed);
                known.asked = Some(local);
            }
            Ok(Some(known.track(self, name, cost, is_assumed)))
        })
    }

    /// Counts a cost in flight that denies nobody.
    pub(super) fn track(self: &Arc<Self>, name: Name, cost: u64) -> Option<InFlight> {
        self.0.with(name, |known| known.as_mut().map(|known| known.track(self, name, cost, false)))
    }

    /// Records the word that Redis has. Once a caller is denied, its words may deny further calls.
    pub(super) fn record(
        &self,
        name: Name,
        effective: &EffectiveQuota,
        word: Word,
        sample: ClockSample,
        is_denied: bool,
    ) {
        let last = LastWord { terms: effective.terms, word, sample, in_flight: 0 };
        let idle_after = effective.algorithm.reset_after(word, sample.now);
        let idle_at = idle_after.map_or(Timestamp::MAX, |after| sample.received + after);
        self.0.with(name, |known| {
            let old = known.as_ref();
            let alike = old.filter(|old| old.last.terms == last.terms);
            if alike.is_some_and(|old| old.last.is_newer_than(&last)) {
                return;
            }
            let denies = is_denied || old.is_some_and(|old| old.denies);
            let in_flight = old.map_or(0, |old| old.in_flight);
            *known =
                Some(CallerWord { last, assumed: word, denies, asked: None, idle_at, in_flight });
        });
    }

    /// Stops denying by a word that is in doubt: it was lowered, or the outcome of a call is unknown.
    /// It stays the last word.
    pub(super) fn invalidate(&self, name: Name) {
        self.0.with(name, |known| {
            if let Some(known) = known {
                known.doubt();
            }
        });
    }

    /// Forgets a caller.
    pub(super) fn forget(&self, name: Name) {
        self.0.with(name, |known| *known = None);
    }
}

/// Keeps those with something spent for longest.
impl Cached for CallerWord {
    fn until(&self) -> Timestamp {
        self.idle_at
    }
}

impl InFlight {
    /// Ends a call whose answer was recorded.
    pub(super) fn answered(mut self) {
        self.is_assumed = false;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.words.0.with(self.name, |known| {
            if let Some(known) = known {
                known.in_flight = known.in_flight.saturating_sub(self.cost);
                if self.is_assumed {
                    known.doubt();
                }
            }
        });
    }
}

impl CallerWord {
    fn track(
        &mut self,
        words: &Arc<LastWords>,
        name: Name,
        cost: u64,
        is_assumed: bool,
    ) -> InFlight {
        self.in_flight = self.in_flight.saturating_add(cost);
        InFlight { words: Arc::clone(words), name, cost, is_assumed }
    }

    fn doubt(&mut self) {
        (self.denies, self.assumed, self.asked) = (false, self.last.word, None);
    }

    fn decision(
        &self,
        effective: &EffectiveQuota,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        let LastWord { terms, sample, .. } = self.last;
        if !self.denies || terms != effective.terms || self.is_due(local) {
            return None;
        }
        Some(Decision::peek(effective.algorithm, self.assumed, sample.earliest(local), cost))
    }

    /// True if the next call must ask Redis, whatever the word.
    fn is_due(&self, local: Timestamp) -> bool {
        let is_over = |since| local.since(since) >= LIFETIME;
        is_over(self.last.sample.sent) && self.asked.is_none_or(is_over)
    }
}

impl LastWord {
    /// True if this is the later reply although it arrived first; of the same moment, the reply to the
    /// later call. If it is later by more than a call takes, the Redis clock was set back.
    fn is_newer_than(&self, other: &Self) -> bool {
        let order = |last: &Self| (last.sample.now, last.sample.sent);
        order(self) > order(other) && self.sample.now.since(other.sample.now) < LIFETIME
    }

    /// Converts the word to the share of one of `nodes`, by this node's clock. A bucket keeps the time at
    /// which it is full: its share refills more slowly, but is smaller. Counts are divided, and rounded up.
    /// What was spent under another quota is taken over in tokens first.
    pub(super) fn in_share(
        &self,
        effective: &EffectiveQuota,
        share: &AnyAlgorithm,
        nodes: NonZeroU32,
        local: Timestamp,
    ) -> Word {
        let nothing = share.fresh(local);
        let (now, whole) = (self.sample.earliest(local), &effective.algorithm);
        let word = match self.terms == effective.terms {
            true => self.word,
            false => match self.terms.algorithm() {
                Ok(old) => whole.carry_over(self.word, now, &old),
                Err(_) => return nothing,
            },
        };
        let word = whole.debit_up_to(word, now, self.in_flight, whole.deepest());
        match whole.layout() {
            Layout::Bucket { refills: true, .. } => {
                share.keep(whole.rebase(word, now, local), local, whole)
            }
            _ => {
                let owed = whole.owed(word, now).div_ceil(nodes.get().into());
                share.debit_up_to(nothing, local, owed, share.deepest())
            }
        }
    }
}

#[cfg(test)]
mod tests;
