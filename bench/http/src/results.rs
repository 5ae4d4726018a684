//! What was found, before it is written down.

use crate::report::{Table, digits};
use crate::stats::median;

/// The answer to one question.
#[derive(Default)]
pub struct Findings {
    pub tables: Vec<Table>,
    pub series: Vec<Series>,
    pub promises: Vec<Promise>,
}

/// Every round of one measurement.
pub struct Series {
    /// What was measured.
    pub case: String,
    /// Of whom.
    pub subject: String,
    pub unit: &'static str,
    pub rounds: Vec<f64>,
}

impl Series {
    pub fn median(&self) -> f64 {
        median(&self.rounds)
    }
}

/// Something that was promised of Spillgate, and what became of it.
pub struct Promise {
    pub text: String,
    pub value: f64,
    pub bound: Bound,
    pub unit: &'static str,
}

#[derive(Clone, Copy)]
pub enum Bound {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}

impl Promise {
    pub fn is_kept(&self) -> bool {
        match self.bound {
            Bound::AtMost(bound) => self.value <= bound,
            Bound::Below(bound) => self.value < bound,
            Bound::AtLeast(bound) => self.value >= bound,
        }
    }

    fn row(&self) -> Vec<String> {
        let kept = if self.is_kept() { "yes" } else { "NO" };
        let bound = match self.bound {
            Bound::AtMost(bound) => format!("at most {} {}", digits(bound), self.unit),
            Bound::Below(bound) => format!("below {} {}", digits(bound), self.unit),
            Bound::AtLeast(bound) => format!("at least {} {}", digits(bound), self.unit),
        };
        let value = format!("{} {}", digits(self.value), self.unit);
        vec![self.text.clone(), kept.to_owned(), value, bound]
    }
}

/// One row a promise.
pub fn promises(promises: &[Promise]) -> Table {
    let mut table = Table::new("Promises", "promise");
    table.header.extend(["kept", "measured", "promised"].map(str::to_owned));
    table.rows = promises.iter().map(Promise::row).collect();
    if promises.is_empty() {
        table.notes.push("Nothing that was measured was promised.".to_owned());
    }
    table
}
