//! In which unit answers tell a limit, and when all of it is back.

use spillgate_testing::program;
use tonic::Code;

use crate::common::server::run;
use crate::envoy::client::{Client, OVER_LIMIT, descriptor, start, with_hits, with_limit};

const UNKNOWN: i32 = 0;
const UNITS: [(&str, i32, i64); 7] = [
    ("s", 1, 1),
    ("min", 2, 60),
    ("h", 3, 3_600),
    ("day", 4, 86_400),
    ("week", 7, 7 * 86_400),
    ("30 day", 5, 30 * 86_400),
    ("365 day", 6, 365 * 86_400),
];

/// Amounts that divide none of the units into whole nanoseconds, and some that do.
const AMOUNTS: [u64; 7] = [1, 3, 7, 11, 100, 1_000, 9_973];

const ALGORITHMS: [&str; 6] = [
    "token-bucket",
    "leaky-bucket",
    "interval-bucket",
    "fixed-window",
    "first-hit-window",
    "sliding-window",
];

fn limit(name: &str, quota: &str, algorithm: &str) -> String {
    format!(
        "[[limit]]\nname = '{name}'\nmatch = {{ domain = 'edge', descriptor = {{ {name} = '*' }} }}\n\
         quota = '{quota}'\nalgorithm = '{algorithm}'\ncapacity = 64\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_told_as_it_is_written() {
    let mut policy = String::new();
    let mut expected = Vec::new();
    for (number, algorithm) in ALGORITHMS.into_iter().enumerate() {
        for (unit, code, seconds) in UNITS {
            for amount in AMOUNTS {
                let key = format!("a{number}-{amount}-{code}");
                policy.push_str(&limit(&key, &format!("{amount} per {unit}"), algorithm));
                expected.push((key, amount, code, seconds));
            }
        }
    }
    let (_home, server) = start(&policy, &[], &[]);
    let mut client = Client::to(&server).await;
    for (key, amount, code, seconds) in expected {
        // All of it at once: it is back when the unit is over, and not a second later.
        let asked = with_hits(&descriptor(&[(&*key, "v")]), amount);
        let status = client.status("edge", &asked).await;
        let message = status.current_limit.unwrap();
        assert_eq!((u64::from(message.requests_per_unit), message.unit), (amount, code), "{key}");
        let reset = status.duration_until_reset.unwrap();
        // A sliding window forgets in the next one.
        let most = if key.starts_with("a5") { 2 * seconds } else { seconds };
        assert!((0..=most).contains(&reset.seconds), "{key}: {reset:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_limit_is_not_told_to_take_a_second_longer() {
    // Seven of 14 a minute are back in 30 s, and not in 30 s and 2 ns.
    let (_home, server) = start(&limit("half", "14/min", "token-bucket"), &[], &[]);
    let mut client = Client::to(&server).await;
    let status = client.status("edge", &with_hits(&descriptor(&[("half", "v")]), 7)).await;
    assert_eq!(status.duration_until_reset.unwrap().seconds, 30);
    assert_eq!(status.limit_remaining, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_told_in_the_unit_in_which_it_is_back() {
    let policy = limit("minute", "7/s burst 420", "token-bucket")
        + &limit("none", "10/s burst 20", "token-bucket")
        + &limit("half", "6 per 30 s", "token-bucket")
        + &limit("once", "burst 5", "token-bucket");
    let (_home, server) = start(&policy, &[], &[]);
    let mut client = Client::to(&server).await;
    for (key, amount, unit) in
        [("minute", 420, 2), ("none", 20, UNKNOWN), ("half", 6, UNKNOWN), ("once", 5, UNKNOWN)]
    {
        let message =
            client.status("edge", &descriptor(&[(key, "v")])).await.current_limit.unwrap();
        assert_eq!((message.requests_per_unit, message.unit), (amount, unit), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overrides_and_limits_of_a_call_are_told_as_they_are_written() {
    let own = "[[limit.override]]\n'descriptor:user' = 'file'\nquota = '11/h'\n";
    let (_home, server) = start(&(limit("user", "7/min", "token-bucket") + own), &[], &[]);
    let bearer = format!("authorization: Bearer {}", server.token());
    let mut curl = program("curl");
    let body = r#"{"quota": "13/day"}"#;
    run(curl
        .args(["-fsS", "-X", "PUT", "-H", &bearer, "-H", "content-type: application/json"])
        .args(["--data-binary", body, &server.url("/v1/limits/user/keys/run/override")]));
    let mut client = Client::to(&server).await;
    for (user, amount, unit) in [("any", 7, 2), ("file", 11, 3), ("run", 13, 4)] {
        let status = client.status("edge", &descriptor(&[("user", user)])).await;
        let message = status.current_limit.unwrap();
        assert_eq!((message.requests_per_unit, message.unit), (amount, unit), "{user}");
    }
    for (_, unit, seconds) in UNITS {
        let asked = with_limit(&descriptor(&[("unit", &seconds.to_string())]), 7, unit);
        let status = client.status("edge", &with_hits(&asked, 7)).await;
        let message = status.current_limit.unwrap();
        assert_eq!((message.requests_per_unit, message.unit), (7, unit));
        assert_eq!(status.duration_until_reset.unwrap().seconds, seconds);
        assert_eq!(client.status("edge", &asked).await.code, OVER_LIMIT);
    }
    let unknown = [with_limit(&descriptor(&[("user", "x")]), 5, UNKNOWN)];
    let error = client.try_ask("edge", 0, &unknown).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}
