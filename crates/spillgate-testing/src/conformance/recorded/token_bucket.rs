use spillgate::AlgorithmKind::TokenBucket;

use super::Op::{Check, Debit, Peek, Refund, Reset};
use super::answer::{NOW, allowed, denied, ms, never, ns, s};
use super::{Recording, empty, full};

pub(super) const RECORDINGS: &[Recording] = &[
    full(TokenBucket, "1/s burst 5", "as redis-cell and throttled answer").rows(&[
        // More than the burst never passes.
        (NOW, Check(6), never(5, NOW)),
        (NOW, Check(1), allowed(4, s(1))),
        (NOW, Check(1), allowed(3, s(2))),
        (NOW, Check(1), allowed(2, s(3))),
        (NOW, Check(1), allowed(1, s(4))),
        (NOW, Check(1), allowed(0, s(5))),
        (NOW, Check(1), denied(s(1), 0, s(5))),
        // 5 owed - 3 fallen + 1 = 3.
        (s(3), Check(1), allowed(2, s(3))),
        // 3 - 0.1 + 1 = 3.9; of the 1.1 left, one is whole.
        (ms(3_100), Check(1), allowed(1, ms(3_900))),
        // 3.9 - 0.9 + 1 = 4.
        (s(4), Check(1), allowed(1, s(4))),
        // 4 - 4 + 1 = 1.
        (s(8), Check(1), allowed(4, s(1))),
        // 1 - 1.5 is no less than 0; 0 + 1 = 1.
        (ms(9_500), Check(1), allowed(4, s(1))),
        (ms(9_500), Check(0), allowed(4, s(1))),
        (ms(9_500), Check(2), allowed(2, s(3))),
        // 3 + 5 is 3 too many.
        (ms(9_500), Check(5), denied(s(3), 2, s(3))),
    ]),
    full(TokenBucket, "30/min burst 16", "as redis-cell answers to a fresh `15 30 60`").rows(&[(
        NOW,
        Check(1),
        allowed(15, s(2)),
    )]),
    full(TokenBucket, "1/s burst 5", "a denied call passes to the nanosecond").rows(&[
        (NOW, Check(4), allowed(1, s(4))),
        (NOW, Check(2), denied(s(1), 1, s(4))),
        (ns(999_999_999), Check(2), denied(ns(1), 1, ns(3_000_000_001))),
        (s(1), Check(2), allowed(0, s(5))),
    ]),
    full(TokenBucket, "1/s burst 5", "a peek spends nothing").rows(&[
        (NOW, Peek(5), allowed(5, NOW)),
        (NOW, Peek(6), never(5, NOW)),
        (NOW, Check(5), allowed(0, s(5))),
        (s(2), Peek(3), denied(s(1), 2, s(3))),
        (s(2), Peek(2), allowed(2, s(3))),
        (s(2), Check(0), allowed(2, s(3))),
    ]),
    full(TokenBucket, "1/s burst 5", "a debit goes into debt, a refund no further than back").rows(
        &[
            (NOW, Check(5), allowed(0, s(5))),
            (NOW, Debit(3), allowed(0, s(8))),
            // 8 + 1 is 4 too many.
            (NOW, Check(1), denied(s(4), 0, s(8))),
            (NOW, Refund(4), allowed(1, s(4))),
            (NOW, Refund(9), allowed(5, NOW)),
            (NOW, Debit(2), allowed(3, s(2))),
            (NOW, Reset, allowed(5, NOW)),
        ],
    ),
    full(TokenBucket, "1/s burst 5", "what falls while time goes back is missing again").rows(&[
        (s(10), Check(4), allowed(1, s(4))),
        (s(9), Check(1), denied(s(1), 0, s(5))),
        (s(8), Check(1), denied(s(2), 0, s(6))),
        (s(10), Check(1), allowed(0, s(5))),
    ]),
    empty(TokenBucket, "1/s burst 3", "a bucket that starts empty fills from its birth").rows(&[
        (NOW, Check(1), denied(s(1), 0, s(3))),
        (s(2), Check(1), allowed(1, s(2))),
        (s(9), Check(3), allowed(0, s(3))),
        // As if never seen: and the bucket has long been full by now.
        (s(9), Reset, allowed(3, NOW)),
    ]),
];
