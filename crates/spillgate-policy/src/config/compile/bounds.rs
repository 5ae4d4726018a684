//! Between what an adaptive limit moves.

use std::ops::RangeInclusive;

use spillgate::adaptive::{AdaptiveRate, Aimd};
use spillgate::{AlgorithmKind, Quota, Start};

use super::{Compiler, MOST_PERMITS};
use crate::Key;
use crate::config::spec::{Adaptive, At, Level};
use crate::policy::adaptive::{Bounds, per_second};

/// The least share of requests that is let through, if the policy does not say.
const MIN_SHARE: f64 = 0.2;

impl Compiler<'_> {
    /// The bounds of an adaptive limit, and where it begins.
    pub(super) fn bounds(
        &mut self,
        place: &str,
        written: &Adaptive,
        controller: &str,
    ) -> Option<Bounds> {
        match (controller, written.has_quotas()) {
            ("errors", _) => self.share_bounds(place, written),
            ("auto", true) => {
                let why = "\"auto\" finds how many requests are in flight, and these are quotas";
                let right = "write numbers, or signal = \"cpu\" and a target";
                self.report(&written.at, format!("{place}: {why}; {right}"));
                None
            }
            (_, true) => self.rate_bounds(place, written),
            (_, false) => self.permit_bounds(place, written),
        }
    }

    fn permit_bounds(&mut self, place: &str, written: &Adaptive) -> Option<Bounds> {
        let bound = |it: &mut Self, key, example, at| {
            let at = it.required_level(place, key, example, at, written)?;
            it.permits_level(place, key, at)
        };
        let min = bound(self, "min", "10", &written.min);
        let max = bound(self, "max", "500", &written.max);
        let start = written.start.as_ref().map(|at| self.permits_level(place, "start", at));
        let (min, max) = (min?, max?);
        self.expect_ordered(place, written, min <= max)?;
        let start = match start {
            Some(start) => Some(f64::from(start?)),
            None => None,
        };
        self.expect_start(place, written, &(f64::from(min)..=f64::from(max)), start);
        Some(Bounds::Concurrency(min..=max, start))
    }

    fn permits_level(&mut self, place: &str, key: &str, at: &At<Level>) -> Option<u32> {
        let permits = match at.value {
            Level::Number(number) if number.fract() == 0.0 => number,
            _ => {
                let message = format!("{place}, {key}: {} is not a number of requests", at.value);
                self.report(at, format!("{message} in flight; write one such as 10"));
                return None;
            }
        };
        if !(1.0..=MOST_PERMITS as f64).contains(&permits) {
            let message = format!("{place}, {key}: {permits} is out of range");
            self.report(at, format!("{message}; use 1 to {MOST_PERMITS}"));
            return None;
        }
        Some(permits as u32)
    }

    fn rate_bounds(&mut self, place: &str, written: &Adaptive) -> Option<Bounds> {
        let bound = |it: &mut Self, key, example, at| {
            let at = it.required_level(place, key, example, at, written)?;
            it.quota_level(place, key, at)
        };
        let min = bound(self, "min", "\"10/s\"", &written.min);
        let max = bound(self, "max", "\"200/s\"", &written.max);
        let start = written.start.as_ref().map(|at| self.quota_level(place, "start", at));
        let (min, max) = (min?, max?);
        let rates = per_second(&min)..=per_second(&max);
        self.expect_ordered(place, written, rates.start() <= rates.end())?;
        self.expect_countable(place, written, &(min..=max));
        let start = match start {
            Some(start) => Some(start?),
            None => None,
        };
        self.expect_start(place, written, &rates, start.as_ref().map(per_second));
        Some(Bounds::Rate(min..=max, start))
    }

    /// A bucket whose quota moves counts less than one whose quota stays.
    fn expect_countable(&mut self, place: &str, written: &Adaptive, range: &RangeInclusive<Quota>) {
        let built =
            AdaptiveRate::<Key>::builder(Aimd::default(), range.clone()).capacity(1).build();
        if let (Err(why), Some(max)) = (built, &written.max) {
            self.report(max, format!("{place}: {why}"));
        }
    }

    fn quota_level(&mut self, place: &str, key: &str, at: &At<Level>) -> Option<Quota> {
        let Level::Text(text) = &at.value else {
            let message = format!("{place}, {key}: {} is a number", at.value);
            let right = "write quotas for a rate, or numbers for requests in flight, in all keys";
            self.report(at, format!("{message}, and another key has a quota; {right}"));
            return None;
        };
        let text = At { value: text.clone(), span: at.span.clone() };
        let place = format!("{place}, {key}");
        let quota = self.quota(&place, &text, AlgorithmKind::TokenBucket, Start::Full)?;
        if quota.period().is_none() {
            let message = format!("{place}: {:?} never refills", text.value);
            self.report(at, format!("{message}; write a rate such as \"10/s\""));
            return None;
        }
        Some(quota)
    }

    fn share_bounds(&mut self, place: &str, written: &Adaptive) -> Option<Bounds> {
        if let Some(at) = &written.max {
            let why = "\"errors\" has no `max`: it lets every request through at best";
            self.report(at, format!("{place}: {why}; remove it, or write controller = \"aimd\""));
        }
        let mut share = |key, at: &Option<At<Level>>| match at {
            None => Some(None),
            Some(at) => match at.value {
                Level::Number(share) if share > 0.0 && share <= 1.0 => Some(Some(share)),
                _ => {
                    let message = format!("{place}, {key}: {} is not a share", at.value);
                    self.report(at, format!("{message}; write one above 0 and up to 1"));
                    None
                }
            },
        };
        let min = share("min", &written.min)?.unwrap_or(MIN_SHARE);
        let start = share("start", &written.start)?;
        self.expect_start(place, written, &(min..=1.0), start);
        Some(Bounds::Share(min, start))
    }

    /// A bound that must be there.
    fn required_level<'w>(
        &mut self,
        place: &str,
        key: &str,
        example: &str,
        level: &'w Option<At<Level>>,
        written: &Adaptive,
    ) -> Option<&'w At<Level>> {
        // A value that could not be read was reported.
        if level.is_none() && !self.is_partial {
            self.report(&written.at, format!("{place}: there is no {key}; add {key} = {example}"));
        }
        level.as_ref()
    }

    fn expect_ordered(&mut self, place: &str, written: &Adaptive, ordered: bool) -> Option<()> {
        let (min, max) = (written.min.as_ref()?, written.max.as_ref()?);
        if !ordered {
            let message = format!("{place}: min is {}, above max, {}", min.value, max.value);
            self.report(min, format!("{message}; swap them, or write less"));
        }
        ordered.then_some(())
    }

    fn expect_start(
        &mut self,
        place: &str,
        written: &Adaptive,
        range: &RangeInclusive<f64>,
        start: Option<f64>,
    ) {
        let (Some(at), Some(start)) = (&written.start, start) else { return };
        if !range.contains(&start) {
            let message = format!("{place}: start is {}, not between min and max", at.value);
            self.report(at, format!("{message}; write one of these, or leave it out"));
        }
    }
}
