//! How long is a check of a caller that the limiter knows?

use crate::keys::KeySet;
use crate::peer::Contender;
use crate::population;
use crate::report::progress;
use crate::results::{Case, Measurement};
use crate::rounds::{self, Job};
use crate::settings::Settings;
use crate::timing::Sample;
use crate::workload::{Access, Outcome, Pacing, Workload};

/// All workloads over one population that are asked for.
pub fn measure(settings: &Settings, callers: u32, outcome: Outcome) -> Vec<Measurement> {
    let mut workloads = Workload::family(callers, outcome);
    workloads.retain(|workload| settings.wants(workload));
    if workloads.is_empty() {
        return Vec::new();
    }
    let field: Vec<Box<dyn Contender>> = settings
        .candidates
        .iter()
        .map(|candidate| candidate.build(outcome.terms(), callers as usize))
        .collect();
    let field: Vec<&dyn Contender> = field.iter().map(AsRef::as_ref).collect();
    settle(&field, callers, outcome);

    let mut measurements = Vec::new();
    let mut order: Option<(Access, KeySet)> = None;
    for workload in workloads {
        let (_, keys) = match order.take() {
            Some(order) if order.0 == workload.access => order,
            _ => (workload.access, workload.access.keys(callers)),
        };
        progress(workload);
        measurements.extend(compare(&field, workload, &keys, settings));
        order = Some((workload.access, keys));
    }
    measurements
}

/// Makes every caller known and, if it is to be denied, penniless.
fn settle(field: &[&dyn Contender], callers: u32, outcome: Outcome) {
    progress(format_args!("{callers} callers, {outcome}: introducing them"));
    let checks_each = match outcome {
        Outcome::Allowed => 1,
        Outcome::Denied => outcome.terms().burst,
    };
    for _ in 0..checks_each {
        population::introduce(field, 0..callers);
    }
}

fn compare(
    field: &[&dyn Contender],
    workload: Workload,
    keys: &KeySet,
    settings: &Settings,
) -> Vec<Measurement> {
    let mut field = field.to_vec();
    field.retain(|contender| workload.pacing == Pacing::Pipelined || !contender.is_batched());
    let job = Job {
        keys,
        pacing: workload.pacing,
        expected: workload.outcome,
        threads: workload.threads,
    };
    let samples = rounds::run(&field, &job, &settings.schedule);
    let measurement = |(contender, samples): (&&dyn Contender, Vec<Sample>)| Measurement {
        case: Case::Check(workload),
        peer: contender.name(),
        rounds: samples.iter().map(Sample::nanos).collect(),
        flaw: flaw(workload.outcome, &samples),
    };
    field.iter().zip(samples).map(measurement).collect()
}

/// What the answers were, if not those that the workload is about.
fn flaw(outcome: Outcome, samples: &[Sample]) -> Option<String> {
    let checks: u64 = samples.iter().map(|sample| sample.checks).sum();
    let allowed: u64 = samples.iter().map(|sample| sample.allowed).sum();
    let share = 100.0 * allowed as f64 / checks as f64;
    (!outcome.is_met(allowed, checks))
        .then(|| format!("admitted {share:.1} % of checks that should all be {outcome}"))
}
