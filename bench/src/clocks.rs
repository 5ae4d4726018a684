//! How long does it take to read the time?

use std::hint::black_box;
use std::time::{Instant, SystemTime};

use spillgate::{Clock as _, SystemClock};

use crate::report::progress;
use crate::results::{Case, Measurement};
use crate::settings::Settings;

const READINGS: u32 = 500_000;

pub fn measure(settings: &Settings) -> Vec<Measurement> {
    if !settings.wants(Case::ClockRead) {
        return Vec::new();
    }
    progress(Case::ClockRead);
    let ours = SystemClock;
    let quanta = quanta::Clock::new();
    let clocks: [(&'static str, &dyn Fn() -> f64); 5] = [
        ("spillgate SystemClock", &|| nanos_a_reading(|| ours.now())),
        ("quanta raw", &|| nanos_a_reading(|| quanta.raw())),
        ("quanta Instant", &|| nanos_a_reading(|| quanta.now())),
        ("std Instant", &|| nanos_a_reading(Instant::now)),
        ("std SystemTime", &|| nanos_a_reading(SystemTime::now)),
    ];
    let mut rounds = clocks.map(|_| Vec::new());
    for _ in 0..settings.schedule.rounds {
        for ((_, read), rounds) in clocks.iter().zip(&mut rounds) {
            rounds.push(read());
        }
    }
    let measurement =
        |((peer, _), rounds)| Measurement { case: Case::ClockRead, peer, rounds, flaw: None };
    clocks.into_iter().zip(rounds).map(measurement).collect()
}

fn nanos_a_reading<T>(read: impl Fn() -> T) -> f64 {
    let begin = Instant::now();
    for _ in 0..READINGS {
        black_box(read());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(READINGS)
}
