use std::hash::{BuildHasher, Hash};
use std::iter::Fuse;

use super::Limiter;
use super::tiers::Client;
use crate::{Clock, Decision, Timestamp};

/// How many clients are looked up before the first of them is decided. More would
/// outrun the memory accesses that a core keeps under way at once.
const AHEAD: usize = 16;

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Spends 1 for each of many clients, in order, as [`check`](Self::check)
    /// would.
    ///
    /// With more clients than the processor's caches hold, a check spends most of
    /// its time waiting for memory. In a batch those waits overlap. Like every
    /// iterator this one is lazy: it checks as far as it is consumed, at most 16
    /// at one reading of the clock.
    ///
    /// ```
    /// # let limiter: spillgate::Limiter<str> = spillgate::Limiter::new("10/s")?;
    /// let callers = ["alice", "bob", "alice"];
    /// for (caller, decision) in callers.into_iter().zip(limiter.check_many(callers)) {
    ///     println!("{caller}: {} left", decision.remaining());
    /// }
    /// # Ok::<(), spillgate::Error>(())
    /// ```
    pub fn check_many<'k, I>(&self, keys: I) -> CheckMany<'_, I::IntoIter, K, C, S>
    where
        I: IntoIterator<Item = &'k K>,
        K: 'k,
    {
        CheckMany {
            limiter: self,
            keys: keys.into_iter().fuse(),
            ahead: [None; AHEAD],
            next: AHEAD,
            now: Timestamp::ZERO,
        }
    }
}

/// The decisions of [`Limiter::check_many`].
#[must_use = "clients are checked as the iterator is consumed"]
#[expect(missing_debug_implementations, reason = "the keys may be anything")]
pub struct CheckMany<'l, I, K: ?Sized, C, S> {
    limiter: &'l Limiter<K, C, S>,
    keys: Fuse<I>,
    /// Clients whose slots are on their way into the cache.
    ahead: [Option<Client>; AHEAD],
    next: usize,
    now: Timestamp,
}

impl<'k, I, K, C, S> CheckMany<'_, I, K, C, S>
where
    I: Iterator<Item = &'k K>,
    K: Hash + ?Sized + 'k,
    C: Clock,
    S: BuildHasher,
{
    #[inline]
    fn look_ahead(&mut self) {
        let limiter = self.limiter;
        for place in &mut self.ahead {
            *place = self.keys.next().map(|key| limiter.client(key));
        }
        // These loads depend on nothing, so the processor has all of them under
        // way before the first exchange makes it wait.
        for client in self.ahead.into_iter().flatten() {
            limiter.table.touch(client.fingerprint);
        }
        self.now = limiter.clock.now();
        self.next = 0;
    }
}

impl<'k, I, K, C, S> Iterator for CheckMany<'_, I, K, C, S>
where
    I: Iterator<Item = &'k K>,
    K: Hash + ?Sized + 'k,
    C: Clock,
    S: BuildHasher,
{
    type Item = Decision;

    #[inline]
    fn next(&mut self) -> Option<Decision> {
        if self.next == AHEAD {
            self.look_ahead();
        }
        let client = (*self.ahead.get(self.next)?)?;
        self.next += 1;
        match self.limiter.check_at_home(client.fingerprint, 1, self.now) {
            Some(decision) => Some(decision),
            None => Some(self.limiter.check_anywhere(client, 1, self.now)),
        }
    }
}
