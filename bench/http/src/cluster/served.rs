//! What does a whole server cost beside the bare script: client, server and Redis share a machine.

use super::asker::{ask, write};
use super::bed::Bed;
use crate::Result;
use crate::report::{Table, digits, progress, range};
use crate::results::Series;
use crate::settings::Settings;
use crate::standalone::Program;
use crate::stats::{median, ratios};

/// So many calls under way on each of 50 connections.
const PIPELINES: [usize; 2] = [1, 16];

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cluster/policy.toml");

/// What came of each round, per second.
pub struct Served {
    pipeline: usize,
    server: Vec<f64>,
    script: Vec<f64>,
}

/// Asks the server and Redis by turns.
pub fn measure(bed: &Bed, settings: &Settings) -> Result<Vec<Served>> {
    if !settings.wants("cluster served") {
        return Ok(Vec::new());
    }
    let store = format!("redis://127.0.0.1:{}", bed.redis.resp);
    let more = ["--store", &store, "--store-command-timeout", "1s"];
    let server = Program::serve(&settings.programs, POLICY, &more)?;
    let (sha, argument) = (bed.bare.script.as_bytes(), &bed.bare.calls[0].1);
    let check = |number: u64, output: &mut Vec<u8>| {
        write(output, &[b"SG.CHECK", b"strict", format!("{number:012}").as_bytes()]);
    };
    let script = |number: u64, output: &mut Vec<u8>| {
        let key = format!("bare:{{{number:032x}}}");
        write(output, &[b"EVALSHA", sha, b"1", key.as_bytes(), argument]);
    };
    let time = settings.turn_of_cluster();
    let mut served = Vec::new();
    for pipeline in PIPELINES {
        let mut lane = Served { pipeline, server: Vec::new(), script: Vec::new() };
        for round in 0..settings.rounds {
            progress(format_args!("cluster: served, pipeline {pipeline}, round {}", round + 1));
            lane.server.push(ask(server.resp, pipeline, time, check)?);
            lane.script.push(ask(bed.redis.resp, pipeline, time, script)?);
        }
        served.push(lane);
    }
    Ok(served)
}

pub fn table(served: &[Served]) -> Table {
    let mut table = Table::new("A strict limit through `spillgate serve`", "pipeline");
    let header = ["server: per second", "bare script: per second", "server to it", "quartiles"];
    table.header.extend(header.map(str::to_owned));
    for lane in served {
        let ratios = ratios(&lane.server, &lane.script);
        table.rows.push(vec![
            lane.pipeline.to_string(),
            digits(median(&lane.server)),
            digits(median(&lane.script)),
            digits(median(&ratios)),
            range(&ratios, digits),
        ]);
    }
    table.notes.push(
        "50 connections with so many calls under way on each, about 100,000 callers: `SG.CHECK` of \
         the server, and the script that this runs, asked of Redis by the same client"
            .to_owned(),
    );
    table
}

impl Served {
    pub fn into_series(self) -> [Series; 2] {
        let case = format!("cluster served pipeline {}", self.pipeline);
        let series = |subject: &str, rounds| Series {
            case: case.clone(),
            subject: subject.to_owned(),
            unit: "1/s",
            rounds,
        };
        [series("spillgate serve", self.server), series("bare script", self.script)]
    }
}
