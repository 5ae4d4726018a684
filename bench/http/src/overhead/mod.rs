//! How much CPU time does a layer cost a request?

mod lane;
mod tables;
mod verdict;

pub use self::lane::LOAD;
use self::lane::Lane;
use crate::Result;
use crate::cpus::Cpus;
use crate::kind::Kind;
use crate::report::progress;
use crate::results::Findings;
use crate::settings::Settings;

/// Every server in turn, in every round: whatever slows the machine down for a while
/// slows all of them, and a server is compared with the others of the same round.
pub fn measure(settings: &Settings) -> Result<Findings> {
    let mut lanes: Vec<_> = Kind::wanted(settings, "http").into_iter().map(Lane::new).collect();
    if lanes.is_empty() {
        return Ok(Findings::default());
    }
    let cpus = Cpus::available()?;
    for round in 0..settings.rounds {
        progress(format_args!("http: round {} of {}", round + 1, settings.rounds));
        // Another one begins each time, so that none always follows the same.
        for turn in 0..lanes.len() {
            let next = (round + turn) % lanes.len();
            lanes[next].take_turn(cpus, settings.seconds)?;
        }
    }
    Ok(Findings {
        tables: vec![tables::costs(&lanes), tables::losses(&lanes)],
        promises: verdict::promises(&lanes),
        series: lanes.into_iter().flat_map(Lane::into_series).collect(),
    })
}
