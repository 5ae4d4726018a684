//! How much does `spillgate proxy` pass on, beside nginx with `limit_req`?

mod contender;
mod lane;
mod nginx;
mod tables;
mod verdict;

use std::process::Command;

use self::lane::Lane;
use self::nginx::Upstream;
use crate::Result;
use crate::report::{facts, progress};
use crate::results::Findings;
use crate::settings::Settings;
use crate::standalone::Program;
use crate::wrk;

/// Every contender in turn, in every round, in front of one upstream.
pub fn measure(settings: &Settings) -> Result<Findings> {
    let upstream = Upstream::start()?;
    let mut lanes = Lane::wanted(settings);
    for round in 0..settings.rounds {
        progress(format_args!("proxy: round {} of {}", round + 1, settings.rounds));
        // Another one begins each time, so that none always follows the same.
        for turn in 0..lanes.len() {
            let next = (round + turn) % lanes.len();
            lanes[next].take_turn(&upstream, settings)?;
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
    let spillgate = Program::Spillgate.version(&settings.programs).unwrap_or_else(facts::unknown);
    // nginx tells this where others tell errors.
    let nginx = Command::new("nginx").arg("-v").output().ok();
    let nginx = nginx.and_then(|output| String::from_utf8(output.stderr).ok());
    let nginx =
        nginx.map_or_else(facts::unknown, |text| text.trim().replace("nginx version: ", ""));
    let (version, wrk) = (wrk::version().unwrap_or_else(facts::unknown), &lane::LOAD);
    let client = wrk::command(wrk, settings.seconds);
    format!("- proxies: {spillgate}, {nginx}\n- client: `{client}`, {version}\n")
}
