use super::contender::Contender;
use super::lane::{Lane, TASKS};
use super::tables::find;
use crate::results::{Bound, Promise};
use crate::stats::{median, ratios};

/// Strict limits cost little beside the script itself, and leased ones next to nothing.
pub fn promises(lanes: &[Lane]) -> Vec<Promise> {
    TASKS.into_iter().flat_map(|tasks| of_tasks(lanes, tasks).unwrap_or_default()).collect()
}

fn of_tasks(lanes: &[Lane], tasks: usize) -> Option<Vec<Promise>> {
    let of = |contender| find(lanes, contender, tasks);
    let (strict, script) = (of(Contender::Strict)?, of(Contender::Script)?);
    let leased = of(Contender::Leased)?;
    let (cold_strict, cold) = (of(Contender::ColdStrict)?, of(Contender::ColdLeased)?);
    let promise = |what: &str, ratios: Vec<f64>, least| Promise {
        text: format!("{tasks} at a time: {what}"),
        value: median(&ratios),
        bound: Bound::AtLeast(least),
        unit: "times",
    };
    Some(vec![
        promise("strict to the bare script", ratios(&strict.per_second, &script.per_second), 0.9),
        promise("leased to strict", ratios(&leased.per_second, &strict.per_second), 20.0),
        promise("cold, leased to strict", ratios(&cold.per_second, &cold_strict.per_second), 0.9),
        promise("fewer scripts, leased", ratios(&strict.commands, &leased.commands), 50.0),
    ])
}
