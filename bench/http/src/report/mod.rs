//! Results on the screen and in files.

mod csv;
// Both benchmarks tell the same of a machine, and their tables have one look.
#[path = "../../../src/report/facts.rs"]
pub mod facts;
mod machine;
#[path = "../../../src/report/table.rs"]
mod table;

use std::fmt::{Display, Write as _};
use std::path::PathBuf;
use std::{fs, io};

pub use self::table::{Table, digits};
use crate::results::{Findings, Promise, Series, promises};
use crate::settings::Settings;
use crate::stats::quartiles;

/// Shows progress on stderr.
pub fn progress(what: impl Display) {
    eprintln!("· {what}");
}

/// Everything found so far. Each addition is printed and saved at once: a run
/// takes long, and one that is cut short should leave something behind.
pub struct Report {
    text: String,
    series: Vec<Series>,
    promises: Vec<Promise>,
    path: PathBuf,
}

impl Report {
    pub fn begin(settings: &Settings) -> io::Result<Self> {
        fs::create_dir_all(&settings.out)?;
        let (_, name) = settings.scope.names();
        let began = machine::now();
        let mut report = Self {
            text: String::new(),
            series: Vec::new(),
            promises: Vec::new(),
            path: settings.out.join(format!("{name}-{}", began.replace(':', "-"))),
        };
        report.write(&format!("# Benchmark of {began}\n\n{}", machine::describe(settings)))?;
        Ok(report)
    }

    pub fn add(&mut self, findings: Findings) -> io::Result<()> {
        self.series.extend(findings.series);
        self.promises.extend(findings.promises);
        findings.tables.iter().try_for_each(|table| self.write(&table.to_string()))
    }

    /// What was promised, and what became of it.
    pub fn conclude(mut self) -> io::Result<PathBuf> {
        self.write(&promises(&self.promises).to_string())?;
        Ok(self.path.with_extension("md"))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let text = text.trim_end();
        println!("{text}\n");
        let _ = writeln!(self.text, "{text}\n");
        fs::write(self.path.with_extension("md"), &self.text)?;
        fs::write(self.path.with_extension("csv"), csv::render(&self.series))
    }
}

/// A number whose sign matters.
pub fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", digits(value))
}

/// Between which the middle half of `values` is.
pub fn range(values: &[f64], show: fn(f64) -> String) -> String {
    let (low, high) = quartiles(values);
    format!("{} to {}", show(low), show(high))
}
