//! What adaptive limits look at in a request.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::adaptive::Priority;

use crate::key::{Key, Value};
use crate::policy::identity::Sender;
use crate::policy::priority::Classified;
use crate::policy::reads::REQUEST_START;
use crate::request_view::only;
use crate::{Policy, RequestView};

/// What adaptive limits look at in a question.
#[derive(Clone, Copy, Default)]
#[expect(missing_debug_implementations, reason = "nobody outside sees one")]
pub struct Asked {
    /// How much it matters; `None` if the policy does not say.
    pub(in crate::gate) priority: Option<Priority>,
    /// How long it has waited since it came to the first proxy, if a trusted one says so.
    pub(in crate::gate) queue_wait: Option<Duration>,
}

/// Who asks: a gate, at a time.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "nobody outside sees one")]
pub struct Asking<'g> {
    pub(in crate::gate) policy: &'g Policy,
    /// Gives callers their levels.
    pub(in crate::gate) levels: &'g RandomState,
    pub(in crate::gate) now: Timestamp,
}

impl Asked {
    /// What a request says.
    pub(in crate::gate) fn of_request(
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        Asking { policy, levels, now }: Asking<'_>,
    ) -> Self {
        let priority = policy.priorities.as_ref().map(|_| {
            let Classified { class, .. } = policy.classify(request, sender);
            Priority::of_caller(class, caller_hash(sender, levels), now)
        });
        let start = only(request.headers(), &REQUEST_START).filter(|_| sender.from_trusted);
        let queue_wait = start.and_then(|start| queue_wait(start.as_bytes(), now));
        Self { priority, queue_wait }
    }

    /// What a question says that is not about a request.
    pub(in crate::gate) fn by_name(policy: &Policy) -> Self {
        let priorities = policy.priorities.as_ref();
        let priority = priorities.map(|it| Priority::new(it.default, Priority::LEVELS / 2));
        Self { priority, queue_wait: None }
    }

    pub(in crate::gate) fn priority(&self) -> Priority {
        self.priority.unwrap_or_default()
    }
}

/// A hash of who is calling, which nobody outside can compute.
fn caller_hash(sender: &Sender<'_>, levels: &RandomState) -> u64 {
    let mut key = Key::global();
    key.push(Value::from(&sender.who), true);
    levels.hash_one(key.as_bytes())
}

/// Further ahead than this, another clock is not ours.
const AHEAD: Duration = Duration::from_secs(1);

/// Nobody waits longer for a proxy.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How long ago a time of day was: `t=1700000000.123`, or seconds, milliseconds or microseconds
/// since the epoch. `None` if it is no such time, or cannot be right.
fn queue_wait(text: &[u8], now: Timestamp) -> Option<Duration> {
    let start = Timestamp::from_nanos(epoch_nanos(std::str::from_utf8(text).ok()?)?);
    let (wait, ahead) = (now.since(start), start.since(now));
    (ahead <= AHEAD && wait <= LONGEST_WAIT).then_some(wait)
}

/// Nanoseconds since the epoch, by how large the number is.
fn epoch_nanos(text: &str) -> Option<u64> {
    let text = text.trim().trim_start_matches("t=");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| {
        !digits.is_empty() && digits.len() < 20 && digits.bytes().all(|it| it.is_ascii_digit())
    };
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let unit: u64 = match whole {
        1_000_000_000..1_000_000_000_000 => 1_000_000_000,
        1_000_000_000_000..1_000_000_000_000_000 => 1_000_000,
        1_000_000_000_000_000..1_000_000_000_000_000_000 => 1_000,
        _ => return None,
    };
    // Nine digits are nanoseconds of a second.
    let digits: u64 = format!("{fraction:0<9.9}").parse().ok()?;
    whole.checked_mul(unit)?.checked_add(digits.checked_mul(unit)? / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 25 ms after 1700000000.123.
    const NOW: Timestamp = Timestamp::from_nanos(1_700_000_000_148_000_000);

    #[test]
    fn a_request_start_is_read_in_the_formats_of_proxies() {
        for text in [
            "t=1700000000.123",
            "1700000000.123",
            "1700000000.123000",
            "t=1700000000123",
            "1700000000123",
            "t=1700000000123000",
            " 1700000000123000 ",
            "1700000000123.0",
        ] {
            let wait = queue_wait(text.as_bytes(), NOW);
            assert_eq!(wait, Some(Duration::from_millis(25)), "{text}");
        }
        assert_eq!(queue_wait(b"1700000000", NOW), Some(Duration::from_millis(148)));
    }

    #[test]
    fn a_request_start_that_cannot_be_right_is_no_sample() {
        for text in [
            "",
            "t=",
            "now",
            "-1700000000",
            "1700000000.",
            ".5",
            "1.7e9",
            "12",
            "1600000000",
            "1700000002",
            "1700000000.1.2",
            "t=t",
            "99999999999999999999999",
            "1700000000,123",
            "9999999999999999999",
        ] {
            assert_eq!(queue_wait(text.as_bytes(), NOW), None, "{text}");
        }
        assert_eq!(queue_wait(b"\xff", NOW), None);
    }

    #[test]
    fn a_clock_that_is_slightly_ahead_waited_for_nothing() {
        assert_eq!(queue_wait(b"1700000000.900", NOW), Some(Duration::ZERO));
    }
}
