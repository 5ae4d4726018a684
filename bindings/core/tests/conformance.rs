//! The recorded answers of the conformance suite: as a file for every language, and of this core.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use spillgate::{AlgorithmKind, ManualClock, Start, Timestamp};
use spillgate_bindings::{AnyClock, Limiter, Settings};
use spillgate_testing::{Limit, Observed, Subject, conformance};

#[test]
fn the_file_of_recorded_answers_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/recorded.tsv");
    let recorded = conformance::recorded_tsv();
    if std::env::var_os("SPILLGATE_UPDATE").is_some() {
        std::fs::write(&path, &recorded).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == recorded,
        "{} is not what the suite says; run `SPILLGATE_UPDATE=1 cargo test -p spillgate-bindings`",
        path.display()
    );
}

/// A limiter as a binding builds it, from texts.
struct ByText(Arc<Limiter>);

impl ByText {
    fn at(&self, now: Timestamp) -> &Limiter {
        match self.0.clock() {
            AnyClock::Manual(clock) => clock.set(now),
            AnyClock::System => panic!("the clock is a manual one"),
        }
        &self.0
    }
}

impl Subject for ByText {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.at(now).check_n(key.as_bytes(), cost).into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.at(now).peek_n(key.as_bytes(), cost).into()
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        let _ = self.at(now).debit_n(key.as_bytes(), amount);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.at(now).refund_n(key.as_bytes(), amount);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.at(now).reset(key.as_bytes());
    }
}

fn by_text(limit: &Limit) -> ByText {
    let (quota, start) = (limit.quota.to_string(), limit.start == Start::Empty);
    let settings = Settings {
        quota: Some(&quota),
        algorithm: Some(limit.kind.name()),
        start: Some(if start { "empty" } else { "full" }),
        clock: Some(ManualClock::new(limit.born)),
        ..Settings::default()
    };
    ByText(settings.build().unwrap())
}

#[test]
fn every_algorithm_answers_as_recorded() {
    for kind in AlgorithmKind::ALL {
        conformance::recorded(kind, by_text);
    }
}
