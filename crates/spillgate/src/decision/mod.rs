mod hold;

use std::fmt;
use std::time::Duration;

use crate::Timestamp;
use crate::algorithm::{Algorithm, AnyAlgorithm, SpendRecord, Word};

/// The result of a check: allowed or denied, what remains, and when to retry.
///
/// A denial is a result, not an error. Most programs need only
/// [`is_allowed`](Self::is_allowed); everything else is computed on demand.
///
/// ```
/// # use spillgate::{Limiter, Verdict};
/// # let limiter: Limiter<str> = Limiter::new("1/s burst 5")?;
/// let decision = limiter.check("203.0.113.7");
/// match decision.verdict() {
///     Verdict::Allowed => println!("{} of {} left", decision.remaining(), decision.limit()),
///     Verdict::Denied { retry_after } => println!("retry in {retry_after:?}"),
///     _ => println!("never: the cost exceeds the limit"),
/// }
/// # Ok::<(), spillgate::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    algorithm: AnyAlgorithm,
    /// The word after the decision.
    word: Word,
    now: Timestamp,
    cost: u64,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Allowed,
    /// A peek that would have been allowed.
    WouldPass,
    /// Permits that are held until the call ends.
    Held,
    /// A peek at permits that would have been granted.
    WouldHold,
    Denied,
    /// Too many permits are held, for nobody knows how long.
    Busy,
    /// There are permits, but no room for a new key.
    NoRoom,
    /// The table has no slot for a new caller for this many nanoseconds, or ever.
    Full {
        nanos: Option<u64>,
    },
}

/// What a check decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The call may proceed, after [`Decision::wait`] if a shaper decided.
    Allowed,
    /// The call is denied, and would be allowed `retry_after` from now if nothing
    /// else were spent.
    Denied {
        /// The exact time until the same call would be allowed: never zero.
        retry_after: Duration,
    },
    /// Waiting does not help: the cost exceeds the limit, or a quota that never refills is
    /// used up.
    Never,
}

impl Decision {
    /// The decision of `algorithm` on a call of `cost` at `now` by a caller with this word,
    /// and the word to store, if it changes.
    ///
    /// For stores that keep words elsewhere.
    #[inline(always)]
    pub fn of<A>(algorithm: A, word: Word, now: Timestamp, cost: u64) -> (Self, Option<Word>)
    where
        A: Algorithm + Into<AnyAlgorithm>,
    {
        let algorithm_of = algorithm.into();
        let decision = |word, outcome| Self { algorithm: algorithm_of, word, now, cost, outcome };
        match algorithm.spend(word, now, cost) {
            Some(spent) if cost > 0 => (decision(spent, Outcome::Allowed), Some(spent)),
            Some(_) => (decision(word, Outcome::Allowed), None),
            None => (decision(word, Outcome::Denied), None),
        }
    }

    /// What [`of`](Self::of) would decide, without spending: [`remaining`](Self::remaining)
    /// is what there is now.
    pub fn peek<A>(algorithm: A, word: Word, now: Timestamp, cost: u64) -> Self
    where
        A: Algorithm + Into<AnyAlgorithm>,
    {
        let passes = algorithm.spend(word, now, cost).is_some();
        let outcome = if passes { Outcome::WouldPass } else { Outcome::Denied };
        Self { algorithm: algorithm.into(), word, now, cost, outcome }
    }

    /// A call by a new caller that finds no slot for some time, or ever.
    pub(crate) fn full(
        algorithm: AnyAlgorithm,
        fresh: Word,
        now: Timestamp,
        cost: u64,
        after: Option<Duration>,
    ) -> Self {
        let nanos = after.map(|after| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
        Self { algorithm, word: fresh, now, cost, outcome: Outcome::Full { nanos } }
    }

    /// True if the call may proceed.
    #[inline]
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        use Outcome::{Allowed, Held, WouldHold, WouldPass};
        matches!(self.outcome, Allowed | WouldPass | Held | WouldHold)
    }

    /// What the call has spent, for settling it later; `None` if it was denied, a peek, or
    /// [holds permits](Self::of_hold).
    #[must_use]
    pub fn spent(&self) -> Option<SpendRecord> {
        let Self { algorithm, word, now, cost, outcome } = *self;
        (outcome == Outcome::Allowed).then_some(SpendRecord { algorithm, word, at: now, cost })
    }

    /// The caller's state after the decision: a word, and the algorithm that reads it.
    #[must_use]
    pub fn state(&self) -> (AnyAlgorithm, Word) {
        (self.algorithm, self.word)
    }

    /// True if the call is denied, now or for ever.
    #[inline]
    #[must_use]
    pub fn is_denied(&self) -> bool {
        !self.is_allowed()
    }

    /// True if the call was denied because the table had no slot for a new caller: see
    /// [`WhenFull`](crate::WhenFull).
    #[inline]
    #[must_use]
    pub fn is_table_full(&self) -> bool {
        matches!(self.outcome, Outcome::Full { .. } | Outcome::NoRoom)
    }

    /// The decision as an enum.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.retry_after() {
            _ if self.is_allowed() => Verdict::Allowed,
            Some(retry_after) => Verdict::Denied { retry_after },
            None => Verdict::Never,
        }
    }

    /// The cost of the call, allowed or not.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The time of the decision.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The most that can be spent at once: the burst.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.algorithm.limit()
    }

    /// The time in which the whole [limit](Self::limit) refills, or the length of the window,
    /// as the quota states it; `None` if the quota never refills.
    #[inline]
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        self.algorithm.nominal_window()
    }

    /// How much can be spent now.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.algorithm.remaining(self.word, self.now)
    }

    /// How much is spent, rounded up: more than the [limit](Self::limit) if the caller is in
    /// debt.
    #[must_use]
    pub fn owed(&self) -> u64 {
        self.algorithm.owed(self.word, self.now)
    }

    /// The time until the same call would be allowed: zero if it was, `None` if waiting does
    /// not help.
    #[inline]
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Allowed | Outcome::WouldPass | Outcome::Held | Outcome::WouldHold => {
                Some(Duration::ZERO)
            }
            Outcome::Denied => self.algorithm.retry_after(self.word, self.now, self.cost),
            Outcome::Full { nanos } => nanos.map(Duration::from_nanos),
            Outcome::Busy | Outcome::NoRoom => self.hold_retry_after(),
        }
    }

    /// [`retry_after`](Self::retry_after) in seconds, rounded up, as a `Retry-After` header
    /// has it.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after().map(whole_seconds)
    }

    /// The time until the whole limit is available again, as the quota states it; `None` if
    /// the quota never refills.
    ///
    /// For display and headers: `3/s` resets after one second. Buckets keep whole nanoseconds,
    /// so the actual reset may be later by up to one per unit of the burst, and that of a window
    /// that begins with the first call by up to 0.2 % of its period. The exact time is
    /// [`idle_after`](Self::idle_after).
    #[inline]
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.refills()?.nominal_reset_after(self.word, self.now)
    }

    /// The time until the whole limit is available again, to the nanosecond: when a stored word
    /// may expire. `None` if the quota never refills.
    #[inline]
    #[must_use]
    pub fn idle_after(&self) -> Option<Duration> {
        self.refills()?.reset_after(self.word, self.now)
    }

    /// The time until the caller is out of debt: zero unless it owes more than the
    /// [limit](Self::limit). `None` if the quota never refills.
    #[must_use]
    pub fn overdrawn_for(&self) -> Option<Duration> {
        Some(self.idle_after()?.saturating_sub(self.algorithm.window()?))
    }

    /// How long an allowed call should wait before it proceeds: zero unless the algorithm is a
    /// [shaper](crate::algorithm::LeakyBucket::shaper).
    #[inline]
    #[must_use]
    pub fn wait(&self) -> Duration {
        let word = match self.outcome {
            Outcome::Allowed => self.word,
            Outcome::WouldPass => {
                self.algorithm.debit_up_to(self.word, self.now, self.cost, u64::MAX)
            }
            _ => return Duration::ZERO,
        };
        self.algorithm.wait(word, self.now, self.cost)
    }

    /// The caller's word after the decision.
    #[must_use]
    pub fn word(&self) -> Word {
        self.word
    }
}

/// Rounds up, so that a retry after this many seconds is never too early.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

impl From<SpendRecord> for Decision {
    fn from(SpendRecord { algorithm, word, at, cost }: SpendRecord) -> Self {
        Self { algorithm, word, now: at, cost, outcome: Outcome::Allowed }
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("verdict", &self.verdict())
            .field("limit", &self.limit())
            .field("remaining", &self.remaining())
            .field("reset_after", &self.reset_after())
            .field("wait", &self.wait())
            .finish()
    }
}
