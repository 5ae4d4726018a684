use std::time::Duration;

use super::packing::{Packing, carried, period_of, refill_in, without_burst};
use super::{Algorithm, Word};
use crate::{Error, Quota, Timestamp};

/// A count per window.
///
/// At most `amount` per window; across the boundary of two windows, up to twice that can pass
/// at once. Windows are either aligned to the clock
/// ([`aligned`](Self::aligned): a daily window begins at midnight UTC) or begin
/// with a caller's first call ([`from_first_hit`](Self::from_first_hit)).
///
/// The word is the window and the count. The limit of an aligned window is 10⁹ for one second
/// and 10⁶ for one millisecond: every valid quota fits. A window that begins with the first
/// call can count to 10⁶ in one second, and every doubling of the period doubles that; its
/// beginning and length are each rounded up by less than 0.1 % of the period. Debt can be at
/// least as deep as the amount, and expires with the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    packing: Packing,
    /// The length of a window in quanta: 1 if windows are aligned.
    length: u64,
    limit: u64,
    /// How much longer that is than the period, in nanoseconds.
    rounding: u64,
}

impl FixedWindow {
    /// Windows that begin at whole multiples of the period since the epoch.
    ///
    /// # Errors
    ///
    /// If the quota has no period, has a burst, or is more than the word can count.
    pub fn aligned(quota: &Quota) -> Result<Self, Error> {
        let period = Self::period(quota)?;
        let packing = Packing::by_period(quota, period, 1)?;
        Ok(Self { packing, length: 1, limit: quota.burst(), rounding: 0 })
    }

    /// A window that begins with the first call after the last one ended.
    ///
    /// # Errors
    ///
    /// If the quota has no period, has a burst, or is more than the word can count.
    pub fn from_first_hit(quota: &Quota) -> Result<Self, Error> {
        let period = Self::period(quota)?;
        let packing = Packing::fine(quota, period)?;
        let (length, rounding) = (packing.quanta(period), packing.rounding(period));
        Ok(Self { packing, length, limit: quota.burst(), rounding })
    }

    fn period(quota: &Quota) -> Result<u64, Error> {
        let period = period_of(quota, "a fixed window")?;
        without_burst(quota, "a fixed window")?;
        Ok(period)
    }

    /// The length of a window as it is kept: rounded up to the word's resolution.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.length * self.packing.quantum)
    }

    /// The resolution of a window's beginning: the whole period if windows are aligned.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        Duration::from_nanos(self.packing.quantum)
    }

    pub(super) const fn to_raw(self) -> [u64; 4] {
        let Packing { quantum, count_bits } = self.packing;
        [quantum, count_bits, self.length, self.limit]
    }

    pub(super) const fn from_raw(
        [quantum, count_bits, length, limit]: [u64; 4],
        rounding: u64,
    ) -> Self {
        Self { packing: Packing { quantum, count_bits }, length, limit, rounding }
    }

    pub(super) const fn rounding(self) -> u64 {
        self.rounding
    }

    /// True if windows are equally long, but for how their length is rounded.
    fn is_as_long_as(&self, other: &Self) -> bool {
        match self.is_aligned() || other.is_aligned() {
            true => self.length() == other.length(),
            false => self.packing.rounds_alike(self.length(), other.packing, other.length()),
        }
    }

    const fn is_aligned(&self) -> bool {
        self.length == 1
    }

    /// The window that a call at `now` is counted in, and the count so far.
    fn counted(&self, word: Word, now: Timestamp) -> (u64, u64) {
        let (begun, count) = self.packing.unpack(word);
        let running = self.packing.floor(now) < begun.saturating_add(self.length);
        // A window without a count has not begun, but none begins before it.
        if running && (count > 0 || self.is_aligned()) {
            (begun, count)
        } else {
            (self.beginning(now).max(begun), 0)
        }
    }

    /// When a window begins whose first call comes at `now`.
    fn beginning(&self, now: Timestamp) -> u64 {
        if self.is_aligned() { self.packing.floor(now) } else { self.packing.ceil(now) }
    }

    /// A word of `old` as one of this, with what `change` makes of the count.
    fn moved(&self, word: Word, now: Timestamp, old: &Self, change: impl Fn(u64) -> u64) -> Word {
        if self == old {
            return word;
        }
        let (begun, count) = old.counted(word, now);
        // A window of the same length goes on; any other begins now.
        let began = if self.is_as_long_as(old) { old.packing.begin(begun) } else { now };
        self.packing.repack(self.beginning(began), change(count), word, old.packing)
    }

    /// The time until the window that began at `begun` ends.
    fn ends_after(&self, begun: u64, now: Timestamp) -> Duration {
        self.packing.until(begun.saturating_add(self.length), now)
    }
}

impl Algorithm for FixedWindow {
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        if cost == 0 {
            return Some(word);
        }
        let (begun, count) = self.counted(word, now);
        let passes = cost <= self.limit.saturating_sub(count);
        passes.then(|| self.packing.pack(begun, count + cost))
    }

    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word {
        let (begun, count) = self.counted(word, now);
        self.packing.pack(begun, count.saturating_add(amount).min(most.max(count)))
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        let (begun, count) = self.counted(word, now);
        self.packing.pack(begun, count.saturating_sub(amount))
    }

    fn refund_call(&self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word {
        let (begun, _) = self.counted(word, now);
        let (written, count) = self.counted(spent, now);
        // Only in the window of the call, whose count is zero if it is over. A carried-over
        // word may be late by a step, but windows do not overlap.
        let is_same = written.abs_diff(begun) < self.length;
        if is_same { self.refund(word, now, amount.min(count)) } else { word }
    }

    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        self.counted(word, now).1
    }

    fn owed(&self, word: Word, now: Timestamp) -> u64 {
        self.spent(word, now)
    }

    fn fresh(&self, floor: Timestamp) -> Word {
        self.packing.pack(self.beginning(floor), 0)
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn deepest(&self) -> u64 {
        self.packing.most()
    }

    fn refill_in(&self, time: Duration) -> u64 {
        refill_in(self.limit, self.length(), time)
    }

    fn exhausted_from(&self) -> u64 {
        self.limit
    }

    fn window(&self) -> Option<Duration> {
        Some(self.length())
    }

    fn remaining(&self, word: Word, now: Timestamp) -> u64 {
        self.limit.saturating_sub(self.spent(word, now))
    }

    fn retry_after(&self, word: Word, now: Timestamp, cost: u64) -> Option<Duration> {
        let (begun, count) = self.counted(word, now);
        let room = self.limit.checked_sub(cost)?;
        let passes = cost == 0 || count <= room;
        Some(if passes { Duration::ZERO } else { self.ends_after(begun, now) })
    }

    fn reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        let (begun, count) = self.counted(word, now);
        Some(if count == 0 { Duration::ZERO } else { self.ends_after(begun, now) })
    }

    fn nominal_window(&self) -> Option<Duration> {
        Some(self.length() - Duration::from_nanos(self.rounding))
    }

    fn nominal_reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        let reset_after = self.reset_after(word, now)?;
        match self.is_aligned() {
            true => Some(reset_after),
            false => Some(self.packing.nominal(reset_after, self.rounding, 0)),
        }
    }

    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        self.moved(word, now, old, |count| carried(count, old.limit, self.limit))
    }

    fn keep(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        self.moved(word, now, old, |count| count)
    }

    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        let (begun, count) = self.counted(word, then);
        let begun = match self.is_aligned() {
            // As many windows ahead, if time had gone back.
            true => self.packing.floor(now) + begun.saturating_sub(self.packing.floor(then)),
            false => self.packing.shifted(begun, then, now),
        };
        self.packing.pack(begun, count)
    }
}
