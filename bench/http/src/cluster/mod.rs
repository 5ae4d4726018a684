//! What does it cost to share limits through Redis: beside the bare script, and with leases?

mod asker;
mod bed;
mod blocked;
mod contender;
mod lane;
mod redis_cost;
mod served;
mod tables;
mod verdict;

use std::sync::Arc;

use self::bed::Bed;
use self::lane::Lane;
use crate::Result;
use crate::report::{facts, progress};
use crate::results::Findings;
use crate::settings::Settings;
use crate::standalone::Program;

/// Every contender in turn, in every round, at each concurrency.
pub fn measure(settings: &Settings) -> Result<Findings> {
    let bed = Arc::new(Bed::new(settings)?);
    let mut lanes = Lane::wanted(settings);
    for round in 0..settings.rounds {
        progress(format_args!("cluster: round {} of {}", round + 1, settings.rounds));
        // Another one begins each time, so that none always follows the same.
        for turn in 0..lanes.len() {
            let next = (round + turn) % lanes.len();
            lanes[next].take_turn(&bed, settings)?;
        }
    }
    let blocked = blocked::measure(&bed, settings)?;
    let served = served::measure(&bed, settings)?;
    let mut tables = tables::speeds(&lanes);
    tables.extend([tables::leases(&lanes), served::table(&served)]);
    tables.extend([blocked::table(&blocked), redis_cost::costs(&bed)?]);
    let mut promises = verdict::promises(&lanes);
    promises.extend(blocked.iter().map(blocked::Blocked::promise));
    let series = lanes.into_iter().flat_map(Lane::into_series);
    let series = series.chain(served.into_iter().flat_map(served::Served::into_series)).collect();
    Ok(Findings { tables, promises, series })
}

/// Who is asked, as a line of a Markdown list.
pub fn describe(settings: &Settings) -> String {
    let version = Program::Redis.version(&settings.programs);
    format!("- Redis: {}\n", version.unwrap_or_else(facts::unknown))
}
