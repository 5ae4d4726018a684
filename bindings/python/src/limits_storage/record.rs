use std::collections::VecDeque;

/// Longest log of times that is kept per key: 64 KiB.
///
/// Up to this limit, a log is exact. Above, hits within `expiry / MAX_RUNS` share the time of the
/// last of them, which denies for that much longer and never admits more.
pub(super) const MAX_RUNS: usize = 4096;

/// What has been counted for a key, and until when it matters.
#[derive(Debug)]
pub(super) enum Record {
    Counter(Counter),
    Log(Box<Log>),
    Sliding(Sliding),
}

impl Record {
    pub(super) fn is_expired(&self, now: f64) -> bool {
        self.expires() <= now
    }

    pub(super) fn expires(&self) -> f64 {
        match self {
            Self::Counter(counter) => counter.expires,
            Self::Log(log) => log.expires(),
            Self::Sliding(sliding) => (sliding.index + 2.0) * sliding.expiry,
        }
    }

    /// How much is forgotten with this record.
    pub(super) fn spent(&self) -> u64 {
        match self {
            Self::Counter(counter) => counter.count,
            Self::Log(log) => log.total,
            Self::Sliding(sliding) => sliding.current.saturating_add(sliding.previous),
        }
    }

    /// Number of logged times.
    pub(super) fn runs(&self) -> usize {
        if let Self::Log(log) = self { log.runs.len() } else { 0 }
    }
}

/// A fixed window, which begins with its first hit. Denied hits count.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) count: u64,
    pub(super) expires: f64,
}

impl Counter {
    pub(super) fn add(&mut self, expiry: f64, amount: u64, now: f64) -> u64 {
        if self.count == 0 || self.expires <= now {
            *self = Self { count: 0, expires: now + expiry };
        }
        self.count = self.count.saturating_add(amount);
        self.count
    }
}

/// A moving window: how much was admitted at which times, oldest first.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) runs: VecDeque<(f64, u64)>,
    pub(super) expiry: f64,
    total: u64,
    /// Time of the first hit in the last run.
    last_run_began: f64,
}

impl Log {
    pub(super) fn new(expiry: f64) -> Self {
        Self::restore(expiry, Vec::new())
    }

    pub(super) fn restore(expiry: f64, runs: Vec<(f64, u64)>) -> Self {
        let total = runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.1));
        let last_run_began = runs.last().map_or(0.0, |run| run.0);
        Self { runs: runs.into(), expiry, total, last_run_began }
    }

    fn expires(&self) -> f64 {
        self.runs.back().map_or(0.0, |run| (run.0 + self.expiry).next_up())
    }

    pub(super) fn acquire(&mut self, limit: u64, expiry: f64, amount: u64, now: f64) -> bool {
        self.expiry = self.expiry.max(expiry);
        self.forget(now);
        let (_, admitted) = self.window(expiry, now);
        if exceeds(admitted, amount, limit) {
            return false;
        }
        if amount > 0 {
            self.push(limit, amount, now);
        }
        true
    }

    /// Time of the oldest hit in the window, and the number of hits. One that is exactly `expiry`
    /// old still counts.
    pub(super) fn window(&self, expiry: f64, now: f64) -> (f64, u64) {
        let first = self.runs.partition_point(|run| run.0 < now - expiry);
        let Some(oldest) = self.runs.get(first) else { return (now, 0) };
        let before = self.runs.range(..first).fold(0, |sum: u64, run| sum.saturating_add(run.1));
        (oldest.0, self.total.saturating_sub(before))
    }

    fn push(&mut self, limit: u64, amount: u64, now: f64) {
        self.total = self.total.saturating_add(amount);
        let coarse = limit > MAX_RUNS as u64;
        let resolution = if coarse { self.expiry / MAX_RUNS as f64 } else { 0.0 };
        if let Some(last) = self.runs.back_mut() {
            // If the clock was set back, the log stays in order and nothing expires early.
            if now <= last.0.max(self.last_run_began + resolution) {
                *last = (last.0.max(now), last.1.saturating_add(amount));
                return;
            }
        }
        self.runs.push_back((now, amount));
        self.last_run_began = now;
    }

    fn forget(&mut self, now: f64) {
        while let Some(oldest) = self.runs.front().filter(|run| run.0 < now - self.expiry) {
            self.total = self.total.saturating_sub(oldest.1);
            self.runs.pop_front();
        }
        if self.runs.capacity() > 16 + 4 * self.runs.len() {
            self.runs.shrink_to(2 * self.runs.len());
        }
    }
}

/// Counts of two windows, the current one weighted by 1 and the previous one by what remains of
/// the current.
#[derive(Debug)]
pub(super) struct Sliding {
    pub(super) expiry: f64,
    /// Of the current window, in windows since the epoch.
    pub(super) index: f64,
    pub(super) previous: u64,
    pub(super) current: u64,
}

impl Sliding {
    pub(super) fn new(expiry: f64, now: f64) -> Self {
        Self { expiry, index: (now / expiry).floor(), previous: 0, current: 0 }
    }

    /// The same counts as seen at a later time. If the clock was set back, as seen at the begin of
    /// the window, when they weigh most.
    pub(super) fn at(&self, now: f64) -> Self {
        let index = (now / self.expiry).floor();
        let (previous, current) = match index - self.index {
            passed if passed <= 0.0 => (self.previous, self.current),
            passed if passed < 2.0 => (self.current, 0),
            _ => (0, 0),
        };
        Self { expiry: self.expiry, index: index.max(self.index), previous, current }
    }

    pub(super) fn acquire(&mut self, limit: u64, amount: u64, now: f64) -> bool {
        *self = self.at(now);
        let weighted = self.previous as f64 * self.remaining(now) + self.current as f64;
        if exceeds(weighted as u64, amount, limit) {
            return false;
        }
        self.current = self.current.saturating_add(amount);
        true
    }

    /// Share of the current window that remains.
    pub(super) fn remaining(&self, now: f64) -> f64 {
        (1.0 - (now / self.expiry - self.index)).clamp(0.0, 1.0)
    }
}

/// Without a sum, which would have to stop at the largest number.
fn exceeds(spent: u64, amount: u64, limit: u64) -> bool {
    limit.checked_sub(amount).is_none_or(|room| spent > room)
}
