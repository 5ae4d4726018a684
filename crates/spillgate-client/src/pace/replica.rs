use std::collections::VecDeque;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, TokenBucket, Word};
use spillgate::{Error, Quota, Timestamp};

use super::supply::{Sample, Supply};
use crate::headers::{AnnouncedLimit, Unit};
use crate::status::LimitStatus;

/// A limit of the far side, as it must be there now: what the last response said, less what was sent
/// since, plus what has been refilled.
///
/// Requests in flight count as spent. So far sides that answer late or out of order are never
/// overestimated, and only the [measured](Supply) refill is a guess, which the next response corrects.
#[derive(Debug)]
pub(super) struct Replica {
    /// The limit with its measured refill. A debt is what is in flight beyond what remains.
    bucket: TokenBucket,
    word: Word,
    limit: u64,
    unit: Unit,
    supply: Supply,
    /// Average cost of a request.
    cost: f64,
    /// Requests in flight, and how many have been answered.
    in_flight: u64,
    answered: u64,
    last: Option<Last>,
    /// When responses came and what they said remains: both rise, the newest is the last.
    recent: VecDeque<(Timestamp, u64)>,
    /// When the last request was sent.
    sent_at: Timestamp,
    learnt_at: Timestamp,
    reset_at: Timestamp,
    /// The length that the reserve is spread over.
    window: Duration,
    blocked_until: Timestamp,
    /// When the last request was sent of which nobody knew what it would find.
    probed_at: Timestamp,
    /// The share of what remains that this client takes at once: less than all if others use it, too.
    share: f64,
}

/// The last response.
#[derive(Clone, Copy, Debug)]
struct Last {
    remaining: u64,
    answered: u64,
}

/// The share of a limit that is spread over the time until it is reset: one in so many.
const RESERVE: u64 = 8;
/// The same of one that refills continuously.
const MARGIN: u64 = 1000;
/// The share of a window before its reset in which nothing is held back.
const UNHELD: f64 = 0.2;
/// How little of what remains is taken at once, after many refusals.
const LEAST_SHARE: f64 = 1.0 / 16.0;
/// After how many seconds without a refusal all of it is.
const RECOVERY: f64 = 60.0;
/// No request counts as more than one in so many of a limit: its cost is a guess.
const MOST_COSTLY: f64 = 4.0;
/// Where a far side announces no reset.
const DEFAULT_RESET: Duration = Duration::from_secs(1);

impl Replica {
    pub(super) fn new(announced: &AnnouncedLimit) -> Result<Self, Error> {
        let bucket = bucket(1, 0.0)?;
        Ok(Self {
            word: bucket.fresh(Timestamp::ZERO),
            bucket,
            limit: 1,
            unit: announced.unit,
            supply: Supply::default(),
            cost: 1.0,
            in_flight: 0,
            answered: 0,
            last: None,
            recent: VecDeque::new(),
            sent_at: Timestamp::ZERO,
            learnt_at: Timestamp::ZERO,
            reset_at: Timestamp::ZERO,
            window: DEFAULT_RESET,
            blocked_until: Timestamp::ZERO,
            probed_at: Timestamp::ZERO,
            share: 1.0,
        })
    }

    /// When a request may be sent, as far as this limit is concerned: now, or not before some time. An
    /// answer that arrives in the meantime may change it.
    pub(super) fn ready_at(&self, now: Timestamp) -> Timestamp {
        if now < self.blocked_until {
            return self.blocked_until;
        }
        if self.is_stale(now) {
            // Nobody knows what there is now. One request finds out, another if that takes long.
            let is_probed = self.probed_at >= self.reset_at.max(self.blocked_until);
            let is_refused = self.blocked_until > self.reset_at;
            let patience = if is_refused { DEFAULT_RESET } else { self.window.min(DEFAULT_RESET) };
            let again = self.probed_at + patience;
            return if is_probed { again.max(now) } else { now };
        }
        let (cost, remaining) = (self.cost(), self.bucket.remaining(self.word, now));
        let others = self.left_to_others(remaining);
        if remaining >= cost.saturating_add(self.reserve(now).max(others)) {
            return now;
        }
        if remaining >= cost.saturating_add(self.reserve(now)) {
            // The next response says what they have taken.
            return now + Duration::from_millis(10);
        }
        let spaced = self.spaced_at(remaining, now);
        if remaining >= cost.saturating_add(others) && now >= spaced {
            return now;
        }
        let refilled =
            self.bucket.retry_after(self.word, now, cost.saturating_add(self.reserve(now)));
        let refilled = refilled.map_or(self.reset_at, |time| now + time);
        let spread = match remaining.checked_sub(cost) {
            Some(left) => self.spread_at(left).min(spaced),
            None => self.reset_at,
        };
        refilled.min(spread).min(self.reset_at).max(now + Duration::from_nanos(1))
    }

    /// What is held back at `now`: it falls to nothing before the reset, so that what remains is spread
    /// over that time, and is used.
    fn reserve(&self, now: Timestamp) -> u64 {
        let share = self.reset_at.since(now).as_secs_f64() / self.window.as_secs_f64().max(1e-9);
        let held = (share.min(1.0) - UNHELD).max(0.0) / (1.0 - UNHELD);
        (self.low() as f64 * held).ceil() as u64
    }

    /// What other clients may be about to take.
    fn left_to_others(&self, remaining: u64) -> u64 {
        let all = remaining as f64 + self.in_flight as f64 * self.cost;
        ((1.0 - self.share) * all) as u64
    }

    /// When the reserve will have fallen to `left`.
    fn spread_at(&self, left: u64) -> Timestamp {
        let held = (left as f64 / self.low().max(1) as f64).min(1.0);
        self.reset_at - self.window.mul_f64(UNHELD + (1.0 - UNHELD) * held)
    }

    /// When the next request is due, if those that remain are sent evenly until the reset: however small
    /// a part of the limit they are, they may be plenty.
    fn spaced_at(&self, remaining: u64, now: Timestamp) -> Timestamp {
        let share = (self.cost / remaining.max(1) as f64).min(1.0);
        self.sent_at + self.reset_at.since(now).mul_f64(share)
    }

    /// Below this, what remains is low. A limit that refills all the time is spread by its refill. Of
    /// others a few are kept in any case, since they find out whether it does.
    fn low(&self) -> u64 {
        let refilled = self.supply.per_second() * self.window.as_secs_f64();
        if refilled * 4.0 >= self.limit as f64 {
            self.limit / MARGIN
        } else {
            (self.limit / RESERVE).max(3.min(self.limit / 3))
        }
    }

    pub(super) fn send(&mut self, now: Timestamp) {
        self.in_flight += 1;
        self.sent_at = now;
        if self.is_stale(now) {
            self.probed_at = now;
        }
        self.word = self.bucket.debit_up_to(self.word, now, self.cost(), u64::MAX);
    }

    /// Undoes [`send`](Self::send) for a request that was not sent after all.
    pub(super) fn unsend(&mut self, now: Timestamp) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.word = self.bucket.refund(self.word, now, self.cost());
    }

    /// A request has ended, with or without a response.
    pub(super) fn end(&mut self, is_answered: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.answered += u64::from(is_answered);
    }

    /// Follows a response to a request that was sent at `sent_at`.
    pub(super) fn learn(
        &mut self,
        announced: &AnnouncedLimit,
        sent_at: Timestamp,
        now: Timestamp,
        longest: Duration,
    ) {
        let Some(remaining) = announced.remaining else { return };
        self.share = (self.share + now.since(self.learnt_at).as_secs_f64() / RECOVERY).min(1.0);
        self.learnt_at = now;
        // Without an announced limit, it is the most that remained in this window.
        let most = if now < self.reset_at { self.limit.max(remaining) } else { remaining };
        self.limit = announced.limit.unwrap_or(most).max(1);
        let remaining = self.lowest_since(sent_at, remaining, now);
        self.learn_cost(remaining);
        self.measure(remaining, now);
        self.learn_reset(announced, remaining, now, longest);
        self.last = Some(Last { remaining, answered: self.answered });
        let refill = self.supply.per_second();
        let bucket = bucket(self.limit, refill).or_else(|_| bucket(self.limit, 0.0));
        self.bucket = bucket.unwrap_or(self.bucket);
        let in_flight = (self.in_flight as f64 * self.cost) as u64;
        let owed = self.limit.saturating_sub(remaining).saturating_add(in_flight);
        self.word = self.bucket.debit_up_to(self.bucket.fresh(now), now, owed, u64::MAX);
    }

    /// The least that remained by any response since a request was sent. Its own response may have been
    /// decided before all of those, although it comes last: it must not raise what remains.
    fn lowest_since(&mut self, sent_at: Timestamp, remaining: u64, now: Timestamp) -> u64 {
        const MOST: usize = 256;
        // A response that is later and lower stands for all that are not.
        while self.recent.back().is_some_and(|(_, earlier)| *earlier >= remaining) {
            self.recent.pop_back();
        }
        self.recent.push_back((now, remaining));
        if self.recent.len() > MOST {
            self.recent.pop_front();
        }
        let first = self.recent.partition_point(|(received_at, _)| *received_at <= sent_at);
        self.recent.get(first).map_or(remaining, |(_, lowest)| *lowest)
    }

    /// What requests cost on average, if they do not count as one.
    fn learn_cost(&mut self, remaining: u64) {
        let Some(last) = self.last.filter(|_| self.unit != Unit::Requests) else { return };
        let answers = self.answered.saturating_sub(last.answered);
        if let Some(spent) = last.remaining.checked_sub(remaining).filter(|_| answers > 0) {
            let cost = spent as f64 / answers as f64;
            self.cost = 0.8 * self.cost + 0.2 * cost;
        }
        self.cost = self.cost.min(self.limit as f64 / MOST_COSTLY).max(1.0);
    }

    /// Measures the refill, while few enough requests are in flight not to blur it.
    fn measure(&mut self, remaining: u64, now: Timestamp) {
        let few = self.few();
        if self.in_flight <= few && self.unit == Unit::Requests {
            let supplied = i128::from(self.answered) + i128::from(remaining);
            let is_full = remaining.saturating_add(2) >= self.limit;
            let sample = Sample { jump: few, window: self.window, is_full };
            self.supply.measure(now, supplied, &sample);
        }
    }

    /// Resets are rounded up to seconds, so of several for one window the earliest is the best.
    fn learn_reset(
        &mut self,
        announced: &AnnouncedLimit,
        remaining: u64,
        now: Timestamp,
        longest: Duration,
    ) {
        let after = announced.reset_after.unwrap_or(DEFAULT_RESET).min(longest);
        let reset_at = now + after;
        let before = self.last.map_or(0, |last| last.remaining.saturating_add(self.few()));
        let is_same_window = now < self.reset_at && remaining <= before;
        self.reset_at = if is_same_window { self.reset_at.min(reset_at) } else { reset_at };
        let window = announced.window.unwrap_or(after).min(longest);
        self.window = if is_same_window { self.window.max(window) } else { window.max(after) };
    }

    /// The far side has refused, although there was something left by what was known: perhaps others took
    /// it.
    pub(super) fn refuse(&mut self) {
        self.supply.refuse();
        self.share = (self.share / 2.0).max(LEAST_SHARE);
    }

    pub(super) fn block(&mut self, until: Timestamp) {
        self.blocked_until = self.blocked_until.max(until);
    }

    /// Requests in flight of another route that meets this limit.
    pub(super) fn join(&mut self, in_flight: u64) {
        self.in_flight += in_flight;
    }

    /// Requests in flight of a route that does not meet this limit any more.
    pub(super) fn leave(&mut self, in_flight: u64) {
        self.in_flight = self.in_flight.saturating_sub(in_flight);
    }

    #[cfg(test)]
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// When a response last spoke of it.
    pub(super) fn learnt_at(&self) -> Timestamp {
        self.learnt_at
    }

    /// True once the announced reset has passed.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        now >= self.reset_at && now >= self.blocked_until
    }

    /// More than this at once is no refill, and no effect of responses out of order.
    fn few(&self) -> u64 {
        (self.limit / 4).max(2)
    }

    fn cost(&self) -> u64 {
        self.cost as u64
    }

    pub(super) fn status(&self, now: Timestamp) -> LimitStatus {
        LimitStatus {
            limit: self.limit,
            remaining: self.bucket.remaining(self.word, now),
            reset_after: self.reset_at.max(self.blocked_until).since(now),
            refill_per_second: self.supply.per_second(),
        }
    }
}

/// A bucket that holds `limit` and refills at a measured rate.
fn bucket(limit: u64, per_second: f64) -> Result<TokenBucket, Error> {
    // Below this, one unit takes longer to refill than any reset that is waited for.
    const SLOWEST: f64 = 1e-6;
    let quota = if per_second < SLOWEST {
        Quota::once(limit).build()?
    } else {
        let interval = Duration::from_secs_f64(1.0 / per_second);
        Quota::per(1, interval.max(Duration::from_nanos(1))).burst(limit).build()?
    };
    TokenBucket::new(&quota)
}
