use super::{Table, digits, find, ratio};
use crate::results::{Case, Measurement};

/// One row a peer, one column a case, one table for cases that belong together.
/// Peers that are `unsound` are marked.
pub fn tables(measurements: &[Measurement], unsound: &[&str]) -> Vec<Table> {
    let mut titles: Vec<String> = Vec::new();
    for title in measurements.iter().map(|measurement| measurement.case.table()) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles.iter().map(|title| table(title, measurements, unsound)).collect()
}

fn table(title: &str, measurements: &[Measurement], unsound: &[&str]) -> Table {
    let mut table = Table::new(title, "");
    let mut cases: Vec<Case> = Vec::new();
    let mut peers: Vec<&str> = Vec::new();
    for measurement in measurements {
        if measurement.case.table() != title {
            continue;
        }
        if !cases.contains(&measurement.case) {
            cases.push(measurement.case);
        }
        if !peers.contains(&measurement.peer) {
            peers.push(measurement.peer);
        }
        if let Some(flaw) = &measurement.flaw {
            let column = measurement.case.column();
            table.notes.push(format!("! {} ({column}): {flaw}", measurement.peer));
        }
    }
    table.header.extend(cases.iter().map(|case| case.column()));
    for peer in peers {
        let is_unsound = unsound.contains(&peer);
        let stub = if is_unsound { format!("{peer} †") } else { peer.to_owned() };
        let cells = cases.iter().map(|case| cell(find(measurements, *case, peer), measurements));
        table.rows.push(std::iter::once(stub).chain(cells).collect());
        if is_unsound {
            table.notes.push(format!("† {peer} does not limit as it says; see the probes"));
        }
    }
    table.notes.extend(cases[0].remark().map(str::to_owned));
    table
}

/// The median, and how many times spillgate's it is.
fn cell(measurement: Option<&Measurement>, among: &[Measurement]) -> String {
    let Some(measurement) = measurement else {
        return "–".to_owned();
    };
    let median = digits(measurement.median());
    let ratio = ratio(measurement, among).map_or(String::new(), |ratio| format!(" ({ratio:.2}×)"));
    let flaw = if measurement.flaw.is_some() { " !" } else { "" };
    format!("{median}{ratio}{flaw}")
}
