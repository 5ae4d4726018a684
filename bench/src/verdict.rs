//! What was promised of spillgate, held against what was measured.

use crate::peer::Peer;
use crate::peers::{Floor, Governor, Quota, Spillgate, SpillgateMany};
use crate::report::{Table, digits, find};
use crate::results::{Case, Measurement, Turnovers};
use crate::roster::{baseline_of, is_rival};
use crate::workload::{Access, Workload};

/// In every case that is meant, a number of spillgate's keeps to a bound.
struct Promise {
    text: &'static str,
    is_meant: fn(Case) -> bool,
    number: Number,
    bound: Bound,
}

enum Number {
    /// How many times as fast as the second is the first?
    Speed(&'static str, &'static str),
    /// What was measured, as it is.
    Plain,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Below(f64),
}

const GOVERNOR: &str = <Governor<String> as Peer>::NAME;

const PROMISES: [Promise; 7] = [
    Promise {
        text: "2.2 times as fast as governor",
        is_meant: is_speed,
        number: Number::Speed(Spillgate::NAME, GOVERNOR),
        bound: Bound::AtLeast(2.2),
    },
    Promise {
        text: "4 times as fast as governor, from 1M uniform callers on",
        is_meant: |case| has_callers(case, 1_000_000) && is_uniform(case),
        number: Number::Speed(Spillgate::NAME, GOVERNOR),
        bound: Bound::AtLeast(4.0),
    },
    Promise {
        text: "0.95 times as fast as quota",
        is_meant: is_speed,
        number: Number::Speed(Spillgate::NAME, Quota::NAME),
        bound: Bound::AtLeast(0.95),
    },
    Promise {
        text: "2 times as fast as quota, from 100k callers on",
        is_meant: |case| has_callers(case, 100_000),
        number: Number::Speed(Spillgate::NAME, Quota::NAME),
        bound: Bound::AtLeast(2.0),
    },
    Promise {
        text: "check_many 1.4 times as fast as check, at 10M callers",
        is_meant: |case| has_callers(case, 10_000_000),
        number: Number::Speed(SpillgateMany::NAME, Spillgate::NAME),
        bound: Bound::AtLeast(1.4),
    },
    Promise {
        text: "at most 27 bytes per caller",
        is_meant: |case| matches!(case, Case::BytesPerCaller { .. }),
        number: Number::Plain,
        bound: Bound::AtMost(27.0),
    },
    Promise {
        text: "fewer than 1 in 10,000 first hits evict a live caller",
        is_meant: is_after_ten_turnovers,
        number: Number::Plain,
        bound: Bound::Below(1.0),
    },
];

fn is_after_ten_turnovers(case: Case) -> bool {
    matches!(case, Case::LiveEvictions { turnovers, .. } if turnovers == Turnovers::Eleventh)
}

fn is_speed(case: Case) -> bool {
    matches!(case, Case::Check(_) | Case::Insert { .. })
}

fn has_callers(case: Case, least: u32) -> bool {
    matches!(case, Case::Check(Workload { callers, .. }) if callers >= least)
}

fn is_uniform(case: Case) -> bool {
    matches!(case, Case::Check(Workload { access, .. }) if access == Access::Uniform)
}

impl Number {
    /// Whose measurements are looked at.
    fn subject(&self) -> &'static str {
        match self {
            Self::Speed(who, _) => who,
            Self::Plain => Spillgate::NAME,
        }
    }

    fn of(&self, subject: &Measurement, all: &[Measurement]) -> Option<f64> {
        match self {
            Self::Speed(_, than) => {
                Some(find(all, subject.case, than)?.median() / subject.median())
            }
            Self::Plain => Some(subject.median()),
        }
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::Below(bound) => value < bound,
        }
    }

    /// Whether `value` is nearer to breaking it, or breaks it by more.
    fn is_worse(self, value: f64, than: f64) -> bool {
        match self {
            Self::AtLeast(_) => value < than,
            Self::AtMost(_) | Self::Below(_) => value > than,
        }
    }
}

/// One row a promise; a note on each measurement that breaks it.
pub fn promises(measurements: &[Measurement]) -> Table {
    let mut table = Table::new("Promises", "promise");
    table.header.extend(["kept", "in", "worst", "at"].map(str::to_owned));
    for promise in &PROMISES {
        let values = promise.values(measurements);
        table.rows.push(promise.row(&values));
        for (case, value) in values {
            if !promise.bound.holds(value) {
                table.notes.push(promise.breach(case, value, measurements));
            }
        }
    }
    table
}

impl Promise {
    fn values(&self, all: &[Measurement]) -> Vec<(Case, f64)> {
        let subjects =
            all.iter().filter(|it| it.peer == self.number.subject() && (self.is_meant)(it.case));
        subjects.filter_map(|it| Some((it.case, self.number.of(it, all)?))).collect()
    }

    fn row(&self, values: &[(Case, f64)]) -> Vec<String> {
        let worst = values
            .iter()
            .copied()
            .reduce(|worst, next| if self.bound.is_worse(next.1, worst.1) { next } else { worst });
        let Some((case, worst)) = worst else {
            return [self.text, "not measured", "", "", ""].map(str::to_owned).to_vec();
        };
        let kept = values.iter().filter(|(_, value)| self.bound.holds(*value)).count();
        let verdict = if kept == values.len() { "yes" } else { "NO" };
        let share = format!("{kept} of {}", values.len());
        vec![self.text.to_owned(), verdict.to_owned(), share, digits(worst), case.to_string()]
    }

    fn breach(&self, case: Case, value: f64, all: &[Measurement]) -> String {
        let breach = format!("{}: {} at {case}", self.text, digits(value));
        let floor = find(all, case, Floor::NAME).and_then(|floor| self.number.of(floor, all));
        match floor {
            // Tells a promise that is not kept from one that cannot be.
            Some(floor) => format!("{breach} (the floor: {})", digits(floor)),
            None => breach,
        }
    }
}

/// Everything that another limiter does better, promised or not.
pub fn losses(measurements: &[Measurement]) -> Table {
    let mut table = Table::new("Where another limiter is better", "case");
    table.header.extend(["limiter", "its", "spillgate's", "unit", "flaw"].map(str::to_owned));
    let rivals = measurements.iter().filter(|it| is_rival(it.peer) && !it.case.is_control());
    for measurement in rivals {
        let Measurement { case, peer, flaw, .. } = measurement;
        let ours = find(measurements, *case, baseline_of(peer)).map(Measurement::median);
        let Some(ours) = ours.filter(|ours| measurement.median() < *ours) else {
            continue;
        };
        table.rows.push(vec![
            case.to_string(),
            (*peer).to_owned(),
            digits(measurement.median()),
            digits(ours),
            case.unit().to_owned(),
            flaw.clone().unwrap_or_default(),
        ]);
    }
    if table.rows.is_empty() {
        table.notes.push("Nowhere.".to_owned());
    }
    table
}
