//! Adaptive limits.

use std::time::Duration;

use super::Compiler;
use super::duration::Durations;
use crate::config::spec::{Adaptive, At, Level, Limit};
use crate::policy::adaptive::{AdaptiveTerms, ControllerTerms, SignalTerms};
use crate::suggest::hint;

/// The controllers, by their names, each with what it can look at: the first if nothing else is
/// said.
pub(crate) const CONTROLLERS: [(&str, &[&str]); 5] = [
    ("auto", &["latency"]),
    ("target", &["latency", "queue-wait"]),
    ("errors", &["errors"]),
    ("aimd", &["errors"]),
    ("load", &["cpu", "process-cpu", "machine-cpu", "cgroup-cpu"]),
];

pub(crate) const SIGNALS: [(&str, SignalTerms); 7] = [
    ("latency", SignalTerms::Latency),
    ("queue-wait", SignalTerms::QueueWait),
    ("errors", SignalTerms::Errors),
    ("cpu", SignalTerms::Cpu),
    ("process-cpu", SignalTerms::ProcessCpu),
    ("machine-cpu", SignalTerms::MachineCpu),
    ("cgroup-cpu", SignalTerms::CgroupCpu),
];

const TARGETS: Durations =
    Durations { range: Duration::from_millis(1)..=Duration::from_secs(600), text: "1ms to 10min" };

impl Compiler<'_> {
    /// What moves the limit, if it follows load. What would be said of others means nothing then.
    pub(super) fn adaptive(&mut self, place: &str, limit: &Limit) -> Option<AdaptiveTerms> {
        let written = limit.adaptive.as_ref()?;
        self.check_keys_beside(place, limit, written);
        let place = format!("{place}, adaptive");
        let (controller, signal) = self.controller_and_signal(&place, written)?;
        let closure = written.closure.clone().map(SignalTerms::Closure);
        let named = || SIGNALS.into_iter().find(|(name, _)| *name == signal).map(|(_, it)| it);
        let signal = closure.or_else(named)?;
        let target = self.target(&place, written, controller);
        let shares = self.shares(&place, written, controller);
        let bounds = self.bounds(&place, written, controller)?;
        let controller = match controller {
            "target" => ControllerTerms::Target(match target? {
                Goal::Latency(latency) => latency,
                Goal::Load(_) => return None,
            }),
            "load" => ControllerTerms::Load(match target? {
                Goal::Load(load) => load,
                Goal::Latency(_) => return None,
            }),
            "errors" => ControllerTerms::Errors { threshold: shares.0, aggression: shares.1 },
            "aimd" => ControllerTerms::Aimd,
            _ => ControllerTerms::Auto,
        };
        Some(AdaptiveTerms { controller, signal, bounds })
    }

    /// The names of controller and signal: each follows from the other.
    fn controller_and_signal(
        &mut self,
        place: &str,
        written: &Adaptive,
    ) -> Option<(&'static str, &'static str)> {
        let signal = match &written.signal {
            None => None,
            Some(at) => {
                let found = SIGNALS.iter().find(|(name, _)| *name == at.value);
                let found = found.map(|(name, _)| *name).ok_or_else(|| {
                    let hint = hint(&at.value, SIGNALS.iter().map(|(name, _)| *name));
                    format!("{place}: unknown signal {:?}{hint}", at.value)
                });
                Some(self.take(at, found)?)
            }
        };
        let (controller, signals) = match &written.controller {
            Some(at) => {
                let found = CONTROLLERS.iter().find(|(name, _)| *name == at.value).copied();
                let found = found.ok_or_else(|| {
                    let hint = hint(&at.value, CONTROLLERS.map(|(name, _)| name));
                    format!("{place}: unknown controller {:?}{hint}", at.value)
                });
                self.take(at, found)?
            }
            None => *CONTROLLERS.iter().find(|(_, signals)| match signal {
                Some("queue-wait") => signals.contains(&"queue-wait"),
                Some(signal) => signals.contains(&signal),
                None => true,
            })?,
        };
        self.check_closure(place, written, controller);
        let signal_of = signal.unwrap_or(signals.first()?);
        if let Some(at) = written.signal.as_ref().filter(|_| !signals.contains(&signal_of)) {
            let known = signals.join("\" or \"");
            let message = format!("{place}: {controller:?} does not look at {:?}", at.value);
            self.report(at, format!("{message}; write signal = \"{known}\", or leave it out"));
        }
        Some((controller, signal_of))
    }

    /// A closure says how loaded something is, which only one controller looks at.
    fn check_closure(&mut self, place: &str, written: &Adaptive, controller: &str) {
        if written.closure.is_none() {
            return;
        }
        if controller != "load" {
            let message = format!("{place}: {controller:?} does not look at a closure");
            self.report(&written.at, format!("{message}; use `Adaptive::load`"));
        }
        if let Some(at) = &written.signal {
            let both = "there are both a signal and a closure; remove one";
            self.report(at, format!("{place}: {both}"));
        }
    }

    /// What the signal is kept near.
    fn target(&mut self, place: &str, written: &Adaptive, controller: &str) -> Option<Goal> {
        let (example, is_text) = match controller {
            "target" => ("\"40ms\"", true),
            "load" => ("0.8", false),
            _ => {
                if let Some(at) = &written.target {
                    let message = format!("{place}: {controller:?} has no `target`");
                    let right = "remove it, or write controller = \"target\"";
                    self.report(at, format!("{message}; {right}"));
                }
                return None;
            }
        };
        let Some(at) = &written.target else {
            if !self.is_partial {
                let message = format!("{place}: {controller:?} has no target; add target =");
                self.report(&written.at, format!("{message} {example}"));
            }
            return None;
        };
        match is_text {
            true => self.latency_target(place, at),
            false => self.load_target(place, at, written.closure.is_none()),
        }
    }

    fn latency_target(&mut self, place: &str, at: &At<Level>) -> Option<Goal> {
        let Level::Text(text) = &at.value else {
            let message = format!("{place}, target: {} is not a latency", at.value);
            self.report(at, format!("{message}; write one such as \"40ms\""));
            return None;
        };
        let text = At { value: text.clone(), span: at.span.clone() };
        let latency = self.duration(place, "target", Some(&text), Duration::ZERO, &TARGETS);
        Some(Goal::Latency(latency))
    }

    fn load_target(&mut self, place: &str, at: &At<Level>, is_cpu: bool) -> Option<Goal> {
        let Level::Number(load) = at.value else {
            let message = format!("{place}, target: {} is not a load", at.value);
            self.report(at, format!("{message}; write one such as 0.8"));
            return None;
        };
        if !load.is_finite() || load <= 0.0 || (is_cpu && load >= 1.0) {
            let right = if is_cpu { "a load between 0 and 1" } else { "a load above 0" };
            let message = format!("{place}, target: {load} is out of range");
            self.report(at, format!("{message}; write {right}, such as 0.8"));
            return None;
        }
        Some(Goal::Load(load))
    }

    /// `threshold` and `aggression`, which one controller alone has.
    fn shares(&mut self, place: &str, written: &Adaptive, controller: &str) -> (f64, f64) {
        if controller != "errors" {
            let keys = [("threshold", &written.threshold), ("aggression", &written.aggression)];
            for (key, at) in keys.into_iter().filter_map(|(key, at)| Some((key, at.as_ref()?))) {
                let message = format!("{place}: {controller:?} has no `{key}`");
                let right = "remove it, or write controller = \"errors\"";
                self.report(at, format!("{message}; {right}"));
            }
            return (0.0, 0.0);
        }
        let threshold = written.threshold.as_ref().map_or(0.95, |at| {
            if !(at.value > 0.0 && at.value < 1.0) {
                let message = format!("{place}, threshold: {} is out of range", at.value);
                self.report(at, format!("{message}; write a share between 0 and 1, such as 0.95"));
            }
            at.value
        });
        let aggression = written.aggression.as_ref().map_or(1.0, |at| {
            if !(0.1..=10.0).contains(&at.value) {
                let message = format!("{place}, aggression: {} is out of range", at.value);
                self.report(at, format!("{message}; use 0.1 to 10"));
            }
            at.value
        });
        (threshold, aggression)
    }

    /// Reports what means nothing beside `adaptive`.
    fn check_keys_beside(&mut self, place: &str, limit: &Limit, written: &Adaptive) {
        let others = [("quota", limit.quota.is_some()), ("concurrent", limit.concurrent.is_some())];
        for (key, _) in others.into_iter().filter(|(_, is_there)| *is_there) {
            let message = format!("{place} has both `{key}` and `adaptive`; write two limits");
            self.report(&written.at, message);
        }
        let is_rate = written.has_quotas();
        let has_cost = limit.cost.is_some() && !is_rate;
        let in_process = "it is of each node, and needs no store";
        let meaningless = [
            ("algorithm", limit.algorithm.is_some(), "it is a token bucket, or counts requests"),
            ("start", limit.start.is_some(), "where it begins is said in `adaptive`"),
            ("capacity", limit.capacity.is_some() && !is_rate, "all are counted together"),
            ("when-full", limit.when_full.is_some() && !is_rate, "all are counted together"),
            ("max-debt", limit.max_debt.is_some(), "nothing is owed"),
            ("sharing", limit.sharing.is_some(), in_process),
            ("outage", limit.outage.is_some(), in_process),
            ("cost", has_cost, "every request counts as one"),
            ("settle", limit.settle.is_some(), "responses move it, and refund nothing"),
            ("ban", limit.ban.is_some(), "load is not the fault of a caller"),
            ("override", !limit.overrides.is_empty(), "it is for all callers alike"),
            ("match.domain", limit.matches.domain.is_some(), "nobody says how a call ends"),
            ("match.descriptor", limit.matches.descriptor.is_some(), "it is for requests"),
        ];
        for (key, _, why) in meaningless.into_iter().filter(|(_, is_there, _)| *is_there) {
            let message = format!("{place}: a limit with `adaptive` has no `{key}`, since {why}");
            self.report(&written.at, format!("{message}; remove it"));
        }
        self.check_per(place, limit, is_rate);
    }

    /// What the service can take is one number, whoever asks.
    fn check_per(&mut self, place: &str, limit: &Limit, is_rate: bool) {
        let is_global = |part: &At<String>| part.value == "global";
        let parts = limit.per.iter().flatten().filter(|part| !is_global(part));
        if let Some(at) = parts.take(usize::from(!is_rate)).next() {
            let why = "what is in flight, or let through, is one number for the whole service";
            let right = "write per = \"global\", or leave it out";
            self.report(
                at,
                format!("{place}, per: {:?} means nothing here: {why}; {right}", at.value),
            );
        }
    }
}

/// What a signal is kept near.
enum Goal {
    Latency(Duration),
    Load(f64),
}
