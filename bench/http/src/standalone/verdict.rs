use super::lane::{Lane, Way};
use super::program::Program;
use crate::results::{Bound, Promise};
use crate::stats::median;

/// Who is promised to answer how many times as many requests as whom.
const PROMISES: [(Way, &str, &str, f64); 6] = [
    (Way::Resp { pipeline: 1 }, "spillgate CL.THROTTLE", "redis GET", 0.95),
    (Way::Resp { pipeline: 1 }, "spillgate CL.THROTTLE", "redis GET, found", 0.95),
    (Way::Resp { pipeline: 16 }, "spillgate CL.THROTTLE", "redis GET", 0.8),
    (Way::Resp { pipeline: 16 }, "spillgate CL.THROTTLE", "redis GET, found", 0.8),
    (Way::Resp { pipeline: 16 }, "spillgate CL.THROTTLE", "throttlecrab THROTTLE", 5.0),
    (Way::Http, "spillgate /v1/check", "throttlecrab /throttle", 1.3),
];

pub fn promises(lanes: &[Lane]) -> Vec<Promise> {
    let find = |way, name| lanes.iter().find(|lane| lane.way == way && lane.contender.name == name);
    let promise = |(way, ours, theirs, least)| {
        let times = find(way, ours)?.times(find(way, theirs)?);
        let text = format!("{way}: {ours} beside {theirs}");
        Some(Promise { text, value: median(&times), bound: Bound::AtLeast(least), unit: "×" })
    };
    PROMISES.into_iter().filter_map(promise).collect()
}

/// Each of Spillgate's with each of the others that are asked in the same way.
pub fn rivals(lanes: &[Lane]) -> impl Iterator<Item = (&Lane, &Lane)> {
    let is_ours = |lane: &&Lane| lane.contender.program == Program::Spillgate;
    lanes.iter().filter(is_ours).flat_map(move |ours| {
        let theirs = lanes.iter().filter(move |lane| lane.way == ours.way && !is_ours(lane));
        theirs.map(move |theirs| (ours, theirs))
    })
}
