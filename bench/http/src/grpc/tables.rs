use super::contender::Contender;
use super::lane::{Lane, STREAMS};
use crate::report::{Table, digits, range};
use crate::stats::{median, ratios};

/// The lane of a contender with so many streams.
pub fn find(lanes: &[Lane], contender: Contender, streams: usize) -> Option<&Lane> {
    lanes.iter().find(|lane| lane.contender == contender && lane.streams == streams)
}

/// A table for each number of streams.
pub fn speeds(lanes: &[Lane]) -> Vec<Table> {
    let tables = STREAMS.into_iter().map(|(streams, connections)| {
        let shown: Vec<_> = lanes.iter().filter(|lane| lane.streams == streams).collect();
        (!shown.is_empty()).then(|| speed(lanes, &shown, streams, connections))
    });
    tables.flatten().collect()
}

fn speed(lanes: &[Lane], shown: &[&Lane], streams: usize, connections: usize) -> Table {
    let title = format!("Calls per second: streams {streams}, connections {connections}");
    let mut table = Table::new(title, "who");
    let columns = ["calls/s", "to throttlecrab", "quartiles", "p50: µs", "p99: µs", "CPU: µs"];
    table.header.extend(columns.map(str::to_owned));
    let base = find(lanes, Contender::Throttlecrab, streams);
    for lane in shown {
        table.rows.push(row(lane, base));
        table.notes.push(format!("{}: {}", lane.contender, lane.contender.meaning()));
    }
    table.notes.extend(
        [
            "to throttlecrab: beside that of the same round, medians of the rounds",
            "CPU: user and system time of the server's process, for a call",
        ]
        .map(str::to_owned),
    );
    table
}

fn row(lane: &Lane, base: Option<&Lane>) -> Vec<String> {
    let times = base.map(|base| ratios(&lane.per_second, &base.per_second));
    let times = times.as_deref();
    vec![
        lane.contender.to_string(),
        digits(median(&lane.per_second)),
        times.map_or("–".to_owned(), |times| format!("{}×", digits(median(times)))),
        times.map_or("–".to_owned(), |times| range(times, digits)),
        digits(median(&lane.p50)),
        digits(median(&lane.p99)),
        digits(median(&lane.cpu)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_table_for_each_number_of_streams_that_was_asked_for() {
        let lane = |contender, streams| Lane {
            per_second: vec![1000.0],
            p50: vec![10.0],
            p99: vec![20.0],
            cpu: vec![5.0],
            ..Lane::new(contender, streams, 1)
        };
        let lanes = [
            lane(Contender::Policy, 50),
            lane(Contender::Throttlecrab, 50),
            lane(Contender::Policy, 500),
        ];
        let tables = speeds(&lanes);
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].rows[0][..3], ["spillgate, policy", "1000", "1.00×"]);
        assert_eq!(tables[1].rows[0][2], "–");
    }
}
