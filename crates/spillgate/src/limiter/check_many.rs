use std::hash::{BuildHasher, Hash};
use std::iter::Fuse;

use super::Limiter;
use super::tiers::Caller;
use crate::{Clock, Decision, Timestamp};

/// How many callers are prefetched before the first is decided. More would exceed the memory
/// accesses that a core keeps in flight.
const AHEAD: usize = 16;

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// [Checks](Self::check) many callers, in order.
    ///
    /// With more callers than the CPU caches hold, a check spends most of its time waiting for
    /// memory. In a batch those waits overlap. The iterator is lazy: it checks as far as it is
    /// consumed, with one clock reading per 16 checks.
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
#[must_use = "callers are checked as the iterator is consumed"]
#[expect(missing_debug_implementations, reason = "the keys may be anything")]
pub struct CheckMany<'l, I, K: ?Sized, C, S> {
    limiter: &'l Limiter<K, C, S>,
    keys: Fuse<I>,
    /// Callers whose slots are being prefetched.
    ahead: [Option<Caller>; AHEAD],
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
            *place = self.keys.next().map(|key| limiter.caller(key));
        }
        // These loads are independent, so all are in flight before the first exchange waits.
        for caller in self.ahead.into_iter().flatten() {
            limiter.table.prefetch(caller.fingerprint);
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
        let caller = (*self.ahead.get(self.next)?)?;
        self.next += 1;
        match self.limiter.check_at_home(caller.fingerprint, 1, self.now) {
            Some(decision) => Some(decision),
            None => Some(self.limiter.check_anywhere(caller, 1, self.now)),
        }
    }
}
