//! Replays of logs, one module per subject.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod compared;

mod formats;
mod found;
mod identical;
mod memory;
mod order;
mod reports;
mod suggested;
mod written;

use std::io::Cursor;

use spillgate_policy::Policy;
use spillgate_replay::{InputOptions, Replay, Report, Source};

/// A line in the combined format, so many seconds after 12:00:00.
fn line(seconds: u64, ip: &str, request: &str) -> String {
    let (hour, minute, second) = (12 + seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{ip} - - [17/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] \"{request} HTTP/1.1\" 200 5 \
         \"-\" \"curl/8\"\n"
    )
}

fn source(text: impl Into<Vec<u8>>) -> Source {
    Source::new("access.log", Cursor::new(text.into()), None).unwrap()
}

fn replay(policy: &str, log: impl Into<Vec<u8>>) -> Report {
    let replay = Replay::new(Policy::from_toml(policy).unwrap());
    replay.run(vec![source(log)], |_| ()).unwrap()
}

fn options(change: impl FnOnce(&mut InputOptions)) -> InputOptions {
    let mut options = InputOptions::default();
    change(&mut options);
    options
}
