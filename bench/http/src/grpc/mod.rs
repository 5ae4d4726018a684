//! How much does Spillgate answer over gRPC, beside throttlecrab-server?

mod connection;
mod contender;
mod lane;
mod messages;
mod probe;
mod tables;
mod verdict;
mod worker;

pub use self::probe::ask as probe;

use self::lane::Lane;
use crate::Result;
use crate::report::progress;
use crate::results::Findings;
use crate::settings::Settings;
use crate::standalone::Program;

/// Every contender in turn, in every round, with each number of streams.
pub fn measure(settings: &Settings) -> Result<Findings> {
    let mut lanes = Lane::wanted(settings);
    for round in 0..settings.rounds {
        progress(format_args!("grpc: round {} of {}", round + 1, settings.rounds));
        // Another one begins each time, so that none always follows the same.
        for turn in 0..lanes.len() {
            let next = (round + turn) % lanes.len();
            lanes[next].take_turn(settings)?;
        }
    }
    Ok(Findings {
        tables: tables::speeds(&lanes),
        promises: verdict::promises(&lanes),
        series: lanes.into_iter().flat_map(Lane::into_series).collect(),
    })
}

/// Who is compared, and who asks, as lines of a Markdown list.
pub fn describe(settings: &Settings) -> String {
    let version = |program: Program| program.version(&settings.programs);
    let programs = [Program::Spillgate, Program::Throttlecrab].map(version);
    let programs: Vec<_> = programs.into_iter().flatten().collect();
    let streams = lane::STREAMS.map(|(streams, connections)| format!("{streams} on {connections}"));
    format!(
        "- servers: {}\n- client: tonic over connections of hyper, a thread for each; streams on \
         connections: {}\n",
        programs.join(", "),
        streams.join(", ")
    )
}
