//! One limit, for any number of clients.

mod act;
mod builder;
mod check_all;
mod check_many;
mod check_with;
mod counters;
mod manage;
mod overrides;
mod reservation;
mod snapshot;
mod tiers;
#[cfg(feature = "tokio")]
mod until_ready;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;
use std::marker::PhantomData;

pub use self::act::Settled;
pub use self::builder::Builder;
pub use self::check_all::{AllDecision, Spend, check_all};
pub use self::check_many::CheckMany;
use self::counters::Counters;
pub use self::counters::Counts;
use self::overrides::Overrides;
pub use self::reservation::Reservation;
pub use self::snapshot::{Saved, SavedOverride, SavedTable};
pub use self::tiers::TierOf;
use self::tiers::{Client, Tiers};
use crate::algorithm::{Algorithm, AlgorithmKind, AnyAlgorithm, Start, Word};
use crate::sync::{AtomicBool, Ordering};
use crate::{
    Clock, Decision, Error, Fingerprint, KeyedState, Quota, SystemClock, Table, Timestamp,
};

/// Limits how much each client may do: one quota, any number of clients.
///
/// Every client, named by a key of type `K`, has its own allowance. By default
/// that is a [token bucket](crate::algorithm::TokenBucket): it holds up to
/// `burst` tokens and refills at a steady rate, and a call passes if there are
/// tokens enough for its cost. In any time `t` at most `burst + rate·t` is let
/// through, never one more. Other [algorithms](AlgorithmKind) can be chosen.
///
/// - [`check`](Self::check) is what most programs call: it decides and spends.
/// - [`peek`](Self::peek) looks without spending.
/// - [`reserve`](Self::reserve) and [`settle`](Self::settle) are for a cost that
///   is known only afterwards.
/// - `until_ready` waits (feature `tokio`).
/// - [`check_many`](Self::check_many) decides for a batch, faster than one by one.
/// - [`check_all`](crate::check_all) asks several limiters, all or nothing.
///
/// [`check_at`](Self::check_at) takes the time as an argument and does the work;
/// `check` is shorthand for it.
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
/// `Limiter<[u8]>`, or any other type that can be hashed. Keys are not stored;
/// only their fingerprint is, so a check never allocates.
///
/// # Memory and threads
///
/// A limiter has the memory of its [`Table`], fixed when it is built: just under
/// 26 bytes for each client of its [capacity](Builder::capacity) (twice that up to
/// 4,096), and a kilobyte or two. It is `Sync`; share it by reference or in an `Arc`. Checks of known clients are lock-free,
/// and there is no background task.
pub struct Limiter<K: ?Sized, C = SystemClock, S = KeyedState> {
    table: Table<S>,
    tiers: Tiers<K>,
    overrides: Overrides,
    /// True while there are neither tiers nor overrides.
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
    /// A limiter with defaults: a token bucket, room for 100,000 clients at once,
    /// the system's clock.
    ///
    /// # Errors
    ///
    /// If the quota is not valid.
    pub fn new<Q: TryInto<Quota>>(quota: Q) -> Result<Self, Error>
    where
        Error: From<Q::Error>,
    {
        Self::builder(quota).build()
    }

    /// A limiter to be configured.
    pub fn builder<Q: TryInto<Quota>>(quota: Q) -> Builder<K>
    where
        Error: From<Q::Error>,
    {
        Builder::new(quota)
    }
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Spends 1 for a client if it passes now.
    #[inline(always)]
    pub fn check(&self, key: &K) -> Decision {
        self.check_n(key, 1)
    }

    /// Spends `cost` for a client if all of it passes now. A cost of 0 peeks.
    #[inline(always)]
    pub fn check_n(&self, key: &K, cost: u64) -> Decision {
        // Before the clock, whose reading holds up what comes after it: 2 ns.
        let fingerprint = self.table.fingerprint(key);
        self.check_fingerprint(fingerprint, key, cost, self.clock.now())
    }

    /// Spends `cost` for a client if all of it passes at `now`. A cost of 0 peeks.
    ///
    /// The clock is not read, so this also replays the past; but a limiter should
    /// see one kind of time only. A denial changes nothing.
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
                let decision = self.check_anywhere(self.client_of(fingerprint, key), cost, now);
                // Copied from where the compiler cannot see, the decision above need not be
                // written to the same memory, and stays in registers: half a nanosecond.
                *black_box(&decision)
            }
        }
    }

    /// What [`check`](Self::check) would answer now, without spending: what remains
    /// is what there is now.
    pub fn peek(&self, key: &K) -> Decision {
        self.peek_n(key, 1)
    }

    /// What [`check_n`](Self::check_n) would answer now, without spending.
    pub fn peek_n(&self, key: &K, cost: u64) -> Decision {
        self.look(self.client(key), None, cost, self.clock.now())
    }

    /// Gives `amount` back to a client, never more than it has spent. What is given
    /// back counts as never spent, also if it has been refilled since: for work that may take
    /// a while, [`reserve`](Self::reserve) and [`settle`](Self::settle).
    pub fn refund(&self, key: &K, amount: u64) {
        self.give_back(self.client(key), None, amount, self.clock.now());
    }

    /// Takes `amount` from a client whether or not it passes, going into debt beyond
    /// the burst, no deeper than the limiter's [bound](Builder::max_debt).
    pub fn debit(&self, key: &K, amount: u64) -> Settled {
        self.take(self.client(key), None, amount, self.clock.now())
    }

    /// Makes a client owe at least what `word` says, by the algorithm that counts it and at the
    /// limiter's present time: for what is known of it from elsewhere. It never owes less than
    /// before.
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
        self.rewrite(self.client(key), None, now, |algorithm, known| {
            ((), algorithm.larger(word(algorithm, now), known, now))
        });
    }

    /// Makes a client as if it had never been seen, whatever its tier.
    pub fn reset(&self, key: &K) {
        let (client, now) = (self.client(key), self.clock.now());
        self.overrides.with(client.fingerprint, |pinned| match pinned {
            Some(pinned) => {
                pinned.base = None;
                pinned.word = pinned.algorithm.fresh(now);
            }
            None => self.table.reset_at(client.fingerprint, now),
        });
    }

    /// The fingerprint by which a client is known.
    pub fn fingerprint(&self, key: &K) -> Fingerprint {
        self.table.fingerprint(key)
    }

    /// The clock that the limiter reads.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Who a key stands for, and in which tier.
    #[inline(always)]
    fn client(&self, key: &K) -> Client {
        self.client_of(self.table.fingerprint(key), key)
    }

    #[inline]
    fn client_of(&self, fingerprint: Fingerprint, key: &K) -> Client {
        Client { fingerprint, tier: self.tiers.tier_of(key) }
    }
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// Decides for a client that has the limiter's own quota and is found at once.
    /// Most limiters have no other quota, and need not ask who is special.
    #[inline(always)]
    fn check_at_home(&self, client: Fingerprint, cost: u64, now: Timestamp) -> Option<Decision> {
        // A hint: an override that is set meanwhile takes the client out of the table, and
        // this check then finds it nowhere.
        if !self.plain.load(Ordering::Relaxed) {
            return None;
        }
        let decision = self.table.check_at_home(client, cost, now)?;
        self.counters.count(&decision);
        Some(decision)
    }

    /// Decides for any client.
    #[cold]
    #[inline(never)]
    fn check_anywhere(&self, client: Client, cost: u64, now: Timestamp) -> Decision {
        let decision = self.try_spend(client, None, cost, now);
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
