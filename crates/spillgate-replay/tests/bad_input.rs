//! Lines that are no requests.

use spillgate::Timestamp;
use spillgate_policy::Policy;
use spillgate_replay::{MAX_LINE, Replay};

use super::{line, options, source};

#[test]
fn bad_lines_are_counted_sampled_and_skipped() {
    let good = line(0, "203.0.113.7", "GET /");
    let mut log = good.repeat(20).into_bytes();
    let bad = |request: &str| good.replace("GET / HTTP/1.1", request);
    let add: Vec<Vec<u8>> = vec![
        good.as_bytes()[..40].to_vec(),
        b"\n\x00\xff\xfe\x16\x03\x01 [ \" \\".to_vec(),
        [b"\n".to_vec(), vec![b'x'; 3 * MAX_LINE], b"\n".to_vec()].concat(),
        bad(r"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03").into_bytes(),
        bad("-").into_bytes(),
        bad("").into_bytes(),
        good.replace("17/Nov/2026", "17/Nov/1971").into_bytes(),
        good.replace("17/Nov/2026", "17/Nov/2093").into_bytes(),
        good.replace("17/Nov/2026", "99/Foo/2026").into_bytes(),
        good.replace("203.0.113.7", "client.example.com").into_bytes(),
        good.as_bytes().to_vec(),
    ];
    add.iter().for_each(|bytes| log.extend_from_slice(bytes));
    let policy = Policy::from_toml("[[limit]]\nname = 'all'\nquota = '5/h'").unwrap();
    let latest = Timestamp::from_secs(1_800_000_000);
    let input = options(|options| options.latest = latest);
    let report = Replay::new(policy).input(input).run(vec![source(log)], |_| ()).unwrap();
    assert_eq!((report.requests, report.allowed, report.refused), (21, 5, 16), "{report}");
    let skipped: Vec<_> = report.skipped.iter().map(|it| (it.reason, it.lines)).collect();
    let expected = [
        ("not in the format of the log", 2),
        ("longer than 65,535 bytes", 1),
        ("no time between 2000 and today", 3),
        ("no client address", 1),
        ("not an HTTP request", 3),
    ];
    assert_eq!(skipped, expected);
    for sample in report.skipped.iter().flat_map(|it| &it.samples) {
        assert!(
            sample.len() < 800
                && sample.bytes().all(|byte| (32..127).contains(&byte) || byte > 127)
        );
    }
}

#[test]
fn an_unknown_format_and_an_unreadable_file_are_errors_that_name_the_log() {
    let policy = || Policy::from_toml("[[limit]]\nname = 'all'\nquota = '5/h'").unwrap();
    let error = Replay::new(policy()).run(vec![source("hello\nworld\n")], |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("access.log: unknown log format. First line: hello"));
    let report = Replay::new(policy()).run(vec![source("")], |_| ()).unwrap();
    assert_eq!((report.lines, report.requests), (0, 0));
    assert!(report.to_string().contains("requests") && report.to_html().is_ok());
}
