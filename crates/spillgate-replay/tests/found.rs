//! Logs as they are found: damaged, joined, of other systems, with one wrong time, and written by
//! attackers.

use std::io::{self, Cursor, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use spillgate_policy::Policy;
use spillgate_replay::{Replay, Report, Source, Zone};

use super::{line, options, replay, source};

const LOOSE: &str = "[[limit]]\nname = 'all'\nquota = '1000/s'";
const TIGHT: &str = "[[limit]]\nname = 'all'\nquota = '1/h'";

fn log(seconds: impl IntoIterator<Item = u64>) -> String {
    seconds.into_iter().map(|at| line(at, "203.0.113.7", "GET /")).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

/// Requests, skipped lines and notes.
fn read(log: impl Into<Vec<u8>>) -> (u64, u64, Vec<String>) {
    let report = replay(LOOSE, log);
    let skipped = report.skipped.iter().map(|it| it.lines).sum();
    (report.requests, skipped, report.notes)
}

#[test]
fn one_wrong_time_makes_nothing_late() {
    let wrong = log([0]).replace("17/Nov/2026", "17/Nov/2027");
    for at in [0, 1, 50, 300] {
        let mixed = log(0..at) + &wrong + &log(at..300);
        assert_eq!(read(mixed), (301, 0, vec![]), "after {at} lines");
    }
    // A quiet log, and one whose clock really was set.
    assert_eq!(read(log((0..40_000).step_by(977))).1, 0);
    assert_eq!(read(log((0..100).chain(7200..7300).chain(100..300))), (200, 200, vec![]));
}

#[test]
fn what_is_left_of_a_damaged_file_is_read_and_the_damage_is_noted() {
    let text = log(0..300);
    for (name, file) in [
        ("zeros behind", [gzip(&text), vec![0; 512]].concat()),
        ("garbage behind", [gzip(&text), b"garbage that is long enough".to_vec()].concat()),
        ("zeros behind a frame", [zstd(&text), vec![0; 100]].concat()),
    ] {
        let (requests, skipped, notes) = read(file);
        assert_eq!((requests, skipped), (300, 0), "{name}");
        assert!(notes[0].starts_with("access.log is damaged, and was read up to there"), "{name}");
    }
    let whole = [zstd(&text), zstd(&log(300..600))].concat();
    let (requests, _, notes) = read(&whole[..whole.len() - 20]);
    assert_eq!((requests, notes), (300, vec!["access.log ends in the middle".to_owned()]));
    let mut wrong_sum = gzip(&text);
    let place = wrong_sum.len() - 6;
    wrong_sum[place] ^= 1;
    assert_eq!(read(wrong_sum).0, 300);
}

#[test]
fn frames_without_data_are_skipped() {
    let skipped = b"\x50\x2a\x4d\x18\x04\0\0\0\x01\x02\x03\x04";
    let (first, second) = (log(0..100), log(100..200));
    let file = [&skipped[..], &zstd(&first), &skipped[..], &zstd(&second), &skipped[..]].concat();
    assert_eq!(read(file), (200, 0, vec![]));
}

#[test]
fn a_window_that_does_not_fit_into_memory_is_refused_with_advice() {
    let huge = [&b"\x28\xb5\x2f\xfd\x00\xff"[..], &[0; 10]].concat();
    let policy = Policy::from_toml(LOOSE).unwrap();
    let error = Replay::new(policy).run(vec![source(huge)], |_| ()).unwrap_err().to_string();
    assert!(error.contains("access.log") && error.contains("zstd -dc --long=31"), "{error}");
}

#[test]
fn what_needs_another_program_is_named() {
    for (magic, name) in [
        (&b"\xfd7zXZ\0\0"[..], "xz"),
        (b"BZh91AY", "bzip2"),
        (b"\x04\x22\x4d\x18d", "lz4"),
        (b"PK\x03\x04", "zip"),
        (b"\xff\xfe2\x000\0", "UTF-16"),
    ] {
        let error = Source::new("x", Cursor::new(magic), None).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("into `-`"), "{error}");
    }
}

/// Fails after some bytes, as a broken disk does.
struct Broken(Cursor<Vec<u8>>);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is broken")),
            count => Ok(count),
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_also_within_compression() {
    for file in [log(0..300).into_bytes(), gzip(&log(0..300)), zstd(&log(0..300))] {
        let half = file[..file.len() / 2].to_vec();
        let source = Source::new("access.log", Broken(Cursor::new(half)), None).unwrap();
        let result = Replay::new(Policy::from_toml(LOOSE).unwrap()).run(vec![source], |_| ());
        let error = result.unwrap_err().to_string();
        assert!(error.contains("access.log cannot be read"), "{error}");
        assert!(error.contains("the disk is broken"), "{error}");
    }
}

#[test]
fn marks_line_ends_and_beginnings_of_other_systems_are_read() {
    let text = log(0..50);
    assert_eq!(read(format!("\u{feff}{text}")), (50, 0, vec![]));
    assert_eq!(read(text.replace('\n', "\r\n")), (50, 0, vec![]));
    let fields = "\u{feff}#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem sc-status\n";
    let row = "2026-11-17\t04:32:40\t203.0.113.7\tGET\t/\t200\n";
    assert_eq!(read(format!("{fields}{row}")), (1, 0, vec![]));
    let syslog = |line: &str| format!("<190>Nov 17 12:00:00 web1 nginx: {line}\n");
    assert_eq!(read(text.lines().map(syslog).collect::<String>()), (50, 0, vec![]));
    let spoofed =
        "client.example a: 203.0.113.9 - - [17/Nov/2026:12:00:00 +0000] \"GET / \" 200 5\n";
    assert_eq!(read(text + spoofed), (50, 1, vec![]), "a name and a user are no beginning");
}

#[test]
fn a_log_that_begins_with_other_lines_is_recognised() {
    let other = "[2026-11-17 12:00:00.123][1][info][main] starting\n".repeat(500);
    assert_eq!(read(other.clone() + &log(0..50)), (50, 500, vec![]));
    let policy = Policy::from_toml(LOOSE).unwrap();
    let error = Replay::new(policy).run(vec![source(other)], |_| ()).unwrap_err().to_string();
    assert!(error.contains("unknown log format. First line: [2026-11-17 12:00:00.123]"), "{error}");
}

#[test]
fn a_format_that_changes_is_followed() {
    let json = |at: u64| {
        format!("{{\"time\":{},\"ip\":\"203.0.113.8\",\"path\":\"/\"}}\n", 1_794_916_800 + at)
    };
    let second: String = (300..600).map(json).collect();
    let report = replay(LOOSE, log(0..300) + &second + &log(600..900));
    assert_eq!((report.requests, report.lines, report.skipped.len()), (900, 900, 0), "{report}");
    let formats: Vec<_> = report.logs.iter().map(|log| log.format).collect();
    assert_eq!(formats, ["combined", "json", "combined"]);
    // What is no log stays none, however much there is of it.
    let garbage = "no log at all\n".repeat(1000);
    let report = replay(LOOSE, log(0..300) + &garbage + &log(300..310));
    assert_eq!((report.requests, report.skipped[0].lines), (310, 1000), "{report}");
    assert_eq!(report.skipped[0].samples.len(), 3);
}

#[test]
fn no_line_at_all_is_noted() {
    let (requests, skipped, notes) = read(log(0..20).replace("203.0.113.7", "client.example"));
    assert_eq!((requests, skipped), (0, 20));
    assert!(notes[0].starts_with("not one line was replayed"), "{notes:?}");
}

fn haproxy(client: &str, time: &str, target: &str) -> String {
    format!(
        "Nov 17 12:00:00 lb haproxy[77]: {client} [{time}.655] front back/server 10/0/30/69/109 200 2750 - - \
         ---- 1/1/1/1/0 0/0 \"GET {target} HTTP/1.1\"\n"
    )
}

#[test]
fn ports_of_haproxy_are_no_part_of_ipv6_addresses() {
    let time = |at: usize| format!("17/Nov/2026:12:00:{at:02}");
    let line = |at| haproxy(&format!("2001:db8::5:6:7:8:{}", 40_000 + at), &time(at), "/");
    let report = replay(TIGHT, (0..30).map(line).collect::<String>());
    let callers: Vec<_> = report.callers.iter().map(|it| (&*it.name, it.refused)).collect();
    assert_eq!(callers, [("ip:2001:db8::", 29)]);
}

#[test]
fn escapes_of_haproxy_are_undone() {
    let log = haproxy("203.0.113.7:1", "17/Nov/2026:12:00:00", "/caf#C3#A9/#22?a#22").repeat(2);
    let report = replay(TIGHT, log);
    assert_eq!(report.endpoints[0].name, "GET /café/\"");
}

#[test]
fn an_hour_that_is_there_twice_is_read_twice() {
    let hours = [1, 2, 2, 3].into_iter();
    let minutes = hours.flat_map(|hour| (0..60).map(move |minute| (hour, minute)));
    let time = |(hour, minute)| format!("25/Oct/2026:{hour:02}:{minute:02}:00");
    let log: String = minutes.map(|at| haproxy("203.0.113.7:1", &time(at), "/")).collect();
    let run = |zone: &str| -> Report {
        let zone = Zone::parse(zone.as_bytes()).unwrap();
        let replay = Replay::new(Policy::from_toml(LOOSE).unwrap());
        replay.input(options(|it| it.zone = zone)).run(vec![source(log.clone())], |_| ()).unwrap()
    };
    let report = run("Europe/Berlin");
    assert_eq!((report.requests, report.skipped.len()), (240, 0), "{report}");
    assert_eq!(report.first.as_deref(), Some("2026-10-24T23:00:00Z"));
    assert_eq!(report.last.as_deref(), Some("2026-10-25T02:59:00Z"));
    assert!(report.hours.iter().all(|hour| hour.allowed == 60), "{report}");
    assert_eq!(run("+02:00").skipped.len(), 1, "which an offset cannot know");
}

#[test]
fn clocks_of_several_machines_may_differ() {
    // One is five minutes ahead.
    let policy = Policy::from_toml(LOOSE).unwrap();
    let sources = vec![source(log(0..600)), source(log(300..900)), source(log([]))];
    let report = Replay::new(policy).run(sources, |_| ()).unwrap();
    assert_eq!((report.requests, report.skipped.len()), (1200, 0), "{report}");
}

#[test]
fn nothing_that_an_attacker_wrote_is_obeyed_by_any_reader() {
    let evil =
        "\u{1b}]0;owned\u{7}/<script>alert(1)</script>/\u{202e}gnp.exe\u{200b}\u{9b}2J\u{7f}";
    let log: String = (0..9).map(|at| line(at, "203.0.113.7", &format!("GET /{evil}"))).collect();
    let report = replay(TIGHT, log + "\u{1b}[2J no request \u{9b}\n");
    let is_obeyed = |it: char| it.is_control() && it != '\n' || "\u{200b}\u{202e}".contains(it);
    let (text, html) = (report.to_string(), report.to_html().unwrap());
    for shown in [&text, &html, &report.to_csv(), &report.to_json().unwrap()] {
        assert!(shown.contains("owned"), "{shown}");
        assert!(!shown.contains(is_obeyed), "{shown:?}");
    }
    assert!(!html.contains("<script"), "{html}");
    // JSON loses nothing.
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(json["endpoints"][0]["name"], format!("GET /{evil}"));
}
