use std::fmt;
use std::ops::Range;

use spillgate::adaptive::PriorityClass;

/// What happened in a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    seconds: Vec<Second>,
    /// When calls were over, and how long they took.
    latencies: Vec<(f32, f32)>,
    /// The limit at the end of every second.
    pub(crate) limits: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    arrived: [u32; 5],
    refused: [u32; 5],
    completed: u32,
}

/// The same in numbers, for some of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) arrived: u64,
    pub(crate) refused: u64,
    /// Calls per second that ended well.
    pub(crate) goodput: f64,
    /// Latencies, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// The limit.
    pub(crate) lowest: f64,
    pub(crate) median: f64,
    pub(crate) highest: f64,
}

impl Report {
    pub(crate) fn arrived(&mut self, class: PriorityClass, at: f64) {
        self.second(at).arrived[class as usize] += 1;
    }

    pub(crate) fn refused(&mut self, class: PriorityClass, at: f64) {
        self.second(at).refused[class as usize] += 1;
    }

    pub(crate) fn completed(&mut self, latency: f64, at: f64) {
        self.second(at).completed += 1;
        self.latencies.push((at as f32, latency as f32));
    }

    fn second(&mut self, at: f64) -> &mut Second {
        let index = at as usize;
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, Second::default());
        }
        &mut self.seconds[index]
    }

    /// The share of calls of a class that went ahead.
    pub(crate) fn admitted(&self, class: PriorityClass, seconds: Range<usize>) -> f64 {
        let class = class as usize;
        let seconds = &self.seconds[seconds];
        let arrived: u32 = seconds.iter().map(|second| second.arrived[class]).sum();
        let refused: u32 = seconds.iter().map(|second| second.refused[class]).sum();
        1.0 - f64::from(refused) / f64::from(arrived)
    }

    /// Calls per second that were over within a time.
    pub(crate) fn goodput_within(&self, deadline: f64, seconds: Range<usize>) -> f64 {
        let (from, to) = (seconds.start as f32, seconds.end as f32);
        let in_time = |&&(at, latency): &&(f32, f32)| {
            (from..to).contains(&at) && f64::from(latency) <= deadline
        };
        self.latencies.iter().filter(in_time).count() as f64 / f64::from(to - from)
    }

    pub(crate) fn figures(&self, seconds: Range<usize>) -> Figures {
        let (from, to) = (seconds.start as f32, seconds.end as f32);
        let latencies = self.latencies.iter().filter(|(at, _)| (from..to).contains(at));
        let mut latencies: Vec<f64> = latencies.map(|&(_, latency)| latency.into()).collect();
        let mut limits = self.limits[seconds.clone()].to_vec();
        let counts = &self.seconds[seconds];
        let completed: u32 = counts.iter().map(|second| second.completed).sum();
        Figures {
            arrived: counts.iter().flat_map(|second| second.arrived).map(u64::from).sum(),
            refused: counts.iter().flat_map(|second| second.refused).map(u64::from).sum(),
            goodput: f64::from(completed) / f64::from(to - from),
            p50: quantile(&mut latencies, 0.5) * 1e3,
            p99: quantile(&mut latencies, 0.99) * 1e3,
            lowest: quantile(&mut limits, 0.0),
            median: quantile(&mut limits, 0.5),
            highest: quantile(&mut limits, 1.0),
        }
    }
}

fn quantile(numbers: &mut [f64], share: f64) -> f64 {
    let index = ((numbers.len() - 1) as f64 * share) as usize;
    *numbers.select_nth_unstable_by(index, f64::total_cmp).1
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { goodput, p50, p99, lowest, median, highest, .. } = self;
        let refused = self.refused as f64 / self.arrived as f64 * 100.0;
        write!(f, "goodput {goodput:.0}/s, refused {refused:.1} %, p50 {p50:.0} ms, ")?;
        write!(f, "p99 {p99:.0} ms, limit {median:.1} ({lowest:.1} to {highest:.1})")
    }
}
