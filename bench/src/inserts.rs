//! How long is the first check of a caller?

use crate::keys::KeySet;
use crate::peer::{Contender, Stretch};
use crate::population;
use crate::report::progress;
use crate::results::{Case, Measurement, Room};
use crate::settings::Settings;
use crate::terms::Terms;
use crate::timing::{Sample, time};

/// Every caller stays live, so that none can be forgotten for free.
const TERMS: Terms = Terms::STINGY;

pub fn measure(settings: &Settings) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for threads in [1, 2] {
        measurements.extend(measure_room(settings, Room::Empty, threads, into_empty));
    }
    measurements.extend(measure_room(settings, Room::Full, 1, into_full));
    measurements
}

type Rounds = fn(&Settings, usize) -> Vec<Vec<Sample>>;

fn measure_room(
    settings: &Settings,
    room: Room,
    threads: usize,
    rounds: Rounds,
) -> Vec<Measurement> {
    let callers = settings.population;
    let case = Case::Insert { callers, room, threads };
    if !settings.wants(case) {
        return Vec::new();
    }
    progress(case);
    let measurement = |(peer, samples): (&'static str, Vec<Sample>)| Measurement {
        case,
        peer,
        rounds: samples.iter().map(Sample::nanos).collect(),
        flaw: flaw(&samples),
    };
    let names = settings.limiters().into_iter().map(|candidate| candidate.name);
    names.zip(rounds(settings, threads)).map(measurement).collect()
}

/// As many callers as the capacity, none of them known.
fn into_empty(settings: &Settings, threads: usize) -> Vec<Vec<Sample>> {
    let limiters = settings.limiters();
    let keys = KeySet::new(0..settings.population);
    let mut samples = vec![Vec::new(); limiters.len()];
    for _ in 0..settings.schedule.rounds {
        for (candidate, samples) in limiters.iter().zip(&mut samples) {
            let limiter = candidate.build(TERMS, settings.population as usize);
            samples.push(time_each(limiter.as_ref(), &keys, threads));
        }
    }
    samples
}

/// More callers than the capacity: it has to evict, or to grow.
fn into_full(settings: &Settings, threads: usize) -> Vec<Vec<Sample>> {
    let full = settings.population;
    let field: Vec<Box<dyn Contender>> =
        settings.limiters().iter().map(|candidate| candidate.build(TERMS, full as usize)).collect();
    let field: Vec<&dyn Contender> = field.iter().map(AsRef::as_ref).collect();
    population::introduce(&field, 0..full);

    let mut samples = vec![Vec::new(); field.len()];
    let slice = full / 4;
    for round in 0..settings.schedule.rounds as u32 {
        let first = full + round * slice;
        let keys = KeySet::new(first..first + slice);
        for (limiter, samples) in field.iter().zip(&mut samples) {
            samples.push(time_each(*limiter, &keys, threads));
        }
    }
    samples
}

/// Each key once, shared out among the threads.
fn time_each(limiter: &dyn Contender, keys: &KeySet, threads: usize) -> Sample {
    let whole = Stretch::whole(keys);
    let checks = whole.checks / threads as u64;
    time(limiter, keys, Stretch { checks, ..whole }, threads)
}

fn flaw(samples: &[Sample]) -> Option<String> {
    let denied: u64 = samples.iter().map(|sample| sample.checks - sample.allowed).sum();
    (denied > 0).then(|| format!("denied {denied} callers it had not seen before"))
}
