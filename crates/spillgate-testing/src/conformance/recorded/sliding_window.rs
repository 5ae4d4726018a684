use spillgate::AlgorithmKind::SlidingWindow;

use super::Op::{Check, Debit, Peek, Refund, Reset};
use super::answer::{NOW, allowed, denied, ms, never, ns, s};
use super::{Recording, full};

pub(super) const RECORDINGS: &[Recording] = &[
    full(SlidingWindow, "10/min", "the previous window counts less and less").rows(&[
        (s(30), Check(11), never(10, NOW)),
        // Counts fully until 60 s and a little until 120.
        (s(30), Check(10), allowed(0, s(90))),
        // 10·(1 - e) + 1 ≤ 10 from e = 1/10 on: 6 s into the next window.
        (s(30), Check(1), denied(s(36), 0, s(90))),
        (s(66), Check(1), allowed(0, s(114))),
        // 10·(1 - 15/60) + 1 = 8.5, which leaves one whole call.
        (s(75), Peek(0), allowed(1, s(105))),
        // 7.5 + 2 = 9.5.
        (s(75), Check(1), allowed(0, s(105))),
        // 10·(1 - e) + 2 + 1 ≤ 10 from e = 3/10 on: 18 s into the window.
        (s(75), Check(1), denied(s(3), 0, s(105))),
        // 10·(1 - e) + 2 + 8 ≤ 10 when the window is over; 2 + 8 ≤ 10 then.
        (s(75), Check(8), denied(s(45), 0, s(105))),
        // 2·(1 - e) + 9 ≤ 10 from e = 1/2 on, in the window after.
        (s(75), Check(9), denied(s(75), 0, s(105))),
        (s(180), Check(10), allowed(0, s(120))),
    ]),
    full(SlidingWindow, "3/s", "a fraction of a call counts as it is").rows(&[
        (ms(500), Check(3), allowed(0, ms(1_500))),
        // 3·(1 - e) + 1 ≤ 3 from e = 1/3 on.
        (s(1), Check(1), denied(ns(333_333_334), 0, s(1))),
        (ns(1_333_333_333), Check(1), denied(ns(1), 0, ns(666_666_667))),
        (ns(1_333_333_334), Check(1), allowed(0, ns(1_666_666_666))),
    ]),
    full(
        SlidingWindow,
        "10/min",
        "a refund takes from the current window only, and debt lasts for two",
    )
    .rows(&[
        (NOW, Check(8), allowed(2, s(120))),
        (NOW, Debit(12), allowed(0, s(120))),
        // 20·(1 - e) + 1 ≤ 10 from e = 11/20 on: 33 s into the next window.
        (NOW, Check(1), denied(s(93), 0, s(120))),
        // Nothing of the current window to give back: 20·(1 - 30/60) = 10.
        (s(90), Refund(5), allowed(0, s(30))),
        // 20·(1 - 45/60) = 5.
        (s(105), Check(3), allowed(2, s(75))),
        (s(105), Refund(9), allowed(5, s(15))),
        (s(105), Reset, allowed(10, NOW)),
    ]),
    full(SlidingWindow, "10/min", "calls from before the window count as if none of it were past")
        .rows(&[
            (s(30), Check(4), allowed(6, s(90))),
            // 4·(1 - 30/60) + 2 = 4.
            (s(90), Check(2), allowed(6, s(90))),
            // 4 + 2 = 6.
            (s(10), Peek(0), allowed(4, s(170))),
            (s(10), Check(4), allowed(0, s(170))),
            // 4·(1 - e) + 6 + 1 ≤ 10 from e = 1/4 on: at 75 s.
            (s(10), Check(1), denied(s(65), 0, s(170))),
        ]),
];
