use proptest::collection::vec;
use proptest::prelude::*;
use spillgate::{AlgorithmKind, Timestamp};

use super::{Pause, Size, limits, moments, pauses, sizes};
use crate::Limit;
use crate::conformance::{Call, History, Op};

/// What a generated history may contain.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many callers call.
    pub callers: usize,
    /// Whether time may go back.
    pub backwards: bool,
    /// Whether callers may be reset.
    pub resets: bool,
}

/// Histories under limits of one kind.
pub fn histories(kind: AlgorithmKind, shape: Shape) -> impl Strategy<Value = History> {
    let steps = vec(steps(shape), 1..40);
    (limits(Just(kind)), moments(), steps).prop_map(move |(limit, start, steps)| {
        let mut now = start;
        let calls = steps.iter().map(|step| {
            now = step.moment(&limit, now);
            step.call(&limit, now)
        });
        History { calls: calls.collect(), limit }
    })
}

const CALLERS: [&str; 4] = ["ann", "bob", "cid", "dot"];

/// A call under a limit yet to be chosen.
#[derive(Clone, Copy, Debug)]
struct Step {
    caller: usize,
    /// Since the call before, or until it if time goes back.
    pause: Pause,
    back: bool,
    verb: Verb,
    size: Size,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Check,
    Peek,
    Debit,
    Refund,
    Reset,
}

fn steps(shape: Shape) -> impl Strategy<Value = Step> {
    let verbs = prop_oneof![
        10 => Just(Verb::Check),
        2 => Just(Verb::Peek),
        2 => Just(Verb::Debit),
        2 => Just(Verb::Refund),
        1 => Just(if shape.resets { Verb::Reset } else { Verb::Check }),
    ];
    let back = prop::bool::weighted(if shape.backwards { 0.25 } else { 0.0 });
    let callers = 0..shape.callers.clamp(1, CALLERS.len());
    (callers, pauses(), back, verbs, sizes()).prop_map(|(caller, pause, back, verb, size)| Step {
        caller,
        pause,
        back,
        verb,
        size,
    })
}

impl Step {
    fn moment(self, limit: &Limit, before: Timestamp) -> Timestamp {
        let pause = self.pause.under(limit);
        if self.back { before - pause } else { before + pause }
    }

    fn call(self, limit: &Limit, now: Timestamp) -> Call {
        let size = self.size.under(limit);
        let op = match self.verb {
            Verb::Check => Op::Check(size),
            Verb::Peek => Op::Peek(size),
            // A debit or refund of zero may still note the time.
            Verb::Debit => Op::Debit(size.max(1)),
            Verb::Refund => Op::Refund(size.max(1)),
            Verb::Reset => Op::Reset,
        };
        Call { at: now, key: CALLERS[self.caller], op }
    }
}
