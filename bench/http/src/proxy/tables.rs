use super::contender::{Case, Contender};
use super::lane::Lane;
use crate::report::{Table, digits, range};
use crate::stats::{median, ratios};

/// The lane of a contender in a case.
pub fn find(lanes: &[Lane], contender: Contender, case: Case) -> Option<&Lane> {
    lanes.iter().find(|lane| lane.contender == contender && lane.case == case)
}

/// A table for each case, with a row a contender.
pub fn speeds(lanes: &[Lane]) -> Vec<Table> {
    let of = |case| lanes.iter().filter(move |lane| lane.case == case);
    let cases = Case::ALL.into_iter().filter(|case| of(*case).next().is_some());
    cases.map(|case| speed(lanes, case, &of(case).collect::<Vec<_>>())).collect()
}

fn speed(lanes: &[Lane], case: Case, shown: &[&Lane]) -> Table {
    let title = match case {
        Case::Small => "Requests per second: 12 bytes, all pass",
        Case::Large => "Requests per second: 100 KB, all pass",
        Case::Refused => "Requests per second: nearly all refused",
    };
    let mut table = Table::new(title, "through");
    let columns = [
        "requests/s",
        "to limit_req",
        "quartiles",
        "p50: µs",
        "p99: µs",
        "to limit_req",
        "CPU: µs",
    ];
    table.header.extend(columns.map(str::to_owned));
    let base = find(lanes, Contender::NginxLimit, case);
    for lane in shown {
        table.rows.push(row(lane, base));
        table.notes.push(format!("{}: {}", lane.contender, lane.contender.meaning()));
        table.notes.extend(lane.flaws.iter().map(|flaw| format!("! {}: {flaw}", lane.contender)));
    }
    let (rate, burst) = case.quota();
    table.notes.extend([
        format!("quota of the address that all requests come from: {rate} a second, burst {burst}"),
        "to limit_req: beside `nginx limit_req` of the same round, medians of the rounds"
            .to_owned(),
        "CPU: user and system time of the proxy's processes, for a request".to_owned(),
    ]);
    table
}

fn row(lane: &Lane, base: Option<&Lane>) -> Vec<String> {
    let flaw = if lane.flaws.is_empty() { "" } else { " !" };
    let throughput = base.map(|base| ratios(&lane.throughput, &base.throughput));
    let p99 = base.map(|base| ratios(&lane.p99, &base.p99));
    let times = |ratios: &Option<Vec<f64>>| {
        ratios.as_ref().map_or("–".to_owned(), |ratios| format!("{}×", digits(median(ratios))))
    };
    vec![
        format!("{}{flaw}", lane.contender),
        digits(median(&lane.throughput)),
        times(&throughput),
        throughput.as_ref().map_or("–".to_owned(), |ratios| range(ratios, digits)),
        digits(median(&lane.p50)),
        digits(median(&lane.p99)),
        times(&p99),
        digits(median(&lane.cpu)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_how_a_contender_does_beside_limit_req() {
        let lane = |contender, throughput| Lane {
            throughput,
            p50: vec![100.0],
            p99: vec![150.0],
            cpu: vec![5.0],
            ..Lane::new(contender, Case::Small)
        };
        let base = lane(Contender::NginxLimit, vec![1000.0, 2000.0]);
        let ours = lane(Contender::Spillgate, vec![800.0, 1600.0]);
        let cells = row(&ours, Some(&base));
        assert_eq!(cells[..3], ["spillgate proxy", "1200", "0.80×"]);
        assert_eq!(cells[5..], ["150", "1.00×", "5.00"]);
        assert_eq!(row(&ours, None)[2], "–");
        assert_eq!(speeds(&[base, ours])[0].rows.len(), 2);
    }
}
