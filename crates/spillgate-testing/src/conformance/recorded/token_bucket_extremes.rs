use spillgate::AlgorithmKind::TokenBucket;

use super::Op::{Check, Debit, Refund, Reset};
use super::answer::{NOW, allowed, denied, never, ns, s};
use super::{Recording, full};

const DAY: u64 = 24 * 60 * 60;

pub(super) const RECORDINGS: &[Recording] = &[
    full(TokenBucket, "1/s", "a burst of one").rows(&[
        (NOW, Check(1), allowed(0, s(1))),
        (NOW, Check(1), denied(s(1), 0, s(1))),
        (ns(999_999_999), Check(1), denied(ns(1), 0, ns(1))),
        (s(1), Check(2), never(1, NOW)),
        (s(1), Check(1), allowed(0, s(1))),
        (s(9), Check(1), allowed(0, s(1))),
    ]),
    full(TokenBucket, "1_000_000/s burst 2", "a million a second is one a microsecond").rows(&[
        (NOW, Check(2), allowed(0, ns(2_000))),
        (NOW, Check(1), denied(ns(1_000), 0, ns(2_000))),
        (ns(999), Check(1), denied(ns(1), 0, ns(1_001))),
        (ns(1_000), Check(1), allowed(0, ns(2_000))),
        (ns(2_500), Check(1), allowed(0, ns(1_500))),
        // The half token that was left then, and the half since.
        (ns(3_000), Check(1), allowed(0, ns(2_000))),
    ]),
    full(TokenBucket, "3/s", "a third of a second is rounded up to a nanosecond").rows(&[
        (NOW, Check(3), allowed(0, ns(1_000_000_002))),
        (NOW, Check(1), denied(ns(333_333_334), 0, ns(1_000_000_002))),
        (ns(333_333_333), Check(1), denied(ns(1), 0, ns(666_666_669))),
        (ns(333_333_334), Check(1), allowed(0, ns(1_000_000_002))),
    ]),
    full(TokenBucket, "1/day", "one a day").rows(&[
        (NOW, Check(1), allowed(0, s(DAY))),
        (s(DAY - 1), Check(1), denied(s(1), 0, s(1))),
        (s(DAY), Check(1), allowed(0, s(DAY))),
        (s(1000 * DAY), Check(1), allowed(0, s(DAY))),
    ]),
    full(TokenBucket, "burst 3", "a quota that is never refilled").rows(&[
        (NOW, Check(2), allowed(1, NOW).for_good()),
        (s(9), Check(2), never(1, NOW).for_good()),
        (s(9), Check(1), allowed(0, NOW).for_good()),
        (s(1000 * DAY), Check(1), never(0, NOW).for_good()),
        (s(1000 * DAY), Check(0), allowed(0, NOW).for_good()),
        (s(1000 * DAY), Debit(1), allowed(0, NOW).for_good()),
        // 4 owed - 2 = 2.
        (s(1000 * DAY), Refund(2), allowed(1, NOW).for_good()),
        // Nothing is spent, so nothing has to be waited for.
        (s(1000 * DAY), Refund(9), allowed(3, NOW)),
        (s(1000 * DAY), Check(3), allowed(0, NOW).for_good()),
        (s(1000 * DAY), Reset, allowed(3, NOW)),
    ]),
    full(TokenBucket, "1 per 4_611_686_018_427_387_903 ns", "the longest interval that there is")
        .rows(&[
            (NOW, Check(1), allowed(0, ns((1 << 62) - 1))),
            (
                s(1),
                Check(1),
                denied(ns((1 << 62) - 1_000_000_001), 0, ns((1 << 62) - 1_000_000_001)),
            ),
        ]),
    full(
        TokenBucket,
        "1/ns burst 4_611_686_018_427_387_903",
        "the shortest interval that there is",
    )
    .rows(&[
        (NOW, Check(u64::MAX), never((1 << 62) - 1, NOW)),
        (NOW, Check(1 << 62), never((1 << 62) - 1, NOW)),
        (NOW, Check((1 << 62) - 1), allowed(0, ns((1 << 62) - 1))),
        (ns(7), Check(8), denied(ns(1), 7, ns((1 << 62) - 8))),
        (ns(8), Check(8), allowed(0, ns((1 << 62) - 1))),
    ]),
];
