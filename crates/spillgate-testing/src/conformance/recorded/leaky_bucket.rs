use spillgate::AlgorithmKind::{LeakyBucket, LeakyShaper};

use super::Op::{Check, Debit, Peek, Refund, Reset};
use super::answer::{NOW, allowed, denied, ms, never, s};
use super::{Recording, full};

pub(super) const RECORDINGS: &[Recording] = &[
    full(LeakyBucket, "2/s burst 3", "a meter admits at once while there is a place").rows(&[
        (NOW, Check(4), never(3, NOW)),
        (NOW, Check(3), allowed(0, ms(1_500))),
        (NOW, Check(1), denied(ms(500), 0, ms(1_500))),
        // 3 - 1.5 + 1 = 2.5 places taken.
        (ms(750), Check(1), allowed(0, ms(1_250))),
        (ms(750), Debit(2), allowed(0, ms(2_250))),
        // 4.5 + 1 is 2.5 places too many.
        (ms(750), Check(1), denied(ms(1_250), 0, ms(2_250))),
        (ms(750), Refund(3), allowed(1, ms(750))),
        (ms(750), Reset, allowed(3, NOW)),
    ]),
    // The call that leaves counts as well, so the places are one more.
    full(LeakyShaper, "10/s burst 6", "as nginx spaces calls with `rate=10r/s` and `burst=5`")
        .rows(&[
            (NOW, Check(1), allowed(5, ms(100))),
            (NOW, Check(1), allowed(4, ms(200)).waiting(ms(100))),
            (NOW, Check(1), allowed(3, ms(300)).waiting(ms(200))),
            (NOW, Check(1), allowed(2, ms(400)).waiting(ms(300))),
            (NOW, Check(1), allowed(1, ms(500)).waiting(ms(400))),
            (NOW, Check(1), allowed(0, ms(600)).waiting(ms(500))),
            (NOW, Check(1), denied(ms(100), 0, ms(600))),
            // 600 - 100 ms of queue ahead.
            (ms(100), Check(1), allowed(0, ms(600)).waiting(ms(500))),
            // 600 - 550 ms.
            (ms(650), Check(1), allowed(4, ms(150)).waiting(ms(50))),
            (s(2), Check(1), allowed(5, ms(100))),
        ]),
    full(
        LeakyShaper,
        "10/s burst 6",
        "a shaper's large call waits for those before it, not for itself",
    )
    .rows(&[
        (NOW, Check(4), allowed(2, ms(400))),
        (NOW, Peek(1), allowed(2, ms(400)).waiting(ms(400))),
        // Even a call for nothing has its turn after those before it.
        (NOW, Check(0), allowed(2, ms(400)).waiting(ms(400))),
        (NOW, Check(2), allowed(0, ms(600)).waiting(ms(400))),
        (NOW, Check(1), denied(ms(100), 0, ms(600))),
    ]),
];
