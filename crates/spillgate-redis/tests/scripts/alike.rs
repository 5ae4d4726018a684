//! Whatever is asked, in whatever order, a server answers and keeps what the model does.

use std::cell::RefCell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use redis::{FromRedisValue, Pipeline, Value, from_redis_value_ref};
use spillgate::Timestamp;
use spillgate::algorithm::Algorithm;
use spillgate_redis::backend::{Entry, Model};
use spillgate_redis::script;
use spillgate_redis::{Name, State};
use spillgate_testing::strategy;

use crate::common::Server;
use crate::scripts::case::{CALLERS, cases, name};
use crate::scripts::runner::{MARGIN, ScriptRunner};

const CASES: u32 = 500;

/// A reply, and of each caller what is kept and for how many milliseconds.
struct Answer {
    reply: Vec<u8>,
    kept: Vec<(Option<State>, i64)>,
}

impl Answer {
    fn new(values: &[Value]) -> Self {
        let kept = values[1..].chunks_exact(2).map(|kept| {
            let state: Option<Vec<u8>> = read(&kept[0]);
            (state.map(|bytes| State::from_bytes(&bytes).unwrap()), read(&kept[1]))
        });
        Self { reply: read(&values[0]), kept: kept.collect() }
    }
}

fn read<T: FromRedisValue>(value: &Value) -> T {
    from_redis_value_ref(value).unwrap()
}

/// What is kept at first, and calls with their times.
pub(crate) type Story = (Vec<(Name, State)>, Vec<(Timestamp, Vec<Entry>)>);

/// Makes all calls in one round trip.
fn ask_all(client: &mut ScriptRunner, (states, calls): &Story) -> Vec<Answer> {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("FLUSHDB").ignore();
    for (name, state) in states {
        pipeline.cmd("SET").arg(&client.key(name)[..]).arg(&state.to_bytes()[..]).ignore();
    }
    for (now, entries) in calls {
        pipeline.add_command(client.command(entries, Some(*now)));
        (0..CALLERS).for_each(|caller| client.ask_kept(&mut pipeline, &name(caller)));
    }
    let values: Vec<Value> = pipeline.query(&mut client.connection).unwrap();
    values.chunks_exact(1 + 2 * CALLERS).map(Answer::new).collect()
}

pub(crate) fn compare(client: &mut ScriptRunner, story: &Story) -> Result<(), TestCaseError> {
    let (states, calls) = story;
    let model = Model::default();
    for (name, state) in states {
        model.set_state(*name, Some(state.clone()));
    }
    for ((now, entries), answer) in calls.iter().zip(ask_all(client, story)) {
        let before: Vec<_> = (0..CALLERS).map(|caller| model.state(&name(caller))).collect();
        model.set_now(*now);
        let expected = model.run_now(entries).unwrap();
        prop_assert_eq!(script::reply(&answer.reply, entries.len()).unwrap(), expected);
        for (caller, (state, lifetime)) in answer.kept.into_iter().enumerate() {
            prop_assert_eq!(&state, &model.state(&name(caller)), "after {:?}", entries);
            if let Some(state) = state.filter(|state| before[caller].as_ref() != Some(state)) {
                outlives_what_is_spent(&state, *now, lifetime)?;
            }
        }
    }
    Ok(())
}

/// A state is kept until nothing is spent, and then for the margin, but not much longer.
fn outlives_what_is_spent(state: &State, now: Timestamp, millis: i64) -> Result<(), TestCaseError> {
    let algorithm = state.terms.algorithm().unwrap();
    let (Some(reset), Some(window), false) =
        (algorithm.reset_after(state.word, now), algorithm.window(), state.terms.is_override)
    else {
        prop_assert_eq!(millis, -1);
        return Ok(());
    };
    // The time that a test takes, and some.
    const LATE: Duration = Duration::from_secs(3600);
    let lifetime = Duration::from_millis(millis.try_into().unwrap());
    let longest = Timestamp::MAX.since(Timestamp::ZERO);
    let needed = reset.min(longest) + MARGIN;
    prop_assert!(lifetime + LATE > needed, "{lifetime:?} for {needed:?}");
    if reset > Duration::ZERO {
        prop_assert!(lifetime < needed + window + LATE, "{lifetime:?} for {needed:?}");
    }
    Ok(())
}

fn is_alike(server: Server) {
    let client = RefCell::new(ScriptRunner::new(server));
    let mut runner = TestRunner::new(strategy::cases(CASES));
    let outcome = runner.run(&cases(), |case| {
        compare(&mut client.borrow_mut(), &(case.states().collect(), case.calls()))
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn redis_decides_and_keeps_what_the_library_does() {
    is_alike(Server::redis());
}

#[test]
fn valkey_decides_and_keeps_what_the_library_does() {
    is_alike(Server::valkey());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_oldest_redis_decides_and_keeps_what_the_library_does() {
    is_alike(Server::redis_6_2());
}
