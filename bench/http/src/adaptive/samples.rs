//! What a client has seen, and what is said of some time of it.

use std::ops::Range;

use crate::Result;
use crate::stats::percentile;

/// What happened, in seconds since the beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    Sent {
        at: f64,
    },
    /// A response of the handler. The latency is in milliseconds.
    Served {
        at: f64,
        latency: f64,
    },
    /// The limit has refused it.
    Refused {
        at: f64,
    },
    /// Anything else, such as a failed upstream.
    Failed {
        at: f64,
    },
}

/// Everything that clients have seen in a run.
#[derive(Debug, Default)]
pub struct Samples(pub Vec<Event>);

/// What was seen in some time of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Requests per second.
    pub offered: f64,
    pub served: f64,
    pub refused: f64,
    pub failed: f64,
    /// Served within the deadline, per second.
    pub useful: f64,
    /// Latencies of what was served: ms.
    pub p50: f64,
    pub p99: f64,
}

impl Samples {
    /// Adds what the script of wrk has written. `begin` is a time of the same clock: µs.
    pub fn read(&mut self, text: &str, begin: u64) -> Result<()> {
        let wrong = |line: &str| format!("the script of wrk has written {line:?}");
        // The end of a line may be missing if wrk was ended.
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        for line in lines {
            self.0.push(event(line, begin as f64).ok_or_else(|| wrong(line))?);
        }
        Ok(())
    }

    /// What was seen in a range of seconds, with a deadline in milliseconds.
    pub fn within(&self, range: Range<f64>, deadline: f64) -> Summary {
        let seconds = range.end - range.start;
        let events = self.0.iter().filter(|event| range.contains(&event.at()));
        let mut latencies: Vec<u32> = Vec::new();
        let mut counts = [0_u32; 4];
        for event in events {
            match event {
                Event::Sent { .. } => counts[0] += 1,
                Event::Refused { .. } => counts[1] += 1,
                Event::Failed { .. } => counts[2] += 1,
                Event::Served { latency, .. } => {
                    counts[3] += u32::from(*latency <= deadline);
                    latencies.push((latency * 1000.0) as u32);
                }
            }
        }
        latencies.sort_unstable();
        let [offered, refused, failed, useful] = counts.map(|count| f64::from(count) / seconds);
        Summary {
            offered,
            served: latencies.len() as f64 / seconds,
            refused,
            failed,
            useful,
            p50: percentile(&latencies, 0.5) / 1000.0,
            p99: percentile(&latencies, 0.99) / 1000.0,
        }
    }

    /// Seconds from the beginning of a range until nearly everything is served in time again, for
    /// some seconds; all of the range if it never is.
    pub fn recovery(&self, range: Range<f64>, deadline: f64) -> f64 {
        const NEARLY_ALL: f64 = 0.95;
        const WHILE: f64 = 3.0;
        let starts = (0..).map(|step| range.start + f64::from(step) * 0.5);
        let mut starts = starts.take_while(|start| start + WHILE <= range.end);
        let is_well = |start: &f64| {
            let seen = self.within(*start..*start + WHILE, deadline);
            seen.offered > 0.0 && seen.useful >= seen.offered * NEARLY_ALL
        };
        starts.find(is_well).unwrap_or(range.end) - range.start
    }
}

impl Event {
    fn at(&self) -> f64 {
        match self {
            Self::Sent { at }
            | Self::Served { at, .. }
            | Self::Refused { at }
            | Self::Failed { at } => *at,
        }
    }
}

fn event(line: &str, begin: f64) -> Option<Event> {
    let mut words = line.split(' ');
    let (kind, micros) = (words.next()?, words.next()?.parse::<f64>().ok()?);
    let at = (micros - begin) / 1e6;
    if kind == "s" {
        return Some(Event::Sent { at });
    }
    Some(match (words.next()?, words.next().and_then(|latency| latency.parse::<f64>().ok())) {
        ("200", Some(micros)) => Event::Served { at, latency: micros / 1e3 },
        ("503", _) => Event::Refused { at },
        _ => Event::Failed { at },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "s 1000000\ns 1500000\nr 1010000 200 10000\nr 1501000 503 \n\
                        s 2000000\nr 2900000 200 900000\nr 2900001 502 \nr 29";

    #[test]
    fn events_are_counted_in_their_time() {
        let mut samples = Samples::default();
        samples.read(TEXT, 1_000_000).unwrap();
        let first = samples.within(0.0..1.0, 50.0);
        assert_eq!((first.offered, first.served, first.refused), (2.0, 1.0, 1.0));
        assert_eq!((first.useful, first.failed, first.p50), (1.0, 0.0, 10.0));
        let second = samples.within(1.0..3.0, 50.0);
        assert_eq!((second.offered, second.served, second.useful), (0.5, 0.5, 0.0));
        assert_eq!((second.failed, second.p99), (0.5, 900.0));
        assert!(samples.read("x\n", 0).is_err());
    }

    #[test]
    fn a_service_has_recovered_once_nearly_everything_is_served_in_time() {
        let at = |second: u32| f64::from(second) / 10.0;
        let answer = |second: u32| match second {
            0..20 => Event::Refused { at: at(second) },
            20..30 => Event::Served { at: at(second), latency: 90.0 },
            _ => Event::Served { at: at(second), latency: 5.0 },
        };
        let events = (0..100).flat_map(|second| [Event::Sent { at: at(second) }, answer(second)]);
        let samples = Samples(events.collect());
        assert_eq!(samples.recovery(0.0..10.0, 50.0), 3.0);
        assert_eq!(samples.recovery(4.0..10.0, 50.0), 0.0);
        assert_eq!(samples.recovery(0.0..5.0, 50.0), 5.0, "never");
    }
}
