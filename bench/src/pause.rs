//! How long can a check be held up while another thread removes stale callers?

use std::time::{Duration, Instant};

use crate::keys::{KeyBuffer, KeySet};
use crate::peer::{Contender, Peer, Sweep};
use crate::peers::{DashMapBucket, Governor, Spillgate, Throttlecrab};
use crate::population;
use crate::report::progress;
use crate::results::{Case, Measurement};
use crate::settings::Settings;
use crate::terms::Terms;
use crate::workload::Access;

/// Turns are longer than elsewhere, so that each meets several sweeps.
const TURNS: u32 = 4;

/// Between one sweep and the next.
const REST: Duration = Duration::from_millis(1);

/// Everything passes, because one limiter sweeps only when it admits; and nobody
/// goes stale, so a sweep looks at every caller and keeps it.
const TERMS: Terms = Terms { burst: 1_000_000, ..Terms::STINGY };

/// A limiter left alone, and one that is swept.
struct Subject {
    quiet: Box<dyn Swept>,
    sweeping: Box<dyn Swept>,
    worst: [Vec<f64>; 2],
}

trait Swept: Contender {
    fn worst_check(&self, keys: &KeySet, time: Duration) -> Duration;
    fn sweep(&self);
}

impl<P: Sweep> Swept for P {
    fn worst_check(&self, keys: &KeySet, time: Duration) -> Duration {
        worst_check(self, keys, time)
    }

    fn sweep(&self) {
        Sweep::sweep(self);
    }
}

pub fn measure(settings: &Settings) -> Vec<Measurement> {
    let callers = settings.population;
    let case = |sweeping| Case::WorstCheck { callers, sweeping };
    if !settings.wants(case(false)) && !settings.wants(case(true)) {
        return Vec::new();
    }
    progress(case(true));
    let keys = Access::Uniform.keys(callers);
    let mut subjects = subjects(settings);
    let time = settings.schedule.turn * TURNS;
    for _ in 0..settings.schedule.rounds {
        for subject in &mut subjects {
            let quiet = subject.quiet.worst_check(&keys, time);
            let sweeping = worst_check_while_sweeping(subject.sweeping.as_ref(), &keys, time);
            subject.worst[0].push(micros(quiet));
            subject.worst[1].push(micros(sweeping));
        }
    }
    let measurements = subjects.into_iter().flat_map(|subject| {
        let peer = subject.quiet.name();
        let cases = [case(false), case(true)].into_iter();
        cases.zip(subject.worst).map(move |(case, rounds)| Measurement {
            case,
            peer,
            rounds,
            flaw: None,
        })
    });
    measurements.collect()
}

fn subjects(settings: &Settings) -> Vec<Subject> {
    let subjects = [
        subject::<Spillgate>(settings),
        subject::<Governor<String>>(settings),
        subject::<DashMapBucket>(settings),
        subject::<Throttlecrab>(settings),
    ];
    subjects.into_iter().flatten().collect()
}

fn subject<P: Sweep>(settings: &Settings) -> Option<Subject> {
    if !settings.has_peer(P::NAME) {
        return None;
    }
    let quiet = P::build(TERMS, settings.population as usize);
    let sweeping = P::build_sweeping(TERMS, settings.population as usize);
    population::introduce(&[&quiet, &sweeping], 0..settings.population);
    Some(Subject {
        quiet: Box::new(quiet),
        sweeping: Box::new(sweeping),
        worst: Default::default(),
    })
}

fn worst_check_while_sweeping(peer: &dyn Swept, keys: &KeySet, time: Duration) -> Duration {
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| peer.worst_check(keys, time));
        while !checks.is_finished() {
            peer.sweep();
            std::thread::sleep(REST);
        }
        checks.join().expect("checks that end")
    })
}

fn worst_check<P: Peer>(peer: &P, keys: &KeySet, time: Duration) -> Duration {
    let buffer = P::Keys::of(keys);
    let clock = quanta::Clock::new();
    let begin = Instant::now();
    let mut worst = 0;
    while begin.elapsed() < time {
        let mut before = clock.raw();
        for index in 0..keys.len().min(1024) {
            peer.check(buffer.get(index));
            let after = clock.raw();
            worst = worst.max(clock.delta_as_nanos(before, after));
            before = after;
        }
    }
    Duration::from_nanos(worst)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
