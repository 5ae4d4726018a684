//! Several logs, disorder, compression.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use spillgate_policy::Policy;
use spillgate_replay::{Input, Record, Replay, Skip, Source, Wanted};

use super::{line, options, replay, source};

const ONE: &str = "[[limit]]\nname = 'all'\nquota = '1/h'";

/// The paths of requests in the order in which they are replayed.
fn paths(sources: Vec<Source>, window: u64) -> (Vec<String>, u64) {
    let options = options(|options| options.window = window);
    let input = Input::new(sources, &Wanted::default(), options).unwrap();
    let mut paths = Vec::new();
    let each = |record: &Record<'_>| -> Result<(), std::io::Error> {
        paths.push(record.path.to_owned());
        Ok(())
    };
    let summary = input.read(each, |_| ()).unwrap();
    (paths, summary.skipped.get(&Skip::Late).map_or(0, |(count, _)| *count))
}

fn log(seconds: impl IntoIterator<Item = u64>) -> String {
    let line = |at| line(at, "203.0.113.7", &format!("GET /{at}"));
    seconds.into_iter().map(line).collect()
}

#[test]
fn several_logs_are_merged_in_the_order_of_time() {
    let sources = vec![source(log((0..5000).step_by(3))), source(log((0..5000).step_by(2)))];
    let expected: Vec<_> = (0..5000)
        .flat_map(|at| vec![format!("/{at}"); usize::from(at % 3 == 0) + usize::from(at % 2 == 0)])
        .collect();
    assert_eq!(paths(sources, 60), (expected, 0));
    // Newest first, with a gap of an hour.
    let rotated = vec![source(log(4000..5000)), source(log(0..400))];
    let expected: Vec<_> = (0..400).chain(4000..5000).map(|at| format!("/{at}")).collect();
    assert_eq!(paths(rotated, 60), (expected, 0));
}

#[test]
fn disorder_is_undone_within_the_window_and_counted_beyond_it() {
    let mixed = log([0, 50, 30, 59, 1, 100, 45, 39, 101, 1000, 2]);
    let expected = ["/0", "/1", "/30", "/45", "/50", "/59", "/100", "/101", "/1000"];
    assert_eq!(paths(vec![source(mixed)], 60), (expected.map(str::to_owned).to_vec(), 2));
}

#[test]
fn compressed_logs_are_read_also_in_parts() {
    let (first, second) = (log(0..300), log(300..500));
    let gzip = |text: &str| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let zstd = |text: &str| {
        ruzstd::encoding::compress_to_vec(
            text.as_bytes(),
            ruzstd::encoding::CompressionLevel::Fastest,
        )
    };
    let expected: Vec<_> = (0..500).map(|at| format!("/{at}")).collect();
    for compressed in
        [[gzip(&first), gzip(&second)].concat(), [zstd(&first), zstd(&second)].concat()]
    {
        assert_eq!(paths(vec![source(compressed)], 60), (expected.clone(), 0));
    }
    let whole = gzip(&first);
    let report = replay(ONE, &whole[..whole.len() / 2]);
    assert!(report.requests > 50 && report.requests < 300, "{report}");
    assert_eq!(report.notes, ["access.log ends in the middle"]);
}

#[test]
fn times_without_a_zone_are_in_the_given_one() {
    let log = "203.0.113.7:4711 [17/Nov/2026:06:32:40.655] front back/server 10/0/30/69/109 200 2750 \
               - - ---- 1/1/1/1/0 0/0 \"GET / HTTP/1.1\"\n";
    let zone = spillgate_replay::Zone::parse(b"+0200").unwrap();
    let replay = Replay::new(Policy::from_toml(ONE).unwrap());
    let report =
        replay.input(options(|options| options.zone = zone)).run(vec![source(log)], |_| ());
    assert_eq!(report.unwrap().first.as_deref(), Some("2026-11-17T04:32:40Z"));
}
