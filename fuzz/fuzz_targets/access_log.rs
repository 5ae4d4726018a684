//! Any text as a log, in any format: no panic, and every line is either replayed or counted as skipped.
#![no_main]

use std::io::{self, Cursor};

use http::HeaderName;
use libfuzzer_sys::fuzz_target;
use spillgate_replay::{Input, InputOptions, LogFormat, Parser, Record, Source, Wanted, Zone};

const FORMATS: [&str; 8] =
    ["combined", "vhost_combined", "envoy", "haproxy", "alb", "w3c", "json", "csv"];

fuzz_target!(|log: (u8, &[u8])| {
    let (format, text) = log;
    let names = ["user-agent", "x-forwarded-for", "referer"].map(HeaderName::from_static);
    let wanted = Wanted::new(&names);
    let format =
        FORMATS.get(usize::from(format)).map(|name| LogFormat::from_name(name).expect("a name"));
    if let Some(format) = format {
        let mut parser = Parser::new(format, &wanted, Zone::default());
        for line in text.split(|byte| *byte == b'\n') {
            if let Ok(Some(record)) = parser.parse(line) {
                assert!(!record.path.contains(['?', '#']), "{record:?}");
                assert!(!record.method.is_empty(), "{record:?}");
            }
        }
    }
    let mut options = InputOptions::default();
    options.format = format;
    let source = Source::new("fuzz", Cursor::new(text.to_vec()), None);
    let Ok(Ok(input)) = source.map(|source| Input::new(vec![source], &wanted, options)) else {
        return;
    };
    let (mut replayed, mut last) = (0, 0);
    let each = |record: &Record<'_>| -> Result<(), io::Error> {
        assert!(record.time.as_nanos() >= last, "time goes back");
        last = record.time.as_nanos();
        replayed += 1;
        Ok(())
    };
    if let Ok(summary) = input.read(each, |_| ()) {
        let skipped: u64 = summary.skipped.values().map(|(count, _)| count).sum();
        assert!(replayed + skipped <= summary.lines);
    }
});
