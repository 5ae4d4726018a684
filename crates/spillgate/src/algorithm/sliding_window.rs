use std::time::Duration;

use super::packing::{Packing, carried, period_of, refill_in, without_burst};
use super::{Algorithm, Word};
use crate::{Error, Quota, Timestamp};

/// Two counts, of this window and the one before, weighted by how much of the
/// last period each covers.
///
/// Smoother than a [`FixedWindow`](super::FixedWindow) in the same space. The
/// weighting assumes that the calls of the previous window were spread evenly; where
/// they were not, up to nearly twice the amount can pass within one period. Since the
/// previous window keeps some weight to its end, a caller that never pauses gets
/// `amount - 1` per window: with small amounts, use a bucket.
///
/// The word is the window, aligned to the clock, and the two counts. The limit is 16,000 per
/// second, 131,000 per minute, a million per hour, eight million per day. Debt can be at least
/// as deep as the amount, and expires after two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// The quantum is the period. Each of the two counts has `count_bits`.
    packing: Packing,
    limit: u64,
}

/// A word taken apart and brought up to a moment.
struct WindowCounts {
    window: u64,
    previous: u64,
    current: u64,
    /// Nanoseconds of the current window that are past.
    elapsed: u64,
}

impl SlidingWindow {
    /// Windows of the quota's period.
    ///
    /// # Errors
    ///
    /// If the quota has no period, has a burst, or is more than the word can count.
    pub fn new(quota: &Quota) -> Result<Self, Error> {
        let period = period_of(quota, "a sliding window")?;
        without_burst(quota, "a sliding window")?;
        Ok(Self { packing: Packing::by_period(quota, period, 2)?, limit: quota.burst() })
    }

    pub(super) const fn to_raw(self) -> [u64; 3] {
        [self.packing.quantum, self.packing.count_bits, self.limit]
    }

    pub(super) const fn from_raw([quantum, count_bits, limit]: [u64; 3]) -> Self {
        Self { packing: Packing { quantum, count_bits }, limit }
    }

    const fn period(&self) -> u64 {
        self.packing.quantum
    }

    fn counts(&self, word: Word, now: Timestamp) -> WindowCounts {
        let (rest, current) = self.packing.unpack(word);
        let (window, previous) = self.packing.unpack(Word(rest));
        let at = self.packing.floor(now);
        let (window, previous, current) = match at.saturating_sub(window) {
            0 => (window, previous, current),
            1 => (at, current, 0),
            _ => (at, 0, 0),
        };
        // If time went back behind the window, none of the window is past.
        let elapsed = now.since(self.packing.begin(window)).as_nanos() as u64;
        WindowCounts { window, previous, current, elapsed }
    }

    fn pack(&self, window: u64, previous: u64, current: u64) -> Word {
        let most = self.packing.most();
        let bits = self.packing.count_bits;
        Word((window << (2 * bits)) | (previous.min(most) << bits) | current.min(most))
    }

    /// What counts of the previous window, rounded up.
    fn weighted(&self, counts: &WindowCounts) -> u64 {
        let left = self.period().saturating_sub(counts.elapsed);
        let weighted = u128::from(counts.previous) * u128::from(left);
        weighted.div_ceil(u128::from(self.period())) as u64
    }

    fn estimate(&self, counts: &WindowCounts) -> u64 {
        counts.current + self.weighted(counts)
    }

    /// A word of `old` as one of this, with what `change` makes of the count.
    fn moved(&self, word: Word, now: Timestamp, old: &Self, change: impl Fn(u64) -> u64) -> Word {
        if self == old {
            return word;
        }
        let counts = old.counts(word, now);
        if self.period() == old.period() {
            // Only the weight of the previous window counts, so it is not cut.
            return self.pack(counts.window, counts.previous, change(counts.current));
        }
        let spent = change(old.estimate(&counts));
        let window = self.packing.floor(now);
        let packed = self.pack(window, 0, spent);
        // The same bits would not mean the same: rather a later window.
        if packed == word { self.pack(window + 1, 0, spent) } else { packed }
    }

    /// How far into a window `count` calls of the window before weigh at most
    /// `room`.
    fn decays_after(&self, count: u64, room: u64) -> u64 {
        if count <= room {
            return 0;
        }
        let left = u128::from(room) * u128::from(self.period()) / u128::from(count);
        self.period() - left as u64
    }
}

impl Algorithm for SlidingWindow {
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        if cost == 0 {
            return Some(word);
        }
        let counts = self.counts(word, now);
        let passes = cost <= self.limit.saturating_sub(self.estimate(&counts));
        passes.then(|| self.pack(counts.window, counts.previous, counts.current + cost))
    }

    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word {
        let counts = self.counts(word, now);
        // What the previous window weighs is spent as well.
        let most = most.saturating_sub(self.weighted(&counts)).max(counts.current);
        let current = counts.current.saturating_add(amount).min(most);
        self.pack(counts.window, counts.previous, current)
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        let WindowCounts { window, previous, current, .. } = self.counts(word, now);
        self.pack(window, previous, current.saturating_sub(amount))
    }

    fn refund_call(&self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word {
        let WindowCounts { window, previous, current, .. } = self.counts(word, now);
        let (rest, count) = self.packing.unpack(spent);
        let (written, _) = self.packing.unpack(Word(rest));
        let amount = amount.min(count);
        // Only in the window of the call, while it counts.
        match window.checked_sub(written) {
            Some(0) => self.pack(window, previous, current.saturating_sub(amount)),
            Some(1) => self.pack(window, previous.saturating_sub(amount), current),
            _ => word,
        }
    }

    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        self.estimate(&self.counts(word, now))
    }

    fn owed(&self, word: Word, now: Timestamp) -> u64 {
        self.spent(word, now)
    }

    fn fresh(&self, floor: Timestamp) -> Word {
        self.pack(self.packing.floor(floor), 0, 0)
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn deepest(&self) -> u64 {
        self.packing.most()
    }

    fn refill_in(&self, time: Duration) -> u64 {
        refill_in(self.limit, Duration::from_nanos(self.period()), time)
    }

    fn exhausted_from(&self) -> u64 {
        self.limit
    }

    fn window(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.period()))
    }

    fn remaining(&self, word: Word, now: Timestamp) -> u64 {
        self.limit.saturating_sub(self.spent(word, now))
    }

    fn retry_after(&self, word: Word, now: Timestamp, cost: u64) -> Option<Duration> {
        let counts = self.counts(word, now);
        let room = self.limit.checked_sub(cost)?;
        if cost == 0 || self.estimate(&counts) <= room {
            return Some(Duration::ZERO);
        }
        // Into the window that is current for the word, which begins after `now` if
        // time went back.
        let elapsed = match room.checked_sub(counts.current) {
            // The previous window's weight has to fall.
            Some(room) => self.decays_after(counts.previous, room),
            // So has this window's own, once it is the previous one.
            None => self.period() + self.decays_after(counts.current, room),
        };
        let passes = counts.window.saturating_mul(self.period()).saturating_add(elapsed);
        Some(Duration::from_nanos(passes.saturating_sub(now.as_nanos())))
    }

    fn reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        let counts = self.counts(word, now);
        let windows = match (counts.previous, counts.current) {
            (0, 0) => return Some(Duration::ZERO),
            (_, 0) => 1,
            (_, _) => 2,
        };
        Some(self.packing.until(counts.window.saturating_add(windows), now))
    }

    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        self.moved(word, now, old, |count| carried(count, old.limit, self.limit))
    }

    fn keep(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        self.moved(word, now, old, |count| count)
    }

    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        let WindowCounts { window, previous, current, .. } = self.counts(word, then);
        // As many windows ahead, if time had gone back.
        let ahead = window.saturating_sub(self.packing.floor(then));
        self.pack(self.packing.floor(now) + ahead, previous, current)
    }
}
