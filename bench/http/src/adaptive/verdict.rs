use super::lane::{Lane, Round};
use super::subject::Limit;
use crate::results::{Bound, Promise};
use crate::stats::median;

impl Round {
    /// What was served, of the capacity.
    pub fn served_share(&self) -> f64 {
        self.overload.served / self.baseline.capacity
    }

    /// The p99 of what was served, beside that of single requests.
    pub fn p99_ratio(&self) -> f64 {
        self.overload.p99 / self.baseline.p99
    }
}

/// Full use, short latencies and a quick recovery, without a number in the policy.
pub fn promises(lanes: &[Lane]) -> Vec<Promise> {
    let auto = lanes.iter().filter(|lane| lane.subject.limit == Limit::Auto);
    auto.flat_map(of_lane).collect()
}

fn of_lane(lane: &Lane) -> [Promise; 3] {
    let promise = |what: &str, value: fn(&Round) -> f64, bound, unit| Promise {
        text: format!("{}: {what}", lane.subject),
        value: median(&lane.each(value)),
        bound,
        unit,
    };
    [
        promise("served, of the capacity", Round::served_share, Bound::AtLeast(0.9), "×"),
        promise("p99 beside that of single requests", Round::p99_ratio, Bound::AtMost(3.0), "×"),
        promise("recovery", |round| round.recovery, Bound::AtMost(5.0), "s"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::lane::Baseline;
    use super::super::plan::Plan;
    use super::super::samples::Summary;
    use super::super::subject::{Place, Subject};
    use super::*;

    fn lane(limit: Limit, served: f64, p99: f64, recovery: f64) -> Lane {
        let mut lane = Lane::new(Subject::new(Place::Axum, limit), Plan::SHORT);
        let baseline = Baseline { capacity: 200.0, p50: 5.0, p99: 6.0 };
        let overload = Summary { served, p99, ..Summary::default() };
        lane.rounds.push(Round { baseline, overload, recovery });
        lane
    }

    #[test]
    fn a_limit_that_wastes_or_waits_breaks_its_promise() {
        let kept = |lane: Lane| promises(&[lane]).iter().map(Promise::is_kept).collect::<Vec<_>>();
        assert_eq!(kept(lane(Limit::Auto, 180.0, 18.0, 5.0)), [true, true, true]);
        assert_eq!(kept(lane(Limit::Auto, 179.0, 18.1, 5.1)), [false, false, false]);
        assert!(kept(lane(Limit::None, 0.0, 0.0, 0.0)).is_empty());
    }
}
