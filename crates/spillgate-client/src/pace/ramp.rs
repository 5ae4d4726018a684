use std::time::Duration;

use spillgate::Timestamp;
use spillgate::adaptive::{Aimd, Controller, Window};

/// How many requests may be in flight.
///
/// It starts with one, doubles with every round trip until the far side refuses, and begins again after
/// that: up to half of what it was at once, and from there on as [`Aimd`] has it. So nothing rushes at
/// a far side of which nothing is known, nor at one that has just said no.
#[derive(Debug)]
pub(super) struct Ramp {
    limit: f64,
    /// From here on it grows slowly.
    threshold: f64,
    window: Window,
    began: Timestamp,
    /// The cap that the far side announced, and until when it is believed.
    announced: Option<(u64, Timestamp)>,
}

const MOST: f64 = 10_000.0;
const STEP: Duration = Duration::from_secs(1);

impl Ramp {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { limit: 1.0, threshold: MOST, window: Window::default(), began: now, announced: None }
    }

    pub(super) fn limit(&self, now: Timestamp) -> u64 {
        let announced = self.announced.filter(|(_, until)| now < *until);
        (self.limit as u64).min(announced.map_or(u64::MAX, |(limit, _)| limit)).max(1)
    }

    /// A request was answered, and not refused, while so many were in flight with it.
    pub(super) fn answered(&mut self, in_flight: u64, now: Timestamp) {
        self.complete(in_flight);
        if self.limit < self.threshold && self.window.failed == 0 {
            let is_used = f64::from(self.window.most_in_flight) * 2.0 >= self.limit;
            self.limit = (self.limit + f64::from(u8::from(is_used))).min(MOST);
        } else {
            self.step(now);
        }
    }

    /// The far side failed, or could not be reached: that is no reason to send more.
    pub(super) fn failed(&mut self, in_flight: u64, now: Timestamp) {
        self.complete(in_flight);
        self.window.failed += 1;
        self.step(now);
    }

    fn complete(&mut self, in_flight: u64) {
        let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
        self.window.most_in_flight = self.window.most_in_flight.max(in_flight);
        self.window.completed += 1;
    }

    /// Once per second, a little more, or less if requests fail.
    fn step(&mut self, now: Timestamp) {
        if now.since(self.began) >= STEP {
            self.limit = Aimd::default().step(self.limit, &self.window).limit.clamp(1.0, MOST);
            self.begin(now);
        }
    }

    /// The far side has refused, while so many were in flight.
    pub(super) fn refused(&mut self, in_flight: u64, now: Timestamp) {
        self.threshold = (in_flight as f64).min(self.limit).max(2.0) / 2.0;
        self.restart(now);
    }

    /// Begins with one again.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.limit = 1.0;
        self.begin(now);
    }

    /// Takes over a cap that the far side announced.
    pub(super) fn cap(&mut self, limit: u64, until: Timestamp) {
        self.announced = Some((limit, until));
    }

    fn begin(&mut self, now: Timestamp) {
        self.window = Window::default();
        self.began = now;
    }
}
