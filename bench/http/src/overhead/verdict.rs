use super::lane::{Lane, find, rivals};
use crate::kind::Kind;
use crate::results::{Bound, Promise};
use crate::stats::median;

/// The most that the layer may cost a request: µs of CPU time.
const MOST: f64 = 1.0;

/// Of every server of Spillgate: it costs little, and less than the other limiter's.
pub fn promises(lanes: &[Lane]) -> Vec<Promise> {
    let promise = |text: String, differences: Vec<f64>, bound| Promise {
        text,
        value: median(&differences),
        bound,
        unit: "µs",
    };
    let Some(plain) = find(lanes, Kind::Plain) else { return Vec::new() };
    let ours = lanes.iter().filter(|lane| lane.kind.rival().is_some());
    let costs = ours.map(|lane| {
        let text = format!("{}: CPU per request over {}", lane.kind, plain.kind);
        promise(text, lane.cpu_over(plain), Bound::AtMost(MOST))
    });
    let wins = rivals(lanes).map(|(ours, theirs)| {
        let text = format!("{}: CPU per request over {}", ours.kind, theirs.kind);
        promise(text, ours.cpu_over(theirs), Bound::Below(0.0))
    });
    costs.chain(wins).collect()
}
