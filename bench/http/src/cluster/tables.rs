use super::contender::Contender;
use super::lane::{Lane, TASKS};
use crate::report::{Table, digits, range};
use crate::stats::{median, ratios};

/// The lane of a contender among as many tasks.
pub fn find(lanes: &[Lane], contender: Contender, tasks: usize) -> Option<&Lane> {
    lanes.iter().find(|lane| lane.contender == contender && lane.tasks == tasks)
}

/// One table for each concurrency.
pub fn speeds(lanes: &[Lane]) -> Vec<Table> {
    TASKS.into_iter().filter_map(|tasks| speed(lanes, tasks)).collect()
}

fn speed(lanes: &[Lane], tasks: usize) -> Option<Table> {
    let strict = find(lanes, Contender::Strict, tasks)?;
    let mut table = Table::new(format!("{tasks} calls at a time"), "who");
    table.header.extend(
        ["per second", "strict to it", "quartiles", "p50: µs", "p99: µs"].map(str::to_owned),
    );
    for lane in lanes.iter().filter(|lane| lane.tasks == tasks) {
        let ratios = ratios(&strict.per_second, &lane.per_second);
        let is_strict = lane.contender == Contender::Strict;
        let ratio = |shown: String| if is_strict { "–".to_owned() } else { shown };
        table.rows.push(vec![
            lane.contender.to_string(),
            digits(median(&lane.per_second)),
            ratio(digits(median(&ratios))),
            ratio(range(&ratios, digits)),
            digits(median(&lane.p50)),
            digits(median(&lane.p99)),
        ]);
    }
    let about = Contender::ALL.map(|contender| format!("{contender}: {}", contender.about()));
    table.notes.extend(about);
    Some(table)
}

/// What leases save.
pub fn leases(lanes: &[Lane]) -> Table {
    let mut table = Table::new("Leased beside strict", "calls at a time");
    let header = ["times as many decisions", "quartiles", "scripts per decision", "times fewer"];
    table.header.extend(header.map(str::to_owned));
    for tasks in TASKS {
        let of = |contender| find(lanes, contender, tasks);
        let (Some(strict), Some(leased)) = (of(Contender::Strict), of(Contender::Leased)) else {
            continue;
        };
        let faster = ratios(&leased.per_second, &strict.per_second);
        let fewer = ratios(&strict.commands, &leased.commands);
        table.rows.push(vec![
            tasks.to_string(),
            digits(median(&faster)),
            range(&faster, digits),
            digits(median(&leased.commands)),
            digits(median(&fewer)),
        ]);
    }
    table
}
