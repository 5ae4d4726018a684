//! What happened to one caller under one limit, and whether that may have happened.
//!
//! This knows the promise of a quota that moves and nothing else: no state of a bucket, no refill
//! that is carried from one call to the next. Each judgement adds up what was admitted, over every
//! interval that begins with one call and ends with another.

use std::time::Duration;

use spillgate::{AlgorithmKind, Quota, Timestamp};

/// What was admitted and returned, and under which quotas.
#[derive(Clone, Debug)]
pub(super) struct Account {
    kind: AlgorithmKind,
    calls: Vec<Call>,
    /// How many of them were forgotten.
    forgotten: usize,
    /// What was charged beyond what was admitted: by a debit, or for a call that took more.
    charges: Vec<(Timestamp, u64)>,
    /// What was returned without a call.
    refunds: Vec<(Timestamp, u64)>,
    /// The quota in force, and since when.
    quota: Quota,
    since: Timestamp,
}

/// An admitted call.
#[derive(Clone, Debug)]
struct Call {
    at: Timestamp,
    cost: u64,
    quota: Quota,
    /// When it was settled, and how much of its cost was not used.
    unused: Option<(Timestamp, u64)>,
}

impl Account {
    pub(super) fn new(kind: AlgorithmKind, quota: Quota, now: Timestamp) -> Self {
        let (calls, charges, refunds) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, calls, forgotten: 0, charges, refunds, quota, since: now }
    }

    /// The quota in force is this one from `now` on. One that says the same in other words is no
    /// change.
    pub(super) fn change(&mut self, quota: Quota, now: Timestamp) {
        if !self.is_alike(&quota) {
            self.since = now;
        }
        self.quota = quota;
    }

    fn is_alike(&self, quota: &Quota) -> bool {
        use AlgorithmKind::{LeakyBucket, LeakyShaper, TokenBucket};
        if !matches!(self.kind, TokenBucket | LeakyBucket | LeakyShaper) {
            return self.quota == *quota;
        }
        self.quota.interval() == quota.interval() && self.quota.burst() == quota.burst()
    }

    /// A call was admitted. Returns its number.
    pub(super) fn admitted(&mut self, cost: u64, now: Timestamp) -> usize {
        self.calls.push(Call { at: now, cost, quota: self.quota, unused: None });
        self.calls.len() - 1
    }

    /// A call has taken so much.
    pub(super) fn settled(&mut self, call: usize, actual: u64, now: Timestamp) {
        let Some(call) = self.calls.get_mut(call) else { return };
        match actual.checked_sub(call.cost) {
            Some(missing) => self.charged(missing, now),
            None => call.unused = Some((now, call.cost - actual)),
        }
    }

    /// What was spent is forgotten.
    pub(super) fn reset(&mut self) {
        self.forgotten = self.calls.len();
        self.charges.clear();
        self.refunds.clear();
    }

    fn counted(&self) -> &[Call] {
        self.calls.get(self.forgotten..).unwrap_or_default()
    }

    pub(super) fn charged(&mut self, amount: u64, now: Timestamp) {
        self.charges.push((now, amount));
    }

    pub(super) fn refunded(&mut self, amount: u64, now: Timestamp) {
        self.refunds.push((now, amount));
    }

    /// *Never too much*: what was admitted under some quotas within an interval, less what was
    /// returned of the same calls by its end, is at most the largest burst and what refills at the
    /// fastest of their rates.
    pub(super) fn expect_never_too_much(&self) -> Result<(), String> {
        let quotas = quotas(self.counted());
        quotas.iter().try_for_each(|widest| {
            quotas.iter().try_for_each(|fastest| {
                let is_in = |quota: &Quota| self.is_within(quota, widest, fastest);
                if !is_in(widest) || !is_in(fastest) {
                    return Ok(());
                }
                let calls: Vec<_> =
                    self.counted().iter().filter(|call| is_in(&call.quota)).collect();
                let ends = 0..calls.len();
                ends.into_iter().try_for_each(|end| {
                    (0..=end).try_for_each(|begin| {
                        self.expect_at_most(&calls[begin..=end], widest, fastest)
                    })
                })
            })
        })
    }

    /// True if a quota has no larger burst than one and no higher rate than another. Windows of
    /// different lengths have nothing in common.
    fn is_within(&self, quota: &Quota, widest: &Quota, fastest: &Quota) -> bool {
        let has_windows = self.has_windows();
        quota.burst() <= widest.burst()
            && rate(quota) <= rate(fastest)
            && (!has_windows || quota.period() == widest.period())
    }

    fn expect_at_most(
        &self,
        calls: &[&Call],
        widest: &Quota,
        fastest: &Quota,
    ) -> Result<(), String> {
        let (Some(first), Some(last)) = (calls.first(), calls.last()) else { return Ok(()) };
        let (begin, end) = (first.at, last.at);
        let returned = |call: &&&Call| match call.unused {
            Some((at, unused)) if at <= end => unused,
            _ => 0,
        };
        let cost: u64 = calls.iter().map(|call| call.cost).sum();
        let within = |at: Timestamp| begin <= at && at <= end;
        let refunds = self.refunds.iter().filter(|(at, _)| within(*at)).map(|(_, amount)| amount);
        let returned: u64 =
            calls.iter().map(|call| returned(&call)).sum::<u64>() + refunds.sum::<u64>();
        // What a call from before returns within the interval may have been refilled since.
        let settles_earlier = self.calls.iter().any(|call| {
            call.at < begin && call.unused.is_some_and(|(at, unused)| unused > 0 && within(at))
        });
        let bursts = if settles_earlier || self.has_windows() { 2 } else { 1 };
        let refilled = match self.kind {
            // All at once: under one quota at the end of each period, and under several, at any
            // time.
            AlgorithmKind::IntervalBucket => {
                let is_one = calls.iter().all(|call| call.quota == *fastest);
                let longest = calls.iter().filter_map(|call| call.quota.period()).max();
                let period = longest.filter(|_| !is_one).unwrap_or_default();
                refilled_at_most(fastest, end.since(begin) + period) + u128::from(fastest.amount())
            }
            _ => refilled_at_most(fastest, end.since(begin)),
        };
        let most = u128::from(widest.burst()) * bursts + refilled;
        if u128::from(cost.saturating_sub(returned)) <= most {
            return Ok(());
        }
        Err(format!(
            "{cost} less {returned} were admitted in {:?}, from {begin} on, under quotas up to \
             \"{widest}\" and \"{fastest}\", which allow {most}",
            end.since(begin)
        ))
    }

    /// *Never lost*: a denial has a reason. Calls are denied no longer than by a bucket that was
    /// empty when the quota last changed, with what was charged beyond what was admitted.
    pub(super) fn expect_reason(&self, cost: u64, now: Timestamp) -> Result<(), String> {
        let quota = &self.quota;
        // One token is what translations may round up.
        let cost = u128::from(cost) + 1;
        if cost > u128::from(quota.burst()) {
            return Ok(());
        }
        let refilled = |since: Timestamp| refilled_at_least(self.kind, quota, now.since(since));
        let charged = |since: Timestamp| {
            let after = self.charges.iter().filter(move |(at, _)| *at >= since);
            after.map(|(_, amount)| u128::from(*amount)).sum::<u128>()
        };
        let admitted = |since: Timestamp| {
            let after = self.counted().iter().filter(move |call| call.at >= since);
            after.map(|call| u128::from(call.cost)).sum::<u128>()
        };
        let since_change = admitted(self.since) + charged(Timestamp::ZERO);
        if since_change + cost > refilled(self.since) {
            return Ok(());
        }
        let spends = self.counted().iter().map(|call| call.at);
        let mut begins = spends.chain(self.charges.iter().map(|(at, _)| *at));
        let is_full = |begin: Timestamp| {
            begin >= self.since
                && admitted(begin) + charged(begin) + cost
                    > u128::from(quota.burst()) + refilled(begin)
        };
        if begins.any(is_full) {
            return Ok(());
        }
        Err(format!(
            "{} was denied at {now}: only {since_change} were taken since {}, under \"{quota}\"",
            cost - 1,
            self.since
        ))
    }

    /// *Never lost*: a change charges nobody for more than what was admitted and has not run off
    /// at the rates that it was spent under. `left` remains just after it.
    pub(super) fn expect_not_charged(&self, left: u64, now: Timestamp) -> Result<(), String> {
        let charged = self.quota.burst().saturating_sub(left);
        // Debts run off by the quota in force.
        if self.since != now || !self.charges.is_empty() {
            return Ok(());
        }
        let most = self.not_run_off(now);
        if u128::from(charged) <= most + 1 {
            return Ok(());
        }
        let quota = &self.quota;
        Err(format!("at most {most} are not run off at {now}, and of \"{quota}\" {left} are left"))
    }

    /// The most of what was admitted that may not have run off at `now`.
    fn not_run_off(&self, now: Timestamp) -> u128 {
        if self.has_windows() {
            let counts = |call: &&Call| {
                let period = call.quota.period().unwrap_or(Duration::MAX);
                let lifetime = if self.kind == AlgorithmKind::SlidingWindow { 2 } else { 1 };
                // The length of a window is rounded up.
                now.since(call.at) <= period.saturating_mul(lifetime).saturating_mul(1001) / 1000
            };
            return self.counted().iter().filter(counts).map(|call| u128::from(call.cost)).sum();
        }
        // Calls wait in line for running off, each for its time: whatever their order, the line
        // is as long. Where all of a period runs off at once, that may be a period later for each
        // quota.
        let now = now - self.all_periods();
        let (mut line, mut quickest, mut waiting) = (0_u128, u128::MAX, 0_u128);
        let mut last = Timestamp::ZERO;
        let (earlier, later): (Vec<_>, Vec<_>) =
            self.counted().iter().partition(|call| call.at <= now);
        for call in earlier {
            line = line.saturating_sub(call.at.since(last).as_nanos());
            if line == 0 {
                (quickest, waiting) = (u128::MAX, 0);
            }
            // What is never refilled never runs off.
            let each = call.quota.interval().map_or(u128::MAX >> 64, |each| each.as_nanos());
            line += u128::from(call.cost) * each;
            quickest = quickest.min(each);
            waiting += u128::from(call.cost);
            last = call.at;
        }
        let line = line.saturating_sub(now.since(last).as_nanos());
        let later: u128 = later.iter().map(|call| u128::from(call.cost)).sum();
        line.div_ceil(quickest.max(1)).min(waiting) + later
    }

    fn all_periods(&self) -> Duration {
        if self.kind != AlgorithmKind::IntervalBucket {
            return Duration::ZERO;
        }
        // They are rounded up.
        let periods = quotas(self.counted()).into_iter().filter_map(|quota| quota.period());
        periods.sum::<Duration>() * 1001 / 1000
    }

    fn has_windows(&self) -> bool {
        matches!(
            self.kind,
            AlgorithmKind::FixedWindow
                | AlgorithmKind::FirstHitWindow
                | AlgorithmKind::SlidingWindow
        )
    }
}

fn quotas(calls: &[Call]) -> Vec<Quota> {
    let mut quotas: Vec<Quota> = Vec::new();
    for call in calls {
        if !quotas.contains(&call.quota) {
            quotas.push(call.quota);
        }
    }
    quotas
}

/// A rate, for comparing.
fn rate(quota: &Quota) -> u128 {
    let period = quota.period().map_or(u128::MAX, |period| period.as_nanos());
    (u128::from(quota.amount()) << 64) / period
}

/// The most that refills in some time.
fn refilled_at_most(quota: &Quota, time: Duration) -> u128 {
    let amount = u128::from(quota.amount());
    quota.period().map_or(0, |period| amount * time.as_nanos() / period.as_nanos())
}

/// The least that refills in some time. Intervals and periods are rounded up.
fn refilled_at_least(kind: AlgorithmKind, quota: &Quota, time: Duration) -> u128 {
    let Some(period) = quota.period() else { return 0 };
    let (amount, period) = (u128::from(quota.amount()), period.as_nanos() * 1001 / 1000 + 1);
    let periods = time.as_nanos() / period;
    match kind {
        AlgorithmKind::TokenBucket | AlgorithmKind::LeakyBucket | AlgorithmKind::LeakyShaper => {
            quota.interval().map_or(0, |each| time.as_nanos() / each.as_nanos())
        }
        AlgorithmKind::IntervalBucket => amount * periods.saturating_sub(1),
        // Two windows count at most.
        _ => amount * (periods / 2),
    }
}
