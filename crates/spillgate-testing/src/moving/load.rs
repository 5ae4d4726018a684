//! Many threads at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::CheckLimit;
use spillgate::{AlgorithmKind, Quota};
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Gate, Limit, LimitCheck, Limits, Policy, Terms};
use tokio::runtime::Runtime;

const THREADS: u64 = 4;
const KEYS: usize = 4;
/// Refills hardly at all during the test, and is less than is spent, so that there are debts.
const BURST: u64 = 300;

/// The policy of [`under_load`]: one limit of a kind, with a capacity.
///
/// # Panics
///
/// If the policy is invalid.
#[must_use]
pub fn policy_under_load(kind: AlgorithmKind, capacity: u64) -> Policy {
    let limit =
        Limit::new("l", quota(1)).algorithm(kind).by_name().per(["user"]).capacity(capacity);
    let policy = Policy::builder().limit(limit).build();
    policy.unwrap_or_else(|why| panic!("{why}"))
}

/// A quota whose tokens take so many times as long.
fn quota(times: u64) -> String {
    format!("{BURST} per {} days", 1_000 * times)
}

/// Spends, reserves, settles, debits, sets and removes overrides, and reloads, concurrently.
/// Every call must count exactly once: in the end, callers owe what they have spent, less
/// refunds.
///
/// # Panics
///
/// If more was admitted, or less by more than the refunds.
pub fn under_load<S: Store>(
    kind: AlgorithmKind,
    gate: &Gate<S>,
    runtime: &Runtime,
    rounds: usize,
    reload: impl Fn(&Gate<S>) + Sync,
) {
    let spent: [AtomicU64; KEYS] = Default::default();
    let refunded: [AtomicU64; KEYS] = Default::default();
    let own = [1, 2, 5]
        .map(|times| -> Quota { quota(times).parse().unwrap_or_else(|why| panic!("{why}")) });
    let act = |thread: u64| {
        let mut random = Random(thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..rounds {
            let place = random.below(KEYS as u64) as usize;
            let key = ["ann", "bob", "cid", "dot"][place];
            let note = |of: &[AtomicU64; KEYS], amount| {
                of[place].fetch_add(amount, Ordering::Relaxed);
            };
            // A store elsewhere may give up on a caller whose quota changes all the time. Then
            // nothing has happened.
            match random.below(24) {
                0 => {
                    let own = own[random.below(3) as usize];
                    let _ = run(runtime, gate.set_override("l", &[key], own, Terms::permanent()));
                }
                1 => drop(run(runtime, gate.remove_override("l", &[key]))),
                2 if thread == 0 => reload(gate),
                3..5 => {
                    let amount = 1 + random.below(3);
                    if let Ok(settled) = run(runtime, gate.settle_limit("l", &[key], 0, amount)) {
                        note(&spent, amount - settled.uncharged);
                    }
                }
                5..9 => {
                    let (estimate, actual) = (1 + random.below(3), random.below(5));
                    let values = [key];
                    let check = [LimitCheck { limit: "l", values: &values, cost: estimate }];
                    let outcome = run(runtime, gate.decide(&Limits(&check)));
                    let Some(receipt) = outcome.ok().and_then(|mut outcome| outcome.receipt())
                    else {
                        continue;
                    };
                    note(&refunded, estimate.saturating_sub(actual));
                    let is_settled = run(runtime, gate.settle_actual(receipt, actual)).is_ok();
                    note(&spent, if is_settled { estimate.max(actual) } else { estimate });
                }
                _ => {
                    let cost = 1 + random.below(2);
                    let decision = run(runtime, gate.check_limit("l", &[key], cost));
                    let passes = decision.is_ok_and(|decision| decision.is_allowed());
                    note(&spent, if passes { cost } else { 0 });
                }
            }
        }
    };
    thread::scope(|scope| {
        let act = &act;
        (0..THREADS).for_each(|thread| drop(scope.spawn(move || act(thread))));
    });
    for (place, key) in ["ann", "bob", "cid", "dot"].into_iter().enumerate() {
        let answer = run(runtime, async {
            gate.remove_override("l", &[key]).await?;
            gate.peek_limit("l", &[key], 0).await
        });
        let owed = answer.unwrap_or_else(|why| panic!("the store did not answer: {why}")).owed();
        let [spent, refunded] = [&spent, &refunded].map(|of| of[place].load(Ordering::Relaxed));
        // Windows count as far as their words do, which is at least twice the burst. One may have
        // been refilled meanwhile, and a nanosecond more may be a token.
        let least = (spent - refunded).min(2 * BURST);
        assert!(
            owed + 1 >= least && owed <= spent + 1,
            "{kind}: {key} owes {owed}, and has spent {spent} less {refunded}"
        );
    }
}

fn run<T>(runtime: &Runtime, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    runtime.block_on(answer)
}

/// The same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
