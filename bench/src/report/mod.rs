//! Results on the screen and in files.

mod csv;
mod facts;
mod grid;
mod machine;
mod table;

use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

pub use self::table::{Table, digits};
use crate::results::{Case, Measurement};
use crate::roster::baseline_of;
use crate::verdict;

/// Shows progress on stderr.
pub fn progress(what: impl Display) {
    eprintln!("· {what}");
}

/// Everything found so far. Each addition is printed and saved at once: a run
/// takes long, and one that is cut short should leave something behind.
pub struct Report {
    text: String,
    measurements: Vec<Measurement>,
    /// Limiters that do not limit as they say.
    unsound: Vec<&'static str>,
    path: PathBuf,
}

impl Report {
    pub fn begin(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let began = machine::now();
        let mut report = Self {
            text: String::new(),
            measurements: Vec::new(),
            unsound: Vec::new(),
            path: directory.join(began.replace(':', "-")),
        };
        let heading = format!("# Benchmark of {began}\n\n{}", machine::describe());
        report.add(&heading)?;
        Ok(report)
    }

    pub fn add_probes(&mut self, table: &Table, unsound: Vec<&'static str>) -> io::Result<()> {
        self.unsound = unsound;
        self.add(&table.to_string())
    }

    /// The tables of some measurements, and what is to be said about them.
    pub fn add_measurements(&mut self, measurements: Vec<Measurement>) -> io::Result<()> {
        let mut text = String::new();
        for table in grid::tables(&measurements, &self.unsound) {
            let _ = writeln!(text, "{table}");
        }
        self.measurements.extend(measurements);
        if text.is_empty() { Ok(()) } else { self.add(&text) }
    }

    /// What was promised, and what was lost.
    pub fn conclude(mut self) -> io::Result<PathBuf> {
        self.add(&verdict::promises(&self.measurements).to_string())?;
        self.add(&verdict::losses(&self.measurements).to_string())?;
        Ok(self.path.with_extension("md"))
    }

    fn add(&mut self, text: &str) -> io::Result<()> {
        let text = text.trim_end();
        println!("{text}\n");
        let _ = writeln!(self.text, "{text}\n");
        fs::write(self.path.with_extension("md"), &self.text)?;
        fs::write(self.path.with_extension("csv"), csv::render(&self.measurements))
    }
}

/// How many times spillgate's number `measurement` is, unless it is spillgate's own
/// or spillgate has none.
pub fn ratio(measurement: &Measurement, among: &[Measurement]) -> Option<f64> {
    let baseline = baseline_of(measurement.peer);
    let ours = find(among, measurement.case, baseline)?;
    (measurement.peer != baseline).then(|| measurement.median() / ours.median())
}

pub fn find<'a>(among: &'a [Measurement], case: Case, peer: &str) -> Option<&'a Measurement> {
    among.iter().find(|found| found.case == case && found.peer == peer)
}
