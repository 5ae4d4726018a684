//! Adaptive limits, built by what a policy says.

use std::ops::RangeInclusive;
use std::sync::Arc;

use spillgate::adaptive::{
    AdaptiveLimit, AdaptiveLimitBuilder, AdaptiveRate, AdaptiveRateBuilder, Aimd, Auto, Controller,
    Cpu, Errors, Load, Signal, Step, Target, Window,
};
use spillgate::{Quota, Timestamp};

use crate::Key;
use crate::policy::Rule;
use crate::policy::adaptive::{AdaptiveTerms, ControllerTerms, SignalTerms, per_second};

/// A limit on how many requests are in flight.
pub(super) fn concurrency(
    terms: &AdaptiveTerms,
    range: &RangeInclusive<u32>,
    start: Option<f64>,
    by_priority: bool,
) -> AdaptiveLimitBuilder {
    let builder = AdaptiveLimit::concurrency(AnyController::new(terms), range.clone());
    finish(builder, terms, start, by_priority)
}

/// A share of all requests.
pub(super) fn share(
    terms: &AdaptiveTerms,
    min: f64,
    start: Option<f64>,
    by_priority: bool,
) -> AdaptiveLimitBuilder {
    let builder = AdaptiveLimit::share(AnyController::new(terms), min);
    finish(builder, terms, start, by_priority)
}

fn finish(
    builder: AdaptiveLimitBuilder,
    terms: &AdaptiveTerms,
    start: Option<f64>,
    by_priority: bool,
) -> AdaptiveLimitBuilder {
    let builder = builder.by_priority(by_priority);
    let builder = match start {
        Some(start) => builder.start(start),
        None => builder,
    };
    match AnySignal::new(&terms.signal) {
        Some(signal) => builder.signal(signal),
        None => builder,
    }
}

/// A rate.
pub(super) fn rate(
    rule: &Rule,
    terms: &AdaptiveTerms,
    range: &RangeInclusive<Quota>,
    start: Option<&Quota>,
    by_priority: bool,
) -> AdaptiveRateBuilder<Key> {
    let builder = AdaptiveRate::builder(AnyController::new(terms), range.clone())
        .capacity(rule.spec.capacity)
        .when_full(rule.spec.when_full)
        // Who is limited alone has nobody to give way to.
        .by_priority(by_priority && rule.per.is_empty());
    let builder = match start {
        Some(start) => builder.start(per_second(start)),
        None => builder,
    };
    match AnySignal::new(&terms.signal) {
        Some(signal) => builder.signal(signal),
        None => builder,
    }
}

/// What a limit is made of, by which the next policy may differ.
#[derive(PartialEq)]
pub(super) struct MadeOf {
    terms: String,
    /// The closure's address.
    closure: Option<usize>,
    by_priority: bool,
    pub(super) needs_queue_wait: bool,
}

impl MadeOf {
    pub(super) fn new(terms: &AdaptiveTerms, by_priority: bool) -> Self {
        let closure = match &terms.signal {
            SignalTerms::Closure(closure) => Some(Arc::as_ptr(closure).cast::<()>() as usize),
            _ => None,
        };
        let needs_queue_wait = terms.needs_queue_wait();
        Self { terms: terms.to_string(), closure, by_priority, needs_queue_wait }
    }
}

/// A controller of a kind that only the policy knows.
#[derive(Debug)]
struct AnyController(Box<dyn Controller>);

impl AnyController {
    fn new(terms: &AdaptiveTerms) -> Self {
        Self(match terms.controller {
            ControllerTerms::Auto => Box::new(Auto::default()),
            ControllerTerms::Target(target) => Box::new(Target::new(target)),
            ControllerTerms::Errors { threshold, aggression } => {
                Box::new(Errors::default().threshold(threshold).aggression(aggression))
            }
            ControllerTerms::Aimd => Box::new(Aimd::default()),
            ControllerTerms::Load(target) => Box::new(Load::new(target)),
        })
    }
}

impl Controller for AnyController {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        self.0.step(limit, window)
    }

    fn forget(&mut self, limit: f64) -> Step {
        self.0.forget(limit)
    }
}

/// A signal of a kind that only the policy knows.
struct AnySignal(Box<dyn Signal>);

impl AnySignal {
    /// `None` if the controller looks at calls alone.
    fn new(terms: &SignalTerms) -> Option<Self> {
        Some(Self(match terms {
            SignalTerms::Latency | SignalTerms::QueueWait | SignalTerms::Errors => return None,
            SignalTerms::Cpu => Box::new(Cpu::detect()),
            SignalTerms::ProcessCpu => Box::new(Cpu::process()),
            SignalTerms::MachineCpu => Box::new(Cpu::machine()),
            SignalTerms::CgroupCpu => Box::new(Cpu::cgroup()),
            SignalTerms::Closure(closure) => {
                let closure = Arc::clone(closure);
                Box::new(move || closure())
            }
        }))
    }
}

impl Signal for AnySignal {
    fn read(&mut self, now: Timestamp) -> Option<f64> {
        self.0.read(now)
    }
}
