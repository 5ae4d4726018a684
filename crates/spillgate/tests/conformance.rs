//! Every place where words are kept answers as recorded, and as the model.

use spillgate::{
    AlgorithmKind, Decision, Fingerprint, Limiter, ManualClock, Start, Table, Timestamp,
};
use spillgate_testing::conformance::{histories, recorded};
use spillgate_testing::{Limit, Observed, Subject};

/// So few callers share a dozen slots that they reclaim each other's.
const CAPACITY: usize = 7;

struct InTable(Table);

impl InTable {
    fn new(limit: &Limit) -> Self {
        Self(Table::new(limit.algorithm().unwrap(), CAPACITY).unwrap())
    }

    fn caller(&self, key: &str) -> Fingerprint {
        self.0.fingerprint(key)
    }
}

impl Subject for InTable {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.0.check_at(self.caller(key), cost, now).into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.0.peek_at(self.caller(key), cost, now).into()
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.0.debit_at(self.caller(key), amount, now);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.0.refund_at(self.caller(key), amount, now);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.0.reset_at(self.caller(key), now);
    }
}

struct InLimiter {
    limiter: Limiter<str, ManualClock>,
    clock: ManualClock,
}

impl InLimiter {
    fn new(limit: &Limit) -> Self {
        let clock = ManualClock::new(limit.born);
        let builder = Limiter::builder(limit.quota).algorithm(limit.kind).start(limit.start);
        let limiter = builder.capacity(CAPACITY).clock(clock.clone()).build().unwrap();
        Self { limiter, clock }
    }

    /// Calls for one take the short way, which most programs take.
    fn decide(&self, key: &str, cost: u64) -> Decision {
        if cost == 1 { self.limiter.check(key) } else { self.limiter.check_n(key, cost) }
    }

    /// A limiter peeks for one; for more, one has to ask its table.
    fn look(&self, key: &str, cost: u64, now: Timestamp) -> Decision {
        let table = self.limiter.table();
        match cost {
            1 => self.limiter.peek(key),
            _ => table.peek_at(table.fingerprint(key), cost, now),
        }
    }
}

impl Subject for InLimiter {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.clock.set(now);
        self.decide(key, cost).into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.clock.set(now);
        self.look(key, cost, now).into()
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.clock.set(now);
        // Nothing in advance, and all of it when it is known.
        let reservation = self.limiter.reserve_n(key, 0).unwrap();
        self.limiter.settle(reservation, amount);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.clock.set(now);
        self.limiter.refund_n(key, amount);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.clock.set(now);
        self.limiter.reset(key);
    }
}

#[test]
fn a_table_answers_as_recorded() {
    for kind in AlgorithmKind::ALL {
        recorded(kind, InTable::new);
    }
}

#[test]
fn a_table_answers_as_the_model() {
    for kind in AlgorithmKind::ALL {
        histories(kind, 40, InTable::new);
    }
}

#[test]
fn a_limiter_answers_as_recorded() {
    for kind in AlgorithmKind::ALL {
        recorded(kind, InLimiter::new);
    }
}

#[test]
fn a_limiter_answers_as_the_model() {
    for kind in AlgorithmKind::ALL {
        histories(kind, 25, InLimiter::new);
    }
}

/// Idle is the same as never seen, unless who is never seen has nothing.
#[test]
fn a_refund_lifts_nobody_above_a_caller_never_seen() {
    let now = Timestamp::from_secs(1_700_000_000);
    for kind in [AlgorithmKind::TokenBucket, AlgorithmKind::IntervalBucket] {
        let quota = "1/s burst 5".parse().unwrap();
        let limit = Limit { kind, quota, start: Start::Empty, born: now };
        let table = Table::new(limit.algorithm().unwrap(), CAPACITY).unwrap();
        let refunded = Fingerprint::from_bits(1);
        table.debit_at(refunded, 1, now);
        table.refund_at(refunded, 6, now);
        assert_eq!(table.peek_at(refunded, 0, now).remaining(), 0, "{kind}");
        for other in 2..=CAPACITY as u64 {
            table.debit_at(Fingerprint::from_bits(other), 1, now);
        }
        assert_eq!(table.peek_at(refunded, 0, now).remaining(), 0, "{kind}");
    }
}
