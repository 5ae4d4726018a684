//! How many calls are in flight, and how many may be: one word.

use std::sync::atomic::{AtomicU64, Ordering};

/// A limit, and what is in flight under it.
///
/// | bits | |
/// |---|---|
/// | 32–63 | the limit |
/// | 0–31 | calls in flight |
///
/// Both are in one word, so no call goes ahead under a limit that is no longer in force.
pub(super) struct InFlight(AtomicU64);

const HELD: u64 = u32::MAX as u64;

// Relaxed: a permit orders nothing but the count itself.
impl InFlight {
    pub(super) fn new(limit: u32) -> Self {
        Self(AtomicU64::new(u64::from(limit) << 32))
    }

    /// Counts one more call if there is room for it, given the limit. Returns how many are in
    /// flight with it.
    #[inline]
    pub(super) fn try_enter(&self, room: impl Fn(u32) -> u32) -> Option<u32> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let (limit, held) = split(word);
            if held >= room(limit) || held == u32::MAX {
                return None;
            }
            let next = word + 1;
            match self.0.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(held + 1),
                Err(now) => word = now,
            }
        }
    }

    /// Counts one less.
    #[inline]
    pub(super) fn leave(&self) {
        // Never below zero: each call that leaves has entered.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn set_limit(&self, limit: u32) {
        let change = |word| Some(u64::from(limit) << 32 | word & HELD);
        // The closure never refuses, so there is always a new value.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    /// The limit, and how many are in flight.
    #[inline]
    pub(super) fn read(&self) -> (u32, u32) {
        split(self.0.load(Ordering::Relaxed))
    }
}

#[inline]
fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}
