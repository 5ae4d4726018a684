use std::fmt;
use std::time::Duration;

use crate::Timestamp;
use crate::algorithm::{Algorithm, AnyAlgorithm, Charged, Word};

/// The answer to one call: may it go ahead, what is left, and when to come back.
///
/// A refusal is an answer, not an error. [`is_allowed`](Self::is_allowed) is all
/// that most callers need; the rest is worked out when asked for, so a caller
/// who does not ask does not pay.
///
/// ```
/// # use spillgate::{Limiter, Verdict};
/// # let limiter: Limiter<str> = Limiter::new("1/s burst 5")?;
/// let decision = limiter.check("203.0.113.7");
/// match decision.verdict() {
///     Verdict::Allowed => println!("{} of {} left", decision.remaining(), decision.limit()),
///     Verdict::Denied { retry_after } => println!("again in {retry_after:?}"),
///     Verdict::Never => println!("no waiting helps"),
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
    Denied,
    /// It would have been allowed, but nothing was to be spent.
    WouldPass,
    /// The table has no slot for a new client for so many nanoseconds, or ever.
    Full {
        nanos: Option<u64>,
    },
}

/// The three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call may go ahead, after [`Decision::wait`] if a shaper decided.
    Allowed,
    /// The call is refused now, and would pass `retry_after` from now if nothing
    /// else were spent.
    Denied {
        /// The exact time until the same call would pass: never zero.
        retry_after: Duration,
    },
    /// No waiting helps: the call costs more than can ever be available, or what there
    /// was is used up and never refilled.
    Never,
}

impl Decision {
    /// What `algorithm` answers to a call of `cost` at `now` by a client whose
    /// word is `word`, and the word to store, if it changes.
    ///
    /// This is how a store that keeps words elsewhere decides.
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

    /// What [`of`](Self::of) would answer, for a client who only asks: nothing is
    /// spent, so what remains is what there is now.
    pub fn peek<A>(algorithm: A, word: Word, now: Timestamp, cost: u64) -> Self
    where
        A: Algorithm + Into<AnyAlgorithm>,
    {
        let passes = algorithm.spend(word, now, cost).is_some();
        let outcome = if passes { Outcome::WouldPass } else { Outcome::Denied };
        Self { algorithm: algorithm.into(), word, now, cost, outcome }
    }

    /// A call by a client never seen that finds no slot for some time, or ever.
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

    /// True if the call may go ahead.
    #[inline]
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allowed | Outcome::WouldPass)
    }

    /// The call, to be settled later; `None` if it was denied, or only looked at.
    #[must_use]
    pub fn charged(&self) -> Option<Charged> {
        let Self { algorithm, word, now, cost, outcome } = *self;
        (outcome == Outcome::Allowed).then_some(Charged { algorithm, word, at: now, cost })
    }

    /// What the client had spent when this was decided, this call included if it was allowed: a
    /// word, and the algorithm that reads it.
    #[must_use]
    pub fn spent(&self) -> (AnyAlgorithm, Word) {
        (self.algorithm, self.word)
    }

    /// True if the call is refused, now or for ever.
    #[inline]
    #[must_use]
    pub fn is_denied(&self) -> bool {
        !self.is_allowed()
    }

    /// True if the call was refused only because the table had no slot for a new
    /// client, and was told to [deny](crate::WhenFull::Deny) in that case.
    #[must_use]
    pub fn is_table_full(&self) -> bool {
        matches!(self.outcome, Outcome::Full { .. })
    }

    /// The answer as one of three.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.retry_after() {
            _ if self.is_allowed() => Verdict::Allowed,
            Some(retry_after) => Verdict::Denied { retry_after },
            None => Verdict::Never,
        }
    }

    /// What the call cost, or would have.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// When the decision was made.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The most that can be spent at once: the burst.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.algorithm.limit()
    }

    /// The time in which the whole [limit](Self::limit) is refilled, or begins anew, as the
    /// quota says it; `None` if it never is.
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        self.algorithm.nominal_window()
    }

    /// How much can still be spent now.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.algorithm.remaining(self.word, self.now)
    }

    /// How much is spent, rounded up: more than the [limit](Self::limit) if the client is in
    /// debt.
    #[must_use]
    pub fn owed(&self) -> u64 {
        self.algorithm.owed(self.word, self.now)
    }

    /// The time until the same call would pass: zero if it was allowed, `None` if
    /// no waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Allowed | Outcome::WouldPass => Some(Duration::ZERO),
            Outcome::Denied => self.algorithm.retry_after(self.word, self.now, self.cost),
            Outcome::Full { nanos } => nanos.map(Duration::from_nanos),
        }
    }

    /// The time until nothing is spent any more and the whole burst is available
    /// again, as the quota says it; `None` if the quota is never refilled.
    ///
    /// This is to be told: `3/s` is back after a second. Since a bucket keeps whole nanoseconds,
    /// the last call may have to wait for up to one more per unit of the burst, and a window
    /// that begins with the first call for up to 0.2 % of its period. For the very moment there
    /// is [`idle_after`](Self::idle_after).
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.algorithm.nominal_reset_after(self.word, self.now)
    }

    /// The time until nothing is spent any more, to the nanosecond, for whoever keeps words;
    /// `None` if the quota is never refilled.
    #[must_use]
    pub fn idle_after(&self) -> Option<Duration> {
        self.algorithm.reset_after(self.word, self.now)
    }

    /// The time until no more is spent than the [limit](Self::limit) holds: zero unless the
    /// client is in debt. `None` if the quota is never refilled.
    #[must_use]
    pub fn overdrawn_for(&self) -> Option<Duration> {
        Some(self.idle_after()?.saturating_sub(self.algorithm.window()?))
    }

    /// How long an allowed call should wait before it goes ahead: zero unless a
    /// [shaper](crate::algorithm::LeakyBucket::shaper) spaces calls out.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let word = match self.outcome {
            Outcome::Allowed => self.word,
            Outcome::WouldPass => {
                self.algorithm.debit_up_to(self.word, self.now, self.cost, u64::MAX)
            }
            Outcome::Denied | Outcome::Full { .. } => return Duration::ZERO,
        };
        self.algorithm.wait(word, self.now, self.cost)
    }

    /// The client's word after the decision.
    #[must_use]
    pub fn word(&self) -> Word {
        self.word
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
