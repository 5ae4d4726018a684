use super::lane::{Lane, Way};
use super::verdict::rivals;
use crate::report::{Table, digits, range};
use crate::stats::median;

/// A table for each way, with a row a contender.
pub fn speeds(lanes: &[Lane]) -> Vec<Table> {
    let of = |way| lanes.iter().filter(move |lane| lane.way == way);
    let ways = Way::ALL.into_iter().filter(|way| of(*way).next().is_some());
    ways.map(|way| speed(way, &of(way).collect::<Vec<_>>())).collect()
}

fn speed(way: Way, lanes: &[&Lane]) -> Table {
    let mut table = Table::new(format!("Requests per second: {way}"), "call");
    let columns = ["requests/s", "quartiles", "first / this", "quartiles", "p99: µs", "CPU: µs"];
    table.header.extend(columns.map(str::to_owned));
    for lane in lanes {
        table.rows.push(row(lane, lanes[0]));
        table.notes.push(format!("{}: {}", lane.contender.name, lane.contender.meaning));
        let flaws = lane.flaws.iter().map(|flaw| format!("! {}: {flaw}", lane.contender.name));
        table.notes.extend(flaws);
    }
    table.notes.extend(
        [
            "first / this: how many times as many the first answers, medians of the rounds",
            "CPU: user and system time of the server's process, for a request",
        ]
        .map(str::to_owned),
    );
    table
}

fn row(lane: &Lane, first: &Lane) -> Vec<String> {
    let flaw = if lane.flaws.is_empty() { "" } else { " !" };
    let times = first.times(lane);
    vec![
        format!("{}{flaw}", lane.contender.name),
        digits(median(&lane.throughput)),
        range(&lane.throughput, digits),
        format!("{}×", digits(median(&times))),
        range(&times, digits),
        digits(median(&lane.p99)),
        digits(median(&lane.cpu)),
    ]
}

/// Everything that another program does better, promised or not.
pub fn losses(lanes: &[Lane]) -> Table {
    let mut table = Table::new("Where another is better", "call");
    table.header.extend(["way", "other", "what", "the other's", "its own"].map(str::to_owned));
    for (ours, theirs) in rivals(lanes) {
        for ((what, our, sign), (_, their, _)) in medians(ours).into_iter().zip(medians(theirs)) {
            if sign * their < sign * our {
                let names =
                    [ours.contender.name, &ours.way.to_string(), theirs.contender.name, what];
                let values = [digits(their), digits(our)];
                table.rows.push(names.map(str::to_owned).into_iter().chain(values).collect());
            }
        }
    }
    if table.rows.is_empty() {
        table.notes.push("Nowhere.".to_owned());
    }
    table
}

/// What is compared, and the sign with which less is better.
fn medians(lane: &Lane) -> [(&'static str, f64, f64); 3] {
    [
        ("requests/s", median(&lane.throughput), -1.0),
        ("p99: µs", median(&lane.p99), 1.0),
        ("CPU: µs", median(&lane.cpu), 1.0),
    ]
}
