use spillgate::AlgorithmKind::IntervalBucket;

use super::Op::{Check, Debit, Peek, Refund, Reset};
use super::answer::{NOW, allowed, denied, ms, never, ns, s};
use super::{Recording, empty, full};

pub(super) const RECORDINGS: &[Recording] = &[
    full(
        IntervalBucket,
        "5 per 10 s",
        "the whole amount falls a period after the bucket was found full",
    )
    .rows(&[
        (NOW, Check(6), never(5, NOW)),
        (s(3), Check(1), allowed(4, s(10))),
        (s(8), Check(4), allowed(0, s(5))),
        (s(8), Check(1), denied(s(5), 0, s(5))),
        (ns(12_999_999_999), Check(1), denied(ns(1), 0, ns(1))),
        (s(13), Check(5), allowed(0, s(10))),
        // Refilled at 23 s, and found full at 30.
        (s(30), Check(1), allowed(4, s(10))),
    ]),
    full(
        IntervalBucket,
        "2 per 10 s burst 5",
        "whole refills only, and the time between two is kept",
    )
    .rows(&[
        // 5 are back after ⌈5/2⌉ = 3 refills.
        (NOW, Check(5), allowed(0, s(30))),
        (NOW, Check(1), denied(s(10), 0, s(30))),
        // 3 are back after 2 refills.
        (NOW, Check(3), denied(s(20), 0, s(30))),
        // 5 - 2 = 3 spent since 10 s; then 5, back at 20, 30 and 40 s.
        (s(15), Check(2), allowed(0, s(25))),
        (s(15), Check(1), denied(s(5), 0, s(25))),
        // At 35 s two more refills: 5 - 4 = 1 spent, the last one due at 40 s.
        (s(35), Peek(0), allowed(4, s(5))),
        // Full since 40 s, so the next period begins with this call.
        (s(47), Check(1), allowed(4, s(10))),
    ]),
    full(
        IntervalBucket,
        "2 per 10 s burst 5",
        "a debit goes into debt, a refund no further than back",
    )
    .rows(&[
        (NOW, Check(5), allowed(0, s(30))),
        // 8 are back after 4 refills.
        (NOW, Debit(3), allowed(0, s(40))),
        // 8 + 1 - 5 = 4 too many: 2 refills.
        (NOW, Check(1), denied(s(20), 0, s(40))),
        (s(10), Refund(4), allowed(3, s(10))),
        (s(10), Refund(4), allowed(5, NOW)),
        (s(12), Check(1), allowed(4, s(10))),
        (s(12), Reset, allowed(5, NOW)),
    ]),
    // Counts up to 12 take 4 bits, which leaves time in steps of 4 ns.
    full(IntervalBucket, "5 per 10 s", "the beginning of a period is rounded up to the resolution")
        .rows(&[
            (ns(1), Check(5), allowed(0, ns(10_000_000_003))),
            (ns(4), Check(1), denied(s(10), 0, s(10))),
            (ns(10_000_000_003), Check(1), denied(ns(1), 0, ns(1))),
            (ns(10_000_000_004), Check(5), allowed(0, s(10))),
        ]),
    full(IntervalBucket, "2 per 10 s burst 5", "time that goes back is waited for again").rows(&[
        (s(100), Check(4), allowed(1, s(20))),
        (s(90), Check(1), allowed(0, s(40))),
        (s(90), Check(1), denied(s(20), 0, s(40))),
    ]),
    empty(
        IntervalBucket,
        "2 per 10 s burst 3",
        "a bucket that starts empty is refilled from its birth",
    )
    .rows(&[
        (ms(1), Check(1), denied(ms(9_999), 0, ms(19_999))),
        (s(12), Check(1), allowed(1, s(8))),
        (s(12), Reset, allowed(2, s(8))),
    ]),
];
