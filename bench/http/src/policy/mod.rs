//! How long does a decision take, whatever the policy has?

mod block;
mod decisions;
mod limits;
mod met;
mod scene;

use self::decisions::{Common, Decisions};
use self::scene::Scene;
use crate::Result;
use crate::report::{Table, digits, progress, range, signed};
use crate::results::{Findings, Promise, Series};
use crate::settings::Settings;
use crate::turns::in_turn;

/// Scenes that are compared with one another, and measured in turn.
struct Comparison {
    name: &'static str,
    remark: &'static str,
    scenes: fn() -> Result<Vec<Scene>>,
    /// Of the medians of the scenes: ns.
    promises: fn(&str, &[f64]) -> Vec<Promise>,
}

const COMPARISONS: [Comparison; 9] = [
    limits::LITERAL,
    limits::PARAMETER,
    limits::REST,
    block::V4,
    block::V4_MANY_CALLERS,
    block::V6,
    block::V6_MANY_CALLERS,
    block::BLOCKED,
    met::MET,
];

pub fn measure(settings: &Settings) -> Result<Findings> {
    let common = Common::new();
    let mut findings = Findings::default();
    for comparison in COMPARISONS.iter().filter(|it| settings.wants(it.name)) {
        progress(comparison.name);
        let scenes = (comparison.scenes)()?;
        let decisions = scenes.iter().map(|scene| Decisions::new(scene, &common)).collect();
        let rounds = in_turn(decisions, settings)?;
        let series = scenes.iter().zip(rounds).map(|(scene, rounds)| Series {
            case: comparison.name.to_owned(),
            subject: scene.name.clone(),
            unit: "ns",
            rounds,
        });
        let series: Vec<Series> = series.collect();
        let medians: Vec<f64> = series.iter().map(Series::median).collect();
        findings.tables.push(comparison.table(&series));
        findings.promises.extend((comparison.promises)(comparison.name, &medians));
        findings.series.extend(series);
    }
    Ok(findings)
}

impl Comparison {
    /// One row per scene, each compared with the first.
    fn table(&self, series: &[Series]) -> Table {
        let mut table = Table::new(format!("{}: ns per decision", self.name), "");
        table.header.extend(["median", "quartiles", "ratio", "difference"].map(str::to_owned));
        let first = series.first().map_or(f64::NAN, Series::median);
        for one in series {
            let median = one.median();
            table.rows.push(vec![
                one.subject.clone(),
                digits(median),
                range(&one.rounds, digits),
                format!("{:.2}×", median / first),
                signed(median - first),
            ]);
        }
        table.notes.push(self.remark.to_owned());
        table
    }
}

/// For what nothing was promised of.
fn nothing(_: &str, _: &[f64]) -> Vec<Promise> {
    Vec::new()
}
