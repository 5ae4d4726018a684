use spillgate::AlgorithmKind::TokenBucket;
use spillgate::Start;

use super::Op::{Check, Debit, Refund, Reset};
use super::Recording;
use super::answer::{NOW, allowed, denied, never, ns, s};

const DAY: u64 = 24 * 60 * 60;

pub(super) const RECORDINGS: &[Recording] = &[
    Recording {
        title: "a burst of one",
        kind: TokenBucket,
        quota: "1/s",
        start: Start::Full,
        rows: &[
            (NOW, Check(1), allowed(0, s(1))),
            (NOW, Check(1), denied(s(1), 0, s(1))),
            (ns(999_999_999), Check(1), denied(ns(1), 0, ns(1))),
            (s(1), Check(2), never(1, NOW)),
            (s(1), Check(1), allowed(0, s(1))),
            (s(9), Check(1), allowed(0, s(1))),
        ],
    },
    Recording {
        title: "a million a second is one a microsecond",
        kind: TokenBucket,
        quota: "1_000_000/s burst 2",
        start: Start::Full,
        rows: &[
            (NOW, Check(2), allowed(0, ns(2_000))),
            (NOW, Check(1), denied(ns(1_000), 0, ns(2_000))),
            (ns(999), Check(1), denied(ns(1), 0, ns(1_001))),
            (ns(1_000), Check(1), allowed(0, ns(2_000))),
            (ns(2_500), Check(1), allowed(0, ns(1_500))),
            // The half token that was left then, and the half since.
            (ns(3_000), Check(1), allowed(0, ns(2_000))),
        ],
    },
    Recording {
        title: "a third of a second is rounded up to a nanosecond",
        kind: TokenBucket,
        quota: "3/s",
        start: Start::Full,
        rows: &[
            (NOW, Check(3), allowed(0, ns(1_000_000_002))),
            (NOW, Check(1), denied(ns(333_333_334), 0, ns(1_000_000_002))),
            (ns(333_333_333), Check(1), denied(ns(1), 0, ns(666_666_669))),
            (ns(333_333_334), Check(1), allowed(0, ns(1_000_000_002))),
        ],
    },
    Recording {
        title: "one a day",
        kind: TokenBucket,
        quota: "1/day",
        start: Start::Full,
        rows: &[
            (NOW, Check(1), allowed(0, s(DAY))),
            (s(DAY - 1), Check(1), denied(s(1), 0, s(1))),
            (s(DAY), Check(1), allowed(0, s(DAY))),
            (s(1000 * DAY), Check(1), allowed(0, s(DAY))),
        ],
    },
    Recording {
        title: "a quota that is never refilled",
        kind: TokenBucket,
        quota: "burst 3",
        start: Start::Full,
        rows: &[
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
        ],
    },
    Recording {
        title: "the longest interval that there is",
        kind: TokenBucket,
        quota: "1 per 4_611_686_018_427_387_903 ns",
        start: Start::Full,
        rows: &[
            (NOW, Check(1), allowed(0, ns((1 << 62) - 1))),
            (
                s(1),
                Check(1),
                denied(ns((1 << 62) - 1_000_000_001), 0, ns((1 << 62) - 1_000_000_001)),
            ),
        ],
    },
    Recording {
        title: "the shortest interval that there is",
        kind: TokenBucket,
        quota: "1/ns burst 4_611_686_018_427_387_903",
        start: Start::Full,
        rows: &[
            (NOW, Check(u64::MAX), never((1 << 62) - 1, NOW)),
            (NOW, Check(1 << 62), never((1 << 62) - 1, NOW)),
            (NOW, Check((1 << 62) - 1), allowed(0, ns((1 << 62) - 1))),
            (ns(7), Check(8), denied(ns(1), 7, ns((1 << 62) - 8))),
            (ns(8), Check(8), allowed(0, ns((1 << 62) - 1))),
        ],
    },
];
