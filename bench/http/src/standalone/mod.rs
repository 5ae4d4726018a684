//! How much does `spillgate serve` answer, beside Redis and throttlecrab-server?

mod contender;
mod lane;
mod probe;
mod program;
mod redis_benchmark;
mod tables;
mod verdict;

use self::lane::Lane;
pub use self::program::{Program, Running};
use crate::Result;
use crate::report::progress;
use crate::results::Findings;
use crate::settings::Settings;
use crate::wrk;

pub use self::probe::ask as probe;

/// Every contender in turn, in every round: whatever slows the machine down for a while
/// slows all of them, and one is compared with the others of the same round.
pub fn measure(settings: &Settings) -> Result<Findings> {
    let mut lanes = Lane::wanted(settings);
    for round in 0..settings.rounds {
        progress(format_args!("server: round {} of {}", round + 1, settings.rounds));
        // Another one begins each time, so that none always follows the same.
        for turn in 0..lanes.len() {
            let next = (round + turn) % lanes.len();
            lanes[next].take_turn(settings)?;
        }
    }
    let mut tables = tables::speeds(&lanes);
    tables.push(tables::losses(&lanes));
    Ok(Findings {
        tables,
        promises: verdict::promises(&lanes),
        series: lanes.into_iter().flat_map(Lane::into_series).collect(),
    })
}

/// Who is compared, and who asks, as lines of a Markdown list.
pub fn describe(settings: &Settings) -> String {
    let version = |program: Program| program.version(&settings.programs);
    let versions: Vec<_> = Program::ALL.into_iter().filter_map(version).collect();
    let wrk = wrk::command(&lane::HTTP, settings.seconds);
    let programs = versions.join(", ");
    format!("- servers: {programs}\n- clients: `{}`, `{wrk}`", redis_benchmark::COMMAND)
}
