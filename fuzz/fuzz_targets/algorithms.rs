//! Any sequence of calls, at any times, on any word, keeps an algorithm's promises.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use spillgate::algorithm::{Algorithm, Word};
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};

#[derive(Arbitrary, Debug)]
struct Input {
    kind: u8,
    amount: u64,
    period: u64,
    burst: Option<u64>,
    word: u64,
    calls: Vec<(u64, u64)>,
}

fuzz_target!(|input: Input| {
    let kinds = AlgorithmKind::ALL;
    let kind = kinds[usize::from(input.kind) % kinds.len()];
    let mut quota = Quota::per(input.amount, Duration::from_nanos(input.period));
    if let Some(burst) = input.burst {
        quota = quota.burst(burst);
    }
    let Ok(quota) = quota.build() else { return };
    let Ok(algorithm) = kind.with_quota(&quota, Start::Full, Timestamp::ZERO) else { return };
    let mut word = Word::from_bits(input.word);
    for (nanos, cost) in input.calls {
        let now = Timestamp::from_nanos(nanos);
        let before = algorithm.remaining(word, now);
        assert!(before <= algorithm.limit());
        match algorithm.spend(word, now, cost) {
            Some(spent) => {
                assert!(cost == 0 || cost <= before, "more passed than remained");
                assert_ne!(spent.to_bits(), u64::MAX);
                word = spent;
            }
            None => {
                assert!(cost > before, "less passed than remained");
                assert_ne!(algorithm.retry_after(word, now, cost), Some(Duration::ZERO));
            }
        }
        let _ = (algorithm.reset_after(word, now), algorithm.wait(word, now, cost));
        let refunded = algorithm.refund(word, now, cost);
        assert!(algorithm.remaining(refunded, now) <= algorithm.limit());
        let given_back = algorithm.refund_call(word, now, cost, Word::from_bits(input.word));
        assert!(algorithm.remaining(given_back, now) <= algorithm.limit());
        for most in [0, cost, algorithm.most_owed(None), u64::MAX] {
            let charged = algorithm.debit_up_to(word, now, cost, most);
            assert!(algorithm.spent(charged, now) >= algorithm.spent(word, now));
        }
        assert_eq!(algorithm.carry_over(word, now, &algorithm), word);
    }
});
