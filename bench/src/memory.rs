//! How many bytes does a caller take?
//!
//! Each limiter is weighed in a process of its own, so that none can use what
//! another one's allocations left behind.

use std::error::Error;
use std::process::Command;

use crate::population;
use crate::report::progress;
use crate::results::{Case, Measurement};
use crate::roster::Candidate;
use crate::settings::{Settings, candidate};
use crate::terms::Terms;

pub fn measure(settings: &Settings) -> Result<Vec<Measurement>, Box<dyn Error>> {
    let mut measurements = Vec::new();
    for &callers in &settings.weights {
        let case = Case::BytesPerCaller { callers };
        if !settings.wants(case) {
            continue;
        }
        progress(case);
        for candidate in settings.limiters() {
            measurements.push(Measurement {
                case,
                peer: candidate.name,
                rounds: vec![weigh_apart(&candidate, callers)? / f64::from(callers)],
                flaw: None,
            });
        }
    }
    Ok(measurements)
}

fn weigh_apart(candidate: &Candidate, callers: u32) -> Result<f64, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--weigh", candidate.name, &callers.to_string()])
        .output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("weighing {} failed: {errors}", candidate.name).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// The resident bytes of a limiter with capacity for `callers` that has seen each
/// of them once.
pub fn weigh(peer: &str, callers: u32) -> Result<u64, Box<dyn Error>> {
    let candidate = candidate(peer)?;
    // Whatever the harness itself needs is in memory before the first reading.
    population::introduce(&[candidate.build(Terms::STINGY, 1).as_ref()], 0..1);
    let before = resident_bytes()?;
    let limiter = candidate.build(Terms::STINGY, callers as usize);
    let allowed = population::introduce(&[limiter.as_ref()], 0..callers)[0];
    let after = resident_bytes()?;
    if allowed < u64::from(callers) {
        return Err(format!("only {allowed} of {callers} first checks were admitted").into());
    }
    Ok(after.saturating_sub(before))
}

fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("no VmRSS in /proc/self/status")?.trim().parse::<u64>()? * 1024)
}
