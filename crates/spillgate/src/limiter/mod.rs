//! One limit for any number of callers.

mod accounts;
mod act;
mod builder;
mod check_all;
mod check_many;
mod check_with;
mod counters;
mod locks;
mod manage;
mod reservation;
mod snapshot;
mod tiers;
#[cfg(feature = "tokio")]
mod until_ready;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;
use std::marker::PhantomData;

use self::accounts::Accounts;
pub use self::act::Settled;
pub use self::builder::LimiterBuilder;
pub use self::check_all::{AllDecision, Spend, check_all, check_all_at};
pub use self::check_many::CheckMany;
use self::counters::Counters;
pub use self::counters::Counts;
pub(crate) use self::counters::{FreeIndices, hold_threads};
pub(crate) use self::locks::LimiterLocks;
pub use self::reservation::Reservation;
pub use self::snapshot::{Saved, SavedCaller, SavedOwn, SavedTable};
pub use self::tiers::TierOf;
use self::tiers::{Caller, Tiers};
use crate::algorithm::{AlgorithmKind, AnyAlgorithm, Start, Word};
use crate::sync::{AtomicBool, Ordering};
use crate::{
    Clock, Decision, Error, Fingerprint, KeyedState, Quota, SystemClock, Table, Timestamp,
};

/// A rate limiter: one quota, any number of callers.
///
/// Every caller, identified by a key of type `K`, has its own allowance. By default
/// that is a [token bucket](crate::algorithm::TokenBucket): it holds up to
/// `burst` tokens and refills at a steady rate, and a call is allowed if there are
/// enough tokens for its cost. In any time `t` at most `burst + rate·t` is allowed,
/// never one more. Other [algorithms](AlgorithmKind) can be chosen.
///
/// | | cost of 1, now | any cost, now | any cost, at a given time |
/// |---|---|---|---|
/// | decide and spend | [`check`](Self::check) | [`check_n`](Self::check_n) | [`check_at`](Self::check_at) |
/// | decide without spending | [`peek`](Self::peek) | [`peek_n`](Self::peek_n) | [`peek_at`](Self::peek_at) |
/// | spend unconditionally | [`debit`](Self::debit) | [`debit_n`](Self::debit_n) | [`debit_at`](Self::debit_at) |
/// | return | [`refund`](Self::refund) | [`refund_n`](Self::refund_n) | [`refund_at`](Self::refund_at) |
/// | spend an estimate | [`reserve`](Self::reserve) | [`reserve_n`](Self::reserve_n) | [`reserve_at`](Self::reserve_at) |
/// | forget | | [`reset`](Self::reset) | [`reset_at`](Self::reset_at) |
///
/// The last column does the work; the others are shorthand that reads the limiter's
/// [clock](LimiterBuilder::clock). [`settle`](Self::settle) replaces an estimate with the actual
/// cost, [`check_many`](Self::check_many) decides a batch, [`check_all`](crate::check_all)
/// spends on several limiters or none, `until_ready` waits (feature `tokio`), and
/// [`check_with`](Self::check_with) takes a quota with each call.
///
/// ```
/// use spillgate::Limiter;
///
/// let limiter: Limiter<str> = Limiter::new("10/s burst 20")?;
/// let decision = limiter.check("203.0.113.7");
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), 19);
/// # Ok::<(), spillgate::Error>(())
/// ```
///
/// # Keys
///
/// `K` is the borrowed form: `Limiter<str>` for strings, `Limiter<IpAddr>`,
/// `Limiter<[u8]>`, or any other type that implements `Hash`. Only a 57-bit fingerprint of the
/// key is stored, so a check never allocates.
///
/// # Memory and threads
///
/// Memory is allocated when the limiter is built: 26 bytes per caller of its
/// [capacity](LimiterBuilder::capacity) (52 up to a capacity of 4,096), plus one or two
/// kilobytes. A caller whose quota [has changed](Self::set_quota), by an override, a tier or
/// otherwise, takes 200 to 400 bytes more until what it had spent has run off; there is room for
/// as many as the table has slots. A limiter is `Sync`; share it by reference or in an `Arc`. Checks of known callers
/// are lock-free, and there is no background task.
pub struct Limiter<K: ?Sized, C = SystemClock, S = KeyedState> {
    table: Table<S>,
    tiers: Tiers<K>,
    accounts: Accounts,
    /// True while there are neither tiers nor accounts.
    plain: AtomicBool,
    clock: C,
    counters: Counters,
    kind: AlgorithmKind,
    start: Start,
    born: Timestamp,
    max_debt: Option<u64>,
    #[cfg(feature = "tokio")]
    queues: until_ready::Queues,
    key: PhantomData<fn(&K)>,
}

impl<K: Hash + ?Sized> Limiter<K> {
    /// A limiter with defaults: a token bucket, a capacity of 100,000 callers, the system clock.
    ///
    /// # Errors
    ///
    /// If the quota is invalid.
    pub fn new<Q: TryInto<Quota>>(quota: Q) -> Result<Self, Error>
    where
        Error: From<Q::Error>,
    {
        Self::builder(quota).build()
    }

    /// A builder for a limiter.
    pub fn builder<Q: TryInto<Quota>>(quota: Q) -> LimiterBuilder<K>
    where
        Error: From<Q::Error>,
    {
        LimiterBuilder::new(quota)
    }
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Shorthand for [`check_n`](Self::check_n) with a cost of 1.
    #[inline(always)]
    pub fn check(&self, key: &K) -> Decision {
        self.check_n(key, 1)
    }

    /// Spends `cost` if all of it is available now. A denial changes nothing. A cost of 0 is
    /// always allowed.
    #[inline(always)]
    pub fn check_n(&self, key: &K, cost: u64) -> Decision {
        // Before the clock, whose reading stalls what follows: 2 ns.
        let fingerprint = self.table.fingerprint(key);
        self.check_fingerprint(fingerprint, key, cost, self.clock.now())
    }

    /// [`check_n`](Self::check_n) at a given time.
    ///
    /// The clock is not read, so recorded traffic can be replayed. Use one time base per
    /// limiter.
    #[inline(always)]
    pub fn check_at(&self, key: &K, cost: u64, now: Timestamp) -> Decision {
        self.check_fingerprint(self.table.fingerprint(key), key, cost, now)
    }

    #[inline(always)]
    fn check_fingerprint(
        &self,
        fingerprint: Fingerprint,
        key: &K,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        match self.check_at_home(fingerprint, cost, now) {
            Some(decision) => decision,
            None => {
                let decision = self.check_anywhere(self.caller_of(fingerprint, key), cost, now);
                // The copy is opaque to the compiler, so that the decision above need not be
                // written to the same memory and stays in registers: half a nanosecond.
                *black_box(&decision)
            }
        }
    }

    /// Shorthand for [`peek_n`](Self::peek_n) with a cost of 1.
    pub fn peek(&self, key: &K) -> Decision {
        self.peek_n(key, 1)
    }

    /// What [`check_n`](Self::check_n) would answer, without spending: what remains is what
    /// there is now.
    pub fn peek_n(&self, key: &K, cost: u64) -> Decision {
        self.peek_at(key, cost, self.clock.now())
    }

    /// [`peek_n`](Self::peek_n) at a given time.
    pub fn peek_at(&self, key: &K, cost: u64, now: Timestamp) -> Decision {
        self.look(self.caller(key), None, cost, now)
    }

    /// Shorthand for [`debit_n`](Self::debit_n) with an amount of 1.
    pub fn debit(&self, key: &K) -> Settled {
        self.debit_n(key, 1)
    }

    /// Spends `amount` unconditionally, into debt beyond the burst if necessary, but not beyond
    /// [`max_debt`](LimiterBuilder::max_debt).
    pub fn debit_n(&self, key: &K, amount: u64) -> Settled {
        self.debit_at(key, amount, self.clock.now())
    }

    /// [`debit_n`](Self::debit_n) at a given time.
    pub fn debit_at(&self, key: &K, amount: u64, now: Timestamp) -> Settled {
        self.take(self.caller(key), None, amount, now)
    }

    /// Shorthand for [`refund_n`](Self::refund_n) with an amount of 1.
    pub fn refund(&self, key: &K) {
        self.refund_n(key, 1);
    }

    /// Returns `amount` to a caller, but never more than it has spent.
    ///
    /// The amount counts as never spent, even if it has been refilled since. For work that may
    /// take a while, [`reserve`](Self::reserve) and [`settle`](Self::settle) instead.
    pub fn refund_n(&self, key: &K, amount: u64) {
        self.refund_at(key, amount, self.clock.now());
    }

    /// [`refund_n`](Self::refund_n) at a given time.
    pub fn refund_at(&self, key: &K, amount: u64, now: Timestamp) {
        self.return_amount(self.caller(key), None, amount, now);
    }

    /// Makes a caller owe at least what `word` returns, given the caller's algorithm and the
    /// current time: to merge state from elsewhere. It never owes less than before.
    ///
    /// ```
    /// use spillgate::Limiter;
    /// use spillgate::algorithm::Algorithm;
    ///
    /// let limiter = Limiter::<str>::builder("10/s").build()?;
    /// limiter.raise("alice", |bucket, now| bucket.debit_up_to(bucket.fresh(now), now, 7, 10));
    /// assert_eq!(limiter.peek_n("alice", 1).remaining(), 3);
    /// limiter.raise("alice", |bucket, now| bucket.debit_up_to(bucket.fresh(now), now, 2, 10));
    /// assert_eq!(limiter.peek_n("alice", 1).remaining(), 3);
    /// # Ok::<(), spillgate::Error>(())
    /// ```
    pub fn raise(&self, key: &K, word: impl Fn(&AnyAlgorithm, Timestamp) -> Word) {
        let now = self.clock.now();
        self.rewrite(self.caller(key), None, now, |algorithm, known| {
            ((), algorithm.larger(word(algorithm, now), known, now))
        });
    }

    /// Forgets what a caller has spent, whatever its tier.
    pub fn reset(&self, key: &K) {
        self.reset_at(key, self.clock.now());
    }

    /// [`reset`](Self::reset) at a given time.
    pub fn reset_at(&self, key: &K, now: Timestamp) {
        let caller = self.caller(key);
        let mut stripe = self.accounts.stripe(caller.fingerprint);
        if stripe.has(caller.fingerprint) {
            stripe.entry(caller, now).account.reset(now);
            return;
        }
        self.table.reset_at(caller.fingerprint, now);
    }

    /// The fingerprint of a key.
    pub fn fingerprint(&self, key: &K) -> Fingerprint {
        self.table.fingerprint(key)
    }

    /// The limiter's clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The caller of a key, with its tier.
    #[inline(always)]
    fn caller(&self, key: &K) -> Caller {
        self.caller_of(self.table.fingerprint(key), key)
    }

    #[inline]
    fn caller_of(&self, fingerprint: Fingerprint, key: &K) -> Caller {
        Caller { fingerprint, tier: self.tiers.tier_of(key) }
    }
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// Decides for a caller of the limiter's own quota that is found in its first line. Most
    /// limiters have neither tiers nor accounts, and skip the lookup.
    #[inline(always)]
    fn check_at_home(&self, caller: Fingerprint, cost: u64, now: Timestamp) -> Option<Decision> {
        // A hint: whoever is given an account concurrently is taken out of the table, where this
        // check then does not find it.
        if !self.plain.load(Ordering::Relaxed) {
            return None;
        }
        let decision = self.table.check_at_home(caller, cost, now)?;
        self.counters.count(&decision);
        Some(decision)
    }

    /// Decides for any caller.
    #[cold]
    #[inline(never)]
    fn check_anywhere(&self, caller: Caller, cost: u64, now: Timestamp) -> Decision {
        let decision = self.try_spend(caller, None, cost, now);
        self.counters.count(&decision);
        decision
    }
}

impl<K: ?Sized, C, S> fmt::Debug for Limiter<K, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("algorithm", &self.kind)
            .field("quota", &self.quota())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
