use std::fmt::Write;
use std::time::Duration;

use spillgate::{Start, Verdict};

use super::{MIDNIGHT, RECORDINGS, Recording};

const HEADER: &str = "\
# Recorded answers of the conformance suite, for languages other than Rust. Tab-separated.
#
# recording TITLE ALGORITHM START QUOTA LIMIT
#   begins with a new limiter, built when its clock reads 1699920000000000000; all calls are of one caller.
# row AT_NS CALL AMOUNT VERDICT REMAINING RETRY_AFTER_NS RESET_AFTER_NS WAIT_NS
#   is a call at that time, which may be earlier than the one before, and the exact answer; - for never.
#   After a debit, a refund and a reset, the answer is that of a peek at a cost of 0.
";

/// All recorded answers as tab-separated text, for languages other than Rust.
#[must_use]
pub fn recorded_tsv() -> String {
    let mut text = HEADER.to_owned();
    for recording in RECORDINGS.into_iter().flatten() {
        // Writing to a string does not fail.
        let _ = recording.write_tsv(&mut text);
    }
    text
}

impl Recording {
    fn write_tsv(&self, text: &mut String) -> std::fmt::Result {
        let Self { title, kind, quota, start, rows } = self;
        let start = if *start == Start::Empty { "empty" } else { "full" };
        let limit = self.limit().quota.burst();
        writeln!(text, "recording\t{title}\t{kind}\t{start}\t{quota}\t{limit}")?;
        for (after, op, answer) in *rows {
            let observed = answer.observed(limit);
            let verdict = match observed.verdict {
                Verdict::Allowed => "allowed",
                Verdict::Denied { .. } => "denied",
                _ => "never",
            };
            // "check 1", but for "reset".
            let call = op.to_string();
            let (call, amount) = call.split_once(' ').unwrap_or((&call, "0"));
            let (at, left) = ((MIDNIGHT + *after).as_nanos(), observed.remaining);
            let (retry, reset) = (nanos(observed.retry_after), nanos(observed.reset_after));
            let wait = observed.wait.as_nanos();
            writeln!(
                text,
                "row\t{at}\t{call}\t{amount}\t{verdict}\t{left}\t{retry}\t{reset}\t{wait}"
            )?;
        }
        Ok(())
    }
}

fn nanos(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.as_nanos().to_string())
}
