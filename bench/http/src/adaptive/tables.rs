use super::lane::{Lane, Round};
use super::subject::Place;
use crate::report::{Table, digits};
use crate::stats::median;

/// One table for each kind of service.
pub fn overloads(lanes: &[Lane]) -> Vec<Table> {
    let of = |place| lanes.iter().filter(move |lane| lane.subject.place == place);
    let places = [Place::Axum, Place::Python].into_iter();
    places.filter_map(|place| overload(place, &of(place).collect::<Vec<_>>())).collect()
}

fn overload(place: Place, lanes: &[&Lane]) -> Option<Table> {
    let first = lanes.first()?;
    let title = match place {
        Place::Axum => "Five times the capacity: an axum service with the layer",
        Place::Python => "Five times the capacity: Python's HTTP server behind `spillgate proxy`",
    };
    let mut table = Table::new(title, "limit");
    let columns = [
        "offered",
        "served/s",
        "of capacity",
        "in time/s",
        "of capacity",
        "refused/s",
        "failed/s",
        "p50: ms",
        "p99: ms",
        "to alone",
        "recovery: s",
    ];
    table.header.extend(columns.map(str::to_owned));
    table.rows = lanes.iter().map(|lane| row(lane)).collect();
    let value = |value: fn(&Round) -> f64| digits(median(&first.each(value)));
    let (p50, p99) = (value(|round| round.baseline.p50), value(|round| round.baseline.p99));
    table.notes.extend([
        format!("capacity: {}/s, with three requests at once", value(|round| round.baseline.capacity)),
        format!("alone: p50 {p50} ms, p99 {p99} ms, with one request at a time"),
        format!("in time: within {} ms, ten times the p50 alone", value(|round| round.baseline.deadline())),
        "offered: requests that clients sent, in capacities. They wait for their answers, so that without a limit they send fewer".to_owned(),
        "p50 and p99: of what was served, as clients see it".to_owned(),
        "recovery: from the end of the overload until 95 % of the requests of three seconds were served in time; half the capacity is asked for then".to_owned(),
    ]);
    Some(table)
}

fn row(lane: &Lane) -> Vec<String> {
    let value = |value: fn(&Round) -> f64| digits(median(&lane.each(value)));
    vec![
        lane.subject.limit.to_string(),
        format!("{}×", value(|round| round.overload.offered / round.baseline.capacity)),
        value(|round| round.overload.served),
        value(Round::served_share),
        value(|round| round.overload.useful),
        value(|round| round.overload.useful / round.baseline.capacity),
        value(|round| round.overload.refused),
        value(|round| round.overload.failed),
        value(|round| round.overload.p50),
        value(|round| round.overload.p99),
        format!("{}×", value(Round::p99_ratio)),
        value(|round| round.recovery),
    ]
}
