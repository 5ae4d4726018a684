//! Answers worked out by hand, as tables.

mod answer;
mod fixed_window;
mod interval_bucket;
mod leaky_bucket;
mod sliding_window;
mod token_bucket;
mod token_bucket_extremes;
mod tsv;

use std::time::Duration;

use spillgate::{AlgorithmKind, Start, Timestamp};

use self::answer::Answer;
pub use self::tsv::recorded_tsv;
use super::{Call, Op};
use crate::{Limit, Subject};

/// Calls of one caller, and the answers to them.
struct Recording {
    title: &'static str,
    kind: AlgorithmKind,
    quota: &'static str,
    start: Start,
    /// When, counted from [`MIDNIGHT`]; what; and the answer. For calls without an
    /// answer of their own, that of a peek after them.
    rows: &'static [(Duration, Op, Answer)],
}

/// A moment at which windows of a second, a minute and a day begin, and which is a
/// multiple of every step in which the buckets of these tables keep time.
const MIDNIGHT: Timestamp = Timestamp::from_secs(1_699_920_000);

const RECORDINGS: [&[Recording]; 6] = [
    token_bucket::RECORDINGS,
    token_bucket_extremes::RECORDINGS,
    leaky_bucket::RECORDINGS,
    interval_bucket::RECORDINGS,
    fixed_window::RECORDINGS,
    sliding_window::RECORDINGS,
];

/// Compares every recorded answer of one kind.
///
/// # Panics
///
/// If an answer differs.
pub fn recorded<S: Subject>(kind: AlgorithmKind, make: impl Fn(&Limit) -> S) {
    let recordings = RECORDINGS.into_iter().flatten().filter(|recording| recording.kind == kind);
    for recording in recordings {
        let limit = recording.limit();
        recording.compare(limit.quota.burst(), &mut make(&limit));
    }
}

/// A recording under a quota of which new callers have all.
const fn full(kind: AlgorithmKind, quota: &'static str, title: &'static str) -> Recording {
    Recording { title, kind, quota, start: Start::Full, rows: &[] }
}

/// A recording under a quota of which new callers have nothing.
const fn empty(kind: AlgorithmKind, quota: &'static str, title: &'static str) -> Recording {
    Recording { start: Start::Empty, ..full(kind, quota, title) }
}

impl Recording {
    const fn rows(self, rows: &'static [(Duration, Op, Answer)]) -> Self {
        Self { rows, ..self }
    }

    fn limit(&self) -> Limit {
        let quota = match self.quota.parse() {
            Ok(quota) => quota,
            Err(error) => panic!("{}: {error:#}", self.title),
        };
        Limit { kind: self.kind, quota, start: self.start, born: MIDNIGHT }
    }

    fn compare(&self, burst: u64, subject: &mut impl Subject) {
        for (index, (after, op, answer)) in self.rows.iter().enumerate() {
            let call = Call { at: MIDNIGHT + *after, key: "ann", op: *op };
            let (observed, expected) = (call.make(subject), answer.observed(burst));
            let Self { title, quota, .. } = self;
            assert!(
                observed == expected,
                "{title}, \"{quota}\", row {}: {op} after {after:?}\
                 \n  observed {observed}\n  expected {expected}",
                index + 1,
            );
        }
    }
}
