//! What becomes of a service that is asked for five times as much as it can do, with and without an
//! adaptive limit?

mod chart;
mod lane;
mod load;
mod plan;
mod samples;
pub mod service;
mod subject;
mod tables;
mod verdict;

use std::fs;
use std::process::Command;

use self::lane::{Baseline, Lane};
use self::subject::Place;
use crate::Result;
use crate::cpus::Cpus;
use crate::report::{facts, progress};
use crate::results::Findings;
use crate::settings::Settings;
use crate::standalone::Program;
use crate::wrk;

/// Every service in turn, in every round. What it can do is measured first, in each round anew.
pub fn measure(settings: &Settings) -> Result<Findings> {
    let cpus = Cpus::available()?;
    let mut lanes = Lane::wanted(settings);
    for round in 0..settings.rounds {
        progress(format_args!("overload: round {} of {}", round + 1, settings.rounds));
        for place in [Place::Axum, Place::Python] {
            let mut here = lanes.iter_mut().filter(|lane| lane.subject.place == place).peekable();
            if here.peek().is_none() {
                continue;
            }
            let baseline = Baseline::measure(place, cpus, settings)?;
            for lane in here {
                progress(format_args!("{} for {} s", lane.subject, lane.plan.seconds()));
                lane.take_turn(&baseline, cpus, settings)?;
            }
        }
    }
    draw(&lanes, settings)?;
    Ok(Findings {
        tables: tables::overloads(&lanes),
        promises: verdict::promises(&lanes),
        series: lanes.into_iter().flat_map(Lane::into_series).collect(),
    })
}

/// The picture of the documentation, if both of its services were measured.
fn draw(lanes: &[Lane], settings: &Settings) -> Result<()> {
    let Some(path) = &settings.picture else { return Ok(()) };
    if let Some(picture) = chart::picture(lanes) {
        fs::write(path, picture)?;
        progress(format_args!("drawn in {}", path.display()));
    }
    Ok(())
}

/// What is overloaded, and who asks, as lines of a Markdown list.
pub fn describe(settings: &Settings) -> String {
    let spillgate = Program::Spillgate.version(&settings.programs).unwrap_or_else(facts::unknown);
    let python = Command::new("python3").arg("--version").output().ok();
    let python = python.and_then(|output| String::from_utf8(output.stdout).ok());
    let python = python.map_or_else(facts::unknown, |text| text.trim().to_owned());
    let version = wrk::version().unwrap_or_else(facts::unknown);
    format!("- services: axum, {python} behind {spillgate}\n- client: {version}\n")
}
