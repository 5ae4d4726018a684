use spillgate::adaptive::{Ending, Priority, PriorityClass};

use super::{Guard, Random, Report, Service, Work};

/// A number that depends on the time, in seconds.
pub(crate) type ByTime = fn(f64) -> f64;

/// Load on a service.
pub(crate) struct Scenario {
    pub(crate) service: Service,
    pub(crate) work: Work,
    pub(crate) seconds: u32,
    pub(crate) seed: u64,
    /// Calls per second, at random times.
    pub(crate) rate: ByTime,
    /// By how much the service is slower than it should be.
    pub(crate) slowdown: ByTime,
    /// The share of calls that fail.
    pub(crate) failing: ByTime,
    /// The share of calls whose client goes away before the end.
    pub(crate) cancelled: f64,
    /// The share of calls that are of a high class; the others are of the normal one.
    pub(crate) high: ByTime,
}

/// A call that went ahead.
#[derive(Clone, Copy)]
struct Call {
    since: f64,
    is_cancelled: bool,
}

struct Run<'a, G> {
    scenario: Scenario,
    guard: &'a mut G,
    random: Random,
    report: Report,
    calls: Vec<Call>,
    /// Places in `calls` that can be used again.
    free: Vec<usize>,
}

impl Scenario {
    pub(crate) fn new(service: Service, work: Work, rate: ByTime) -> Self {
        Self {
            service,
            work,
            seconds: 60,
            seed: 1,
            rate,
            slowdown: |_| 1.0,
            failing: |_| 0.0,
            cancelled: 0.0,
            high: |_| 0.0,
        }
    }

    pub(crate) fn run(self, guard: &mut impl Guard) -> Report {
        let random = Random::new(self.seed);
        let (calls, free) = (Vec::new(), Vec::new());
        Run { scenario: self, guard, random, report: Report::default(), calls, free }.run()
    }
}

impl<G: Guard> Run<'_, G> {
    fn run(mut self) -> Report {
        let end = f64::from(self.scenario.seconds);
        let mut arrival = self.next_arrival(0.0);
        loop {
            let over = self.scenario.service.next().filter(|due| due.at <= arrival);
            let now = over.map_or(arrival, |due| due.at);
            while self.report.limits.len() < now.min(end) as usize {
                self.report.limits.push(self.guard.limit());
            }
            match over {
                _ if now >= end => return self.report,
                Some(due) => self.end(due.call, now),
                None => {
                    self.arrive(now);
                    arrival = self.next_arrival(now);
                }
            }
        }
    }

    fn next_arrival(&mut self, now: f64) -> f64 {
        now + self.random.exponential() / (self.scenario.rate)(now)
    }

    fn arrive(&mut self, now: f64) {
        let scenario = &mut self.scenario;
        let is_high = self.random.chance((scenario.high)(now));
        let class = if is_high { PriorityClass::High } else { PriorityClass::Normal };
        let priority = Priority::new(class, (self.random.word() % 100) as u8);
        let is_cancelled = self.random.chance(scenario.cancelled);
        let mut work = scenario.work.draw(&mut self.random) * (scenario.slowdown)(now);
        if is_cancelled {
            work *= self.random.unit();
        }
        self.report.arrived(class, now);
        let call = self.free.pop().unwrap_or_else(|| {
            self.calls.push(Call { since: now, is_cancelled });
            self.calls.len() - 1
        });
        if self.guard.admit(call, priority, now) {
            self.calls[call] = Call { since: now, is_cancelled };
            scenario.service.start(call, work, now);
        } else {
            self.free.push(call);
            self.report.refused(class, now);
        }
    }

    fn end(&mut self, call: usize, now: f64) {
        self.scenario.service.finish(now);
        self.free.push(call);
        let Call { since, is_cancelled } = self.calls[call];
        let failed = self.random.chance((self.scenario.failing)(now));
        let ending = if failed { Ending::Failed } else { Ending::Ok };
        self.guard.end(call, (!is_cancelled).then_some(ending), now);
        if !is_cancelled && !failed {
            self.report.completed(now - since, now);
        }
    }
}
