//! A limiter under measurement, and the loops that drive it.

use std::hint::black_box;

use crate::keys::{KeyBuffer, KeySet};
use crate::terms::Terms;
use crate::workload::{Outcome, Pacing};

/// A limiter as its documentation would have it used.
pub trait Peer: Sync + Sized + 'static {
    const NAME: &'static str;

    /// Whether it is asked in batches, so that no check can wait for the last.
    const BATCHED: bool = false;

    type Keys: KeyBuffer;

    /// A limiter for `capacity` callers, allocated in advance if the peer supports it.
    fn build(terms: Terms, capacity: usize) -> Self;

    fn check(&self, key: &KeyOf<Self>) -> bool;

    /// Checks keys one after the other and counts the admitted ones.
    #[inline]
    fn check_all<'k>(&self, keys: impl Iterator<Item = &'k KeyOf<Self>>) -> u64 {
        keys.map(|key| u64::from(self.check(key))).sum()
    }
}

pub type KeyOf<P> = <<P as Peer>::Keys as KeyBuffer>::Key;

/// A peer whose stale callers have to be removed, or can be.
pub trait Sweep: Peer {
    /// As [`Peer::build`]; one that sweeps from within its checks does so often.
    fn build_sweeping(terms: Terms, capacity: usize) -> Self {
        Self::build(terms, capacity)
    }

    /// Removes what need not be kept, if that is something one calls.
    fn sweep(&self);
}

/// So many checks of the keys from `start` on, going round at the end.
#[derive(Clone, Copy)]
pub struct Stretch {
    pub start: usize,
    pub checks: u64,
    pub pacing: Pacing,
    pub expected: Outcome,
}

impl Stretch {
    /// Each key once, as fast as may be.
    pub fn whole(keys: &KeySet) -> Self {
        Self {
            start: 0,
            checks: keys.len() as u64,
            pacing: Pacing::Pipelined,
            expected: Outcome::Allowed,
        }
    }
}

/// A peer whose type has been forgotten. A whole stretch is behind each call, so
/// the loops inside are compiled for the one peer they run.
pub trait Contender: Sync {
    fn name(&self) -> &'static str;

    fn is_batched(&self) -> bool;

    /// Returns how many checks were admitted.
    fn run(&self, keys: &KeySet, stretch: Stretch) -> u64;

    /// Each key once; returns how many checks were admitted.
    fn check_each(&self, keys: &KeySet) -> u64 {
        self.run(keys, Stretch::whole(keys))
    }
}

impl<P: Peer> Contender for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn is_batched(&self) -> bool {
        P::BATCHED
    }

    fn run(&self, keys: &KeySet, stretch: Stretch) -> u64 {
        match stretch.pacing {
            Pacing::Pipelined => run_pipelined(self, keys, stretch),
            Pacing::Isolated => run_isolated(self, keys, stretch),
        }
    }
}

#[inline(never)]
fn run_pipelined<P: Peer>(peer: &P, keys: &KeySet, stretch: Stretch) -> u64 {
    let buffer = P::Keys::of(keys);
    let mut start = stretch.start % keys.len();
    let mut left = stretch.checks;
    let mut allowed = 0;
    while left > 0 {
        let end = keys.len().min(start.saturating_add(left as usize));
        allowed += peer.check_all((start..end).map(|index| buffer.get(index)));
        left -= (end - start) as u64;
        start = 0;
    }
    allowed
}

#[inline(never)]
fn run_isolated<P: Peer>(peer: &P, keys: &KeySet, stretch: Stretch) -> u64 {
    let buffer = P::Keys::of(keys);
    let mut index = stretch.start % keys.len();
    let mut as_expected = 0;
    for _ in 0..stretch.checks {
        let allowed = peer.check(buffer.get(index));
        // Hidden from the compiler, which could otherwise tell the next index
        // from the branch it is on.
        let step = usize::from(black_box(allowed) == stretch.expected.is_allowed());
        finish_everything();
        as_expected += step as u64;
        index += step;
        if index == keys.len() {
            index = 0;
        }
    }
    match stretch.expected {
        Outcome::Allowed => as_expected,
        Outcome::Denied => stretch.checks - as_expected,
    }
}

/// Waits until all loads so far are done.
///
/// That the next index depends on the last answer is not enough: a processor that
/// predicts the branch to that answer goes ahead with the next key, and the
/// misses overlap after all. Costs every peer the same, some ten nanoseconds.
#[inline]
fn finish_everything() {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "there is no safe function for the instruction")]
    // SAFETY: every processor of this architecture has the instruction.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
