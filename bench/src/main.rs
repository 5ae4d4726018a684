//! Spillgate measured against other in-memory rate limiters: one file a question.

mod checks;
mod churn;
mod clocks;
mod inserts;
mod keys;
mod memory;
mod pause;
mod peer;
mod peers;
mod population;
mod probe;
mod random;
mod report;
mod results;
mod roster;
mod rounds;
mod settings;
mod terms;
mod timing;
mod verdict;
mod workload;

use std::error::Error;
use std::process::ExitCode;

use crate::report::{Report, progress};
use crate::settings::{Command, Settings, USAGE};
use crate::workload::Outcome;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<(), Box<dyn Error>> {
    match Command::parse(args)? {
        Command::Measure(settings) => measure(&settings)?,
        Command::Weigh { peer, callers } => println!("{}", memory::weigh(&peer, callers)?),
        Command::Help => println!("{USAGE}"),
    }
    Ok(())
}

/// Every question in turn; whether they limit at all comes first.
fn measure(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let mut report = Report::begin(&settings.out)?;
    if settings.wants(probe::NAME) {
        let (table, unsound) = probe::measure(settings);
        report.add_probes(&table, unsound)?;
    }
    report.add_measurements(clocks::measure(settings))?;
    report.add_measurements(memory::measure(settings)?)?;
    report.add_measurements(churn::measure(settings)?)?;
    report.add_measurements(pause::measure(settings))?;
    report.add_measurements(inserts::measure(settings))?;
    for &callers in &settings.sizes {
        for outcome in [Outcome::Allowed, Outcome::Denied] {
            report.add_measurements(checks::measure(settings, callers, outcome))?;
        }
    }
    let path = report.conclude()?;
    progress(format_args!("written to {}", path.display()));
    Ok(())
}
