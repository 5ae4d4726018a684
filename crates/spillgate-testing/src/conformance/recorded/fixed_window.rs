use spillgate::AlgorithmKind::{FirstHitWindow, FixedWindow};

use super::Op::{Check, Debit, Peek, Refund, Reset};
use super::answer::{NOW, allowed, denied, never, ns, s};
use super::{Recording, full};

pub(super) const RECORDINGS: &[Recording] = &[
    full(FixedWindow, "3/min", "windows follow the clock").rows(&[
        (s(50), Check(4), never(3, NOW)),
        (s(50), Check(2), allowed(1, s(10))),
        (s(50), Check(2), denied(s(10), 1, s(10))),
        (s(59), Check(1), allowed(0, s(1))),
        (ns(59_999_999_999), Check(1), denied(ns(1), 0, ns(1))),
        // Six within two seconds, across the boundary.
        (s(60), Check(3), allowed(0, s(60))),
        (s(60), Peek(1), denied(s(60), 0, s(60))),
        (s(600), Peek(0), allowed(3, NOW)),
    ]),
    full(
        FixedWindow,
        "3/min",
        "debt is forgotten with the window, and a refund goes no further than back",
    )
    .rows(&[
        (s(10), Check(1), allowed(2, s(50))),
        (s(10), Debit(4), allowed(0, s(50))),
        (s(10), Refund(1), allowed(0, s(50))),
        (s(10), Check(1), denied(s(50), 0, s(50))),
        (s(10), Refund(2), allowed(1, s(50))),
        (s(10), Refund(9), allowed(3, NOW)),
        (s(10), Debit(6), allowed(0, s(50))),
        (s(60), Check(1), allowed(2, s(60))),
        (s(60), Reset, allowed(3, NOW)),
    ]),
    full(FixedWindow, "3/min", "calls from before the window count against it").rows(&[
        (s(130), Check(2), allowed(1, s(50))),
        (s(70), Check(1), allowed(0, s(110))),
        (s(70), Check(1), denied(s(110), 0, s(110))),
        (s(130), Check(1), denied(s(50), 0, s(50))),
    ]),
    full(FirstHitWindow, "3/min", "a window begins with the first call").rows(&[
        (s(50), Check(4), never(3, NOW)),
        (s(50), Check(2), allowed(1, s(60))),
        (s(70), Check(1), allowed(0, s(40))),
        (s(70), Check(1), denied(s(40), 0, s(40))),
        (ns(109_999_999_999), Check(1), denied(ns(1), 0, ns(1))),
        (s(115), Check(3), allowed(0, s(60))),
        (s(115), Debit(2), allowed(0, s(60))),
        (s(115), Refund(3), allowed(1, s(60))),
        // With no call left in it, the window has not begun.
        (s(115), Refund(3), allowed(3, NOW)),
        (s(120), Check(1), allowed(2, s(60))),
        (s(120), Reset, allowed(3, NOW)),
    ]),
    // Counts up to 8 take 4 bits, which leaves time in steps of 4 ns.
    full(FirstHitWindow, "3/min", "the beginning of a window is rounded up to the resolution")
        .rows(&[
            (ns(1), Check(3), allowed(0, ns(60_000_000_003))),
            (ns(60_000_000_003), Check(1), denied(ns(1), 0, ns(1))),
            (ns(60_000_000_004), Check(1), allowed(2, s(60))),
        ]),
    full(FirstHitWindow, "3/min", "calls from before the first call count with it").rows(&[
        (s(100), Check(2), allowed(1, s(60))),
        (s(30), Check(1), allowed(0, s(130))),
        (s(30), Check(1), denied(s(130), 0, s(130))),
    ]),
];
