use std::time::Duration;

use proptest::test_runner::{TestCaseError, TestError, TestRunner};
use spillgate::{AlgorithmKind, Timestamp, Verdict};

use super::{Call, History, Op};
use crate::reference::{Reference, reference};
use crate::strategy::{self, Shape};
use crate::{Limit, Observed, Subject};

/// Compares `cases` generated histories of each shape with the model.
///
/// One caller whose time also goes back, and several callers whose time does not,
/// must be answered exactly as by the model. Several callers whose time goes back
/// must be admitted no more by a bucket than by the model: a store may forget idle callers,
/// and then has to assume the worst.
///
/// # Panics
///
/// If an answer differs. The message holds the shortest such history found.
pub fn histories<S: Subject>(kind: AlgorithmKind, cases: u32, make: impl Fn(&Limit) -> S) {
    let one = Shape { callers: 1, backwards: true, resets: true };
    run(kind, cases, one, &make, step_exactly);
    let several = Shape { callers: 4, backwards: false, resets: true };
    run(kind, cases, several, &make, step_exactly);
    let is_bucket = matches!(
        kind,
        AlgorithmKind::TokenBucket | AlgorithmKind::LeakyBucket | AlgorithmKind::LeakyShaper
    );
    if is_bucket {
        let wild = Shape { callers: 4, backwards: true, resets: false };
        run(kind, cases, wild, &make, step_within_bounds);
    }
}

/// Makes one call and compares its answer with the model's.
type Step<S> = fn(&mut S, &mut Box<dyn Reference>, Call) -> Result<(), Difference>;

/// What was wrong with an answer.
struct Difference(String);

fn run<S: Subject>(
    kind: AlgorithmKind,
    cases: u32,
    shape: Shape,
    make: &impl Fn(&Limit) -> S,
    step: Step<S>,
) {
    let mut runner = TestRunner::new(strategy::cases(cases));
    let outcome = runner.run(&strategy::histories(kind, shape), |history| {
        replay(&history, make, step).map_err(|Difference(reason)| TestCaseError::fail(reason))
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, history)) => panic!("{reason}\nin {history}"),
        Err(TestError::Abort(reason)) => panic!("no histories of {kind}: {reason}"),
    }
}

fn replay<S: Subject>(
    history: &History,
    make: &impl Fn(&Limit) -> S,
    step: Step<S>,
) -> Result<(), Difference> {
    let mut subject = make(&history.limit);
    let mut model = reference(&history.limit)
        .map_err(|error| Difference(format!("{}: {error}", history.limit)))?;
    for (index, call) in history.calls.iter().enumerate() {
        let call = within_depth(*call, &*model);
        step(&mut subject, &mut model, call).map_err(|Difference(reason)| {
            Difference(format!("call {}, {call}: {reason}", index + 1))
        })?;
    }
    Ok(())
}

/// Limits debts to what every store must be able to represent.
fn within_depth(call: Call, model: &dyn Reference) -> Call {
    let Op::Debit(amount) = call.op else { return call };
    let op = match amount.min(model.room_for_debt(call.key, call.at)) {
        0 => Op::Peek(0),
        amount => Op::Debit(amount),
    };
    Call { op, ..call }
}

fn step_exactly<S: Subject>(
    subject: &mut S,
    model: &mut Box<dyn Reference>,
    call: Call,
) -> Result<(), Difference> {
    let observed = call.make(subject);
    let expected = call.make(model);
    if !agree(&observed, &expected, call.at) {
        return Err(Difference(format!("\n  observed {observed}\n  expected {expected}")));
    }
    retry_is_exact(subject, call, &observed)
}

/// Equal, except for times beyond the last timestamp, where clocks stop.
fn agree(observed: &Observed, expected: &Observed, now: Timestamp) -> bool {
    let longest = Timestamp::MAX.since(now);
    cut(observed, longest) == cut(expected, longest)
}

fn cut(answer: &Observed, longest: Duration) -> Observed {
    let shorter = |span: Option<Duration>| span.map(|span| span.min(longest));
    let verdict = match answer.verdict {
        Verdict::Denied { retry_after } => {
            Verdict::Denied { retry_after: retry_after.min(longest) }
        }
        allowed_or_never => allowed_or_never,
    };
    let (retry_after, reset_after) = (shorter(answer.retry_after), shorter(answer.reset_after));
    Observed { verdict, retry_after, reset_after, ..*answer }
}

/// The denied call is allowed after `retry_after`, and not before.
fn retry_is_exact<S: Subject>(
    subject: &mut S,
    call: Call,
    observed: &Observed,
) -> Result<(), Difference> {
    let (Verdict::Denied { retry_after }, Op::Check(cost) | Op::Peek(cost)) =
        (observed.verdict, call.op)
    else {
        return Ok(());
    };
    let passes = call.at + retry_after;
    if passes.since(call.at) < retry_after || passes == Timestamp::MAX {
        return Ok(());
    }
    let before = passes - Duration::from_nanos(1);
    if !subject.peek(call.key, cost, passes).is_allowed() {
        return Err(Difference(format!("denied again after {retry_after:?}")));
    }
    if subject.peek(call.key, cost, before).is_allowed() {
        return Err(Difference(format!("allowed before {retry_after:?} have passed")));
    }
    Ok(())
}

fn step_within_bounds<S: Subject>(
    subject: &mut S,
    model: &mut Box<dyn Reference>,
    call: Call,
) -> Result<(), Difference> {
    let observed = call.make(subject);
    // What the subject denies, the model must not spend either.
    let spends = observed.is_allowed();
    let call = match call.op {
        Op::Check(cost) if !spends => Call { op: Op::Peek(cost), ..call },
        _ => call,
    };
    let expected = call.make(model);
    let admits_more = observed.is_allowed() && !expected.is_allowed();
    let leaves_more = spends == expected.is_allowed() && observed.remaining > expected.remaining;
    if admits_more || leaves_more {
        return Err(Difference(format!("\n  observed {observed}\n  at most  {expected}")));
    }
    Ok(())
}
