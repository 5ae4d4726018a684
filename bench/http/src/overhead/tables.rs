use super::lane::{Lane, find, rivals};
use crate::kind::Kind;
use crate::report::{Table, digits, range, signed};
use crate::stats::median;

/// One row per server.
pub fn costs(lanes: &[Lane]) -> Table {
    let mut table = Table::new("What a request costs the server", "server");
    let columns =
        ["CPU: µs", "quartiles", "over plain: µs", "quartiles", "requests/s", "p99: µs", "busy: %"];
    table.header.extend(columns.map(str::to_owned));
    let plain = find(lanes, Kind::Plain);
    for lane in lanes {
        table.rows.push(row(lane, plain));
        table.notes.push(format!("{}: {}", lane.kind, lane.kind.meaning()));
        table.notes.extend(lane.flaws.iter().map(|flaw| format!("! {}: {flaw}", lane.kind)));
    }
    table.notes.extend(
        [
            "CPU: user and system time of the server's process, medians of the rounds",
            "over plain: medians of the differences to the plain server in the same round",
            "busy: how much of the time the server ran; the rest of it, somebody else was slow",
        ]
        .map(str::to_owned),
    );
    table
}

fn row(lane: &Lane, plain: Option<&Lane>) -> Vec<String> {
    let name = if lane.flaws.is_empty() { "" } else { " !" };
    let over = plain.filter(|plain| plain.kind != lane.kind).map(|plain| lane.cpu_over(plain));
    let none = || "–".to_owned();
    vec![
        format!("{}{name}", lane.kind),
        digits(median(&lane.cpu)),
        range(&lane.cpu, digits),
        over.as_ref().map_or_else(none, |over| signed(median(over))),
        over.as_ref().map_or_else(none, |over| range(over, signed)),
        digits(median(&lane.throughput)),
        digits(median(&lane.p99)),
        digits(median(&lane.busy)),
    ]
}

/// Everything that another limiter's server does better, promised or not.
pub fn losses(lanes: &[Lane]) -> Table {
    let mut table = Table::new("Where another limiter is better", "server");
    table.header.extend(["other", "what", "the other's", "its own"].map(str::to_owned));
    for (ours, theirs) in rivals(lanes) {
        let (our, their) = (medians(ours), medians(theirs));
        for ((what, our, sign), (_, their, _)) in our.into_iter().zip(their) {
            if sign * their < sign * our {
                let names = [ours.kind.to_string(), theirs.kind.to_string(), what.to_owned()];
                table.rows.push(names.into_iter().chain([digits(their), digits(our)]).collect());
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
        ("CPU: µs", median(&lane.cpu), 1.0),
        ("requests/s", median(&lane.throughput), -1.0),
        ("p99: µs", median(&lane.p99), 1.0),
    ]
}
