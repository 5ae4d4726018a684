//! What moves an adaptive limit, checked and ready to be applied.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use spillgate::Quota;

use super::rule::Rule;
use crate::config::spec::SignalClosure;

/// What moves an adaptive limit, and between which bounds.
pub(crate) struct AdaptiveTerms {
    pub(crate) controller: ControllerTerms,
    pub(crate) signal: SignalTerms,
    pub(crate) bounds: Bounds,
}

/// What is limited, from the lowest to the highest, and where it begins if that is said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bounds {
    /// Requests in flight.
    Concurrency(RangeInclusive<u32>, Option<f64>),
    /// Requests over time.
    Rate(RangeInclusive<Quota>, Option<Quota>),
    /// A share of all requests, at least this.
    Share(f64, Option<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ControllerTerms {
    Auto,
    Target(Duration),
    Errors { threshold: f64, aggression: f64 },
    Aimd,
    Load(f64),
}

#[derive(Clone)]
pub(crate) enum SignalTerms {
    Latency,
    QueueWait,
    Errors,
    Cpu,
    ProcessCpu,
    MachineCpu,
    CgroupCpu,
    Closure(SignalClosure),
}

impl AdaptiveTerms {
    /// What is limited: `concurrency`, `rate` or `share`.
    pub(crate) fn kind(&self) -> &'static str {
        match self.bounds {
            Bounds::Concurrency(..) => "concurrency",
            Bounds::Rate(..) => "rate",
            Bounds::Share(..) => "share",
        }
    }

    pub(crate) fn is_rate(&self) -> bool {
        matches!(self.bounds, Bounds::Rate(..))
    }

    pub(crate) fn is_share(&self) -> bool {
        matches!(self.bounds, Bounds::Share(..))
    }

    /// True if the controller goes by how requests end. `load` only counts them, to learn what one costs.
    pub(crate) fn needs_endings(&self) -> bool {
        !matches!(self.controller, ControllerTerms::Load(_))
    }

    /// True if the limit goes by how long requests waited before they came here.
    pub(crate) fn needs_queue_wait(&self) -> bool {
        matches!(self.signal, SignalTerms::QueueWait)
    }

    /// The bounds, for people.
    pub(crate) fn amount(&self) -> String {
        match &self.bounds {
            Bounds::Concurrency(range, _) => {
                format!("{} to {} concurrent", range.start(), range.end())
            }
            Bounds::Rate(range, _) => format!("{} to {}", range.start(), range.end()),
            Bounds::Share(min, _) => format!("a share of {min} to 1"),
        }
    }
}

impl ControllerTerms {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Target(_) => "target",
            Self::Errors { .. } => "errors",
            Self::Aimd => "aimd",
            Self::Load(_) => "load",
        }
    }
}

impl SignalTerms {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::QueueWait => "queue-wait",
            Self::Errors => "errors",
            Self::Cpu => "cpu",
            Self::ProcessCpu => "process-cpu",
            Self::MachineCpu => "machine-cpu",
            Self::CgroupCpu => "cgroup-cpu",
            Self::Closure(_) => "closure",
        }
    }
}

/// All of it, for a log of what a new policy changed: `auto by latency, 10 to 500 concurrent`.
impl fmt::Display for AdaptiveTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.controller.name())?;
        match self.controller {
            ControllerTerms::Target(target) => write!(f, " {target:?}")?,
            ControllerTerms::Load(target) => write!(f, " {target}")?,
            ControllerTerms::Errors { threshold, aggression } => {
                write!(f, " threshold {threshold} aggression {aggression}")?;
            }
            ControllerTerms::Auto | ControllerTerms::Aimd => {}
        }
        write!(f, " by {}, {}", self.signal.name(), self.amount())?;
        match &self.bounds {
            Bounds::Concurrency(_, Some(start)) | Bounds::Share(_, Some(start)) => {
                write!(f, " from {start}")
            }
            Bounds::Rate(_, Some(start)) => write!(f, " from {start}"),
            _ => Ok(()),
        }
    }
}

impl Rule {
    /// True if programs elsewhere can hold something of it.
    pub(crate) fn has_permits(&self) -> bool {
        self.is_hold && !self.adaptive.as_ref().is_some_and(|adaptive| adaptive.is_share())
    }

    /// True if a request that it refuses is shed: the service can take no more, whoever asks.
    pub(crate) fn sheds(&self) -> bool {
        let adaptive = self.adaptive.as_ref();
        adaptive.is_some_and(|adaptive| !adaptive.is_rate() || self.per.is_empty())
    }

    /// Lets the limit follow load.
    pub(crate) fn follow_load(&mut self, adaptive: AdaptiveTerms) {
        self.is_hold = !adaptive.is_rate();
        self.adaptive = Some(Box::new(adaptive));
    }

    /// What is limited, if the limit follows load.
    pub(super) fn kind(&self) -> Option<&'static str> {
        self.adaptive.as_ref().map(|adaptive| adaptive.kind())
    }
}

/// A rate in requests per second.
pub(crate) fn per_second(quota: &Quota) -> f64 {
    let seconds = quota.period().map_or(f64::INFINITY, |period| period.as_secs_f64());
    quota.amount() as f64 / seconds
}
