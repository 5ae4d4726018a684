//! An adaptive limit, as it is in this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spillgate::adaptive::{AdaptiveLimit, AdaptiveRate, AdaptiveStatus, Ending, Priority};
use spillgate::{Decision, ManualClock, Timestamp};

use super::build::{MadeOf, concurrency, rate, share};
use super::decision::{
    Refusal, Taken, busy, decided, held, let_through, not_let_through, would_hold,
};
use crate::policy::Rule;
use crate::policy::adaptive::{AdaptiveTerms, Bounds};
use crate::store::Spend;
use crate::{Error, Key};

/// An adaptive limit. It outlives policies: the next one with a limit of the same name and
/// kind goes on where it is.
pub(in crate::gate) struct LiveLimit {
    name: Arc<str>,
    kind: &'static str,
    per: String,
    live: Live,
    /// The store's time when the limit was last changed: times of requests are passed on.
    clock: ManualClock,
    made_of: Mutex<MadeOf>,
    /// Permits that expired before they were released.
    expired: AtomicU64,
}

enum Live {
    Concurrency(AdaptiveLimit<ManualClock>),
    Share(AdaptiveLimit<ManualClock>),
    Rate(Box<AdaptiveRate<Key, ManualClock>>),
}

impl LiveLimit {
    /// A limit that begins.
    pub(super) fn new(
        rule: &Rule,
        terms: &AdaptiveTerms,
        by_priority: bool,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let clock = ManualClock::new(now);
        let live = match &terms.bounds {
            Bounds::Concurrency(range, start) => {
                let builder = concurrency(terms, range, *start, by_priority);
                Live::Concurrency(builder.clock(clock.clone()).build())
            }
            Bounds::Share(min, start) => {
                let builder = share(terms, *min, *start, by_priority);
                Live::Share(builder.clock(clock.clone()).build())
            }
            Bounds::Rate(range, start) => {
                let builder = rate(rule, terms, range, start.as_ref(), by_priority);
                let rate = builder.clock(clock.clone()).build();
                let refused = |why| Error::store(format!("limit {:?}: {why}", rule.name));
                Live::Rate(Box::new(rate.map_err(refused)?))
            }
        };
        Ok(Self {
            name: Arc::clone(&rule.name),
            kind: terms.kind(),
            per: rule.spec.per.clone(),
            live,
            clock,
            made_of: Mutex::new(MadeOf::new(terms, by_priority)),
            expired: AtomicU64::new(0),
        })
    }

    /// True if the limit of another policy counts the same things, and this one can go on as it.
    pub(super) fn is_of(&self, rule: &Rule, terms: &AdaptiveTerms) -> bool {
        let fits = match (&self.live, &terms.bounds) {
            (Live::Rate(rate), Bounds::Rate(range, _)) => rate.expect_range(range).is_ok(),
            _ => true,
        };
        self.name == rule.name && self.kind == terms.kind() && self.per == rule.spec.per && fits
    }

    /// Gives the limit the bounds and the controller of the next policy. If they are the same, it
    /// keeps what it has learnt.
    pub(super) fn change(
        &self,
        rule: &Rule,
        terms: &AdaptiveTerms,
        by_priority: bool,
        now: Timestamp,
    ) {
        let next = MadeOf::new(terms, by_priority);
        let mut made_of = self.made_of();
        if *made_of == next {
            return;
        }
        *made_of = next;
        self.clock.set(now);
        match (&self.live, &terms.bounds) {
            (Live::Concurrency(limit), Bounds::Concurrency(range, start)) => {
                limit.reconfigure(concurrency(terms, range, *start, by_priority));
            }
            (Live::Share(limit), Bounds::Share(min, start)) => {
                limit.reconfigure(share(terms, *min, *start, by_priority));
            }
            (Live::Rate(limit), Bounds::Rate(range, start)) => {
                // It fits: that was looked at.
                let _ = limit.reconfigure(rate(rule, terms, range, start.as_ref(), by_priority));
            }
            // It is of the same kind.
            _ => {}
        }
    }

    /// True if nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight() == 0
    }

    /// How many requests are in flight, as far as that is known.
    pub(super) fn in_flight(&self) -> u32 {
        match &self.live {
            Live::Concurrency(limit) | Live::Share(limit) => limit.in_flight(),
            Live::Rate(_) => 0,
        }
    }

    /// Whether a request would go ahead.
    pub(super) fn peek(
        &self,
        spend: &Spend,
        priority: Priority,
        now: Timestamp,
    ) -> Result<Decision, Refusal> {
        match &self.live {
            Live::Concurrency(limit) | Live::Share(limit) if spend.cost == 0 => {
                Ok(self.look(limit, now))
            }
            Live::Concurrency(limit) => match limit.peek_at(priority, now) {
                Ok(()) => Ok(would_hold(limit, now)),
                Err(shed) => Err(busy(limit, shed, now)),
            },
            Live::Share(limit) => match limit.peek_at(priority, now) {
                Ok(()) => Ok(let_through(now)),
                Err(shed) => Err(not_let_through(shed, now)),
            },
            Live::Rate(rate) => decided(rate.peek_at(&spend.key, spend.cost, priority, now)),
        }
    }

    /// Lets a request go ahead, or refuses it. A cost of 0 only looks, and always passes.
    pub(super) fn take(
        &self,
        spend: &Spend,
        priority: Priority,
        now: Timestamp,
    ) -> Result<Taken, Refusal> {
        match &self.live {
            Live::Concurrency(limit) | Live::Share(limit) if spend.cost == 0 => {
                Ok(self.look(limit, now).into())
            }
            Live::Concurrency(limit) => match limit.try_acquire_at(priority, now) {
                Ok(permit) => Ok(Taken { decision: held(limit, now), permit: Some(permit) }),
                Err(shed) => Err(busy(limit, shed, now)),
            },
            Live::Share(limit) => match limit.try_acquire_at(priority, now) {
                Ok(permit) => Ok(Taken { decision: let_through(now), permit: Some(permit) }),
                Err(shed) => Err(not_let_through(shed, now)),
            },
            Live::Rate(rate) => {
                decided(rate.check_at(&spend.key, spend.cost, priority, now)).map(Taken::from)
            }
        }
    }

    /// Lets a request go ahead in any case, and says what would have been decided.
    pub(super) fn take_beyond(&self, spend: &Spend, priority: Priority, now: Timestamp) -> Taken {
        let (Live::Concurrency(limit) | Live::Share(limit)) = &self.live else {
            let taken = self.take(spend, priority, now);
            return taken.unwrap_or_else(|refusal| refusal.decision.into());
        };
        if spend.cost == 0 {
            return self.look(limit, now).into();
        }
        let (permit, result) = limit.acquire_beyond_at(priority, now);
        let decision = match (result, &self.live) {
            (Ok(()), Live::Share(_)) => let_through(now),
            (Ok(()), _) => held(limit, now),
            (Err(shed), Live::Share(_)) => not_let_through(shed, now).decision,
            (Err(shed), _) => busy(limit, shed, now).decision,
        };
        Taken { decision, permit: Some(permit) }
    }

    /// Counts a request that was refused because of what [`peek`](Self::peek) said.
    pub(super) fn refuse(&self, priority: Priority, now: Timestamp) {
        match &self.live {
            Live::Concurrency(limit) | Live::Share(limit) => limit.refuse_at(priority, now),
            Live::Rate(rate) => rate.refuse_at(priority, now),
        }
    }

    /// Takes back what was spent by a request that did not go ahead. Permits return by themselves.
    pub(in crate::gate) fn give_back(&self, spend: &Spend, now: Timestamp) {
        if let Live::Rate(rate) = &self.live {
            rate.refund_at(&spend.key, spend.cost, now);
        }
    }

    /// Notes how calls ended.
    pub(in crate::gate) fn record(
        &self,
        ending: Ending,
        latency: Duration,
        count: u32,
        now: Timestamp,
    ) {
        match &self.live {
            Live::Concurrency(limit) | Live::Share(limit) => {
                limit.record_n_at(ending, latency, count, now);
            }
            Live::Rate(rate) => rate.record_n_at(ending, latency, count, now),
        }
    }

    /// Notes how a call ended that held a permit for this long. How long it waited before, nobody
    /// says.
    pub(super) fn record_held(&self, ending: Ending, held: Duration, now: Timestamp) {
        if !self.made_of().needs_queue_wait {
            self.record(ending, held, 1, now);
        }
    }

    fn made_of(&self) -> MutexGuard<'_, MadeOf> {
        self.made_of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the limit is.
    pub(in crate::gate) fn status(&self) -> AdaptiveStatus {
        match &self.live {
            Live::Concurrency(limit) | Live::Share(limit) => limit.status(),
            Live::Rate(rate) => rate.status(),
        }
    }

    pub(super) fn count_expired(&self) {
        // Relaxed: a count orders nothing.
        self.expired.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// What there is, for a request that takes nothing.
    fn look(&self, limit: &AdaptiveLimit<ManualClock>, now: Timestamp) -> Decision {
        match &self.live {
            Live::Share(_) => let_through(now),
            _ => Decision::peek_hold(limit.permits(), limit.in_flight(), 0, now),
        }
    }
}
