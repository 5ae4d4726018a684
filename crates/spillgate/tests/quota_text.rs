//! Quotas as text.

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate::Quota;
use spillgate_testing::strategy;

/// Texts that are no quotas, the faulty part, and what the message must say.
const BAD: &[(&str, &str, &[&str])] = &[
    ("", "", &["ends too early", "amount"]),
    ("   ", "", &["ends too early", "amount"]),
    ("10", "", &["ends too early", "\"/\" or \"per\""]),
    ("10/", "", &["ends too early", "unit of time"]),
    ("10 per", "", &["ends too early", "unit of time"]),
    ("/s", "/", &["\"/\" is not a number", "amount"]),
    ("ten/s", "ten", &["\"ten\" is not a number", "amount"]),
    ("-1/s", "-", &["\"-\" is not a number"]),
    ("10 s", "s", &["\"s\"", "\"/\" or \"per\""]),
    ("0/s", "0/s", &["amount of 0", "at least 1"]),
    ("1 per 0 s", "1 per 0 s", &["period of 0", "at least 1 ns"]),
    ("10/s burst", "", &["ends too early", "number after \"burst\""]),
    ("10/s burst 0", "burst 0", &["burst of 0", "at least 1"]),
    ("burst 0", "burst 0", &["burst of 0", "at least 1"]),
    ("burst", "", &["ends too early", "number after \"burst\""]),
    ("burst ten", "ten", &["\"ten\" is not a number"]),
    ("10/fortnight", "fortnight", &["unknown unit \"fortnight\"", "s, min, h, day or week"]),
    ("0.5/s", "0.5", &["\"0.5\" is not a whole number", "1 per 2 s"]),
    ("10/s extra", "extra", &["unexpected \"extra\"", "burst N"]),
    ("10/s burst 5 burst 6", "burst", &["unexpected \"burst\""]),
    ("10/s,", ",", &["unexpected \",\""]),
    ("99999999999999999999/s", "99999999999999999999", &["too large", "4611686018427387903"]),
    ("10/s burst 99999999999999999999", "99999999999999999999", &["too large"]),
    ("10/s burst 9_000_000_000_000_000_000", "burst 9_000_000_000_000_000_000", &["146 years"]),
    ("burst 5_000_000_000_000_000_000", "burst 5_000_000_000_000_000_000", &["too large"]),
    ("1 per 200000 weeks", "200000 weeks", &["too long a period", "146 years"]),
    ("1 per 10000 weeks", "1 per 10000 weeks", &["too long", "146 years"]),
    ("2000000000/s", "2000000000/s", &["more than one a nanosecond", "1000000000"]),
];

#[test]
fn a_bad_quota_is_refused_with_a_reason_that_points_at_the_fault() {
    for (text, faulty, reasons) in BAD {
        let error = text.parse::<Quota>().unwrap_err();
        assert!(error.is_quota(), "{text:?}: {error}");
        let message = error.to_string();
        for reason in *reasons {
            assert!(message.contains(reason), "{text:?}: {message:?} lacks {reason:?}");
        }
        assert_eq!(text.get(error.span().unwrap()), Some(*faulty), "{text:?}: {message:?}");
    }
}

/// Texts that are the same quota, the first of them as it is printed.
const SAME: &[&[&str]] = &[
    &["10/s", "10 / s", "10 per s", "10 per 1 s", "10 per second", "10/sec", " 10/s burst 10 "],
    &["10/s burst 20", "10 per 1000 ms burst 20", "10/s  burst  2_0"],
    &["100/min", "100/m", "100 per minute", "1_00 per 60 seconds"],
    &["1 per 2 s", "1 per 2000 milliseconds"],
    &["5/us", "5/µs", "5/μs", "5 per microsecond", "5 per 1000 ns"],
    &["3/h", "3/hr", "3 per hour", "3 per 60 mins"],
    &["1/day", "1/d", "1 per 24 h", "1 per 1 days"],
    &["1/week", "1/w", "1 per 7 days", "1 per weeks"],
    &["burst 7", " burst 0_7"],
];

#[test]
fn a_quota_can_be_written_in_several_ways_and_is_printed_in_one() {
    for texts in SAME {
        for text in *texts {
            let quota: Quota = text.parse().unwrap();
            assert_eq!(quota.to_string(), texts[0], "{text:?}");
        }
    }
}

/// Parts of quotas, whole and broken.
const PARTS: &[&str] = &[
    "1",
    "10",
    "0",
    "0.5",
    "_",
    "1_000",
    "99999999999999999999",
    "/",
    "per",
    "s",
    "ms",
    "µs",
    "day",
    "week",
    "burst",
    "fortnight",
    " ",
    "  ",
    "\t",
    "-",
    "…",
    "\u{a0}",
    "é",
];

fn near_quotas() -> impl Strategy<Value = String> {
    vec(proptest::sample::select(PARTS), 0..10).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(strategy::cases(20_000))]

    #[test]
    fn what_is_printed_is_read_back(quota in strategy::quotas()) {
        prop_assert_eq!(quota.to_string().parse(), Ok(quota));
    }

    #[test]
    fn any_text_is_a_quota_or_an_error_inside_the_text(
        text in prop_oneof![3 => near_quotas(), 1 => any::<String>()]
    ) {
        match text.parse::<Quota>() {
            Ok(quota) => prop_assert_eq!(quota.to_string().parse(), Ok(quota)),
            Err(error) => {
                prop_assert!(text.get(error.span().unwrap()).is_some(), "{error:?}");
                prop_assert!(!error.to_string().is_empty());
                // Pointing at the fault must not fail either, wherever it is.
                let (long, short) = (format!("{error:#}"), error.to_string());
                prop_assert!(long.starts_with(&short));
            }
        }
    }
}
