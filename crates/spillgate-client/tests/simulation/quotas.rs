//! In front of a Spillgate gate the quota is used, and next to nothing is refused.

use std::time::Duration;

use spillgate_client::ClientLayer;
use spillgate_tower::Headers;
use tower::Layer;

use crate::common::{Dice, Tally, TokioClock, capacity, distant, gated, hurry};

const TASKS: usize = 1_000;

/// A limit, and for how long it is used.
struct Case {
    algorithm: &'static str,
    quota: &'static str,
    seconds: u64,
}

const fn case(algorithm: &'static str, quota: &'static str, seconds: u64) -> Case {
    Case { algorithm, quota, seconds }
}

/// Short windows, long ones, and bursts that refill in less than the second that headers can express.
const CASES: [Case; 12] = [
    case("token-bucket", "100/s", 60),
    case("token-bucket", "100/s burst 20", 60),
    case("token-bucket", "1000/s burst 100", 20),
    case("token-bucket", "600/min", 600),
    case("leaky-bucket", "50/s burst 10", 60),
    case("fixed-window", "100/s", 60),
    case("fixed-window", "20/s", 60),
    case("fixed-window", "600/min", 600),
    case("first-hit-window", "1000 per 10 s", 300),
    case("interval-bucket", "1000 per 10 s", 300),
    case("sliding-window", "1000 per 10 s", 300),
    case("sliding-window", "600/min", 600),
];

/// The least and the most that a network takes per direction.
type Network = [Duration; 2];

const WIDE: Network = [Duration::from_millis(5), Duration::from_millis(40)];

async fn run(case: &Case, headers: Headers, own: Option<&str>) -> (Tally, u64) {
    run_over(case, headers, own, WIDE).await
}

async fn run_over(
    case: &Case,
    headers: Headers,
    own: Option<&str>,
    [least, most]: Network,
) -> (Tally, u64) {
    let clock = TokioClock::start();
    let dice = Dice::new(7);
    let time = Duration::from_secs(case.seconds);
    let all = capacity(case.quota, case.algorithm, time, clock);
    let gate = gated(case.quota, case.algorithm, headers, clock);
    let far = distant(gate, least, most, dice.clone());
    let builder = ClientLayer::builder().clock(clock).random(move || dice.roll()).max_retries(0);
    let builder = match own {
        Some(quota) => builder.quota(quota),
        None => builder,
    };
    (hurry(builder.build().unwrap().layer(far), TASKS, time).await, all)
}

fn assert_used(what: &str, (tally, all): (Tally, u64)) {
    let used = tally.passed as f64 / all as f64;
    let refused = tally.refused as f64 / tally.sent() as f64;
    println!("{what}: used {used:.4}, refused {refused:.4}");
    assert!(used >= 0.98, "{what}: {used:.4} of {all} used: {tally:?}");
    assert!(refused < 0.01, "{what}: {refused:.4} refused: {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_knows_nothing_learns_to_use_the_whole_quota() {
    for case in &CASES {
        let what = format!("{} {}", case.algorithm, case.quota);
        assert_used(&what, run(case, Headers::default(), None).await);
    }
}

#[tokio::test(start_paused = true)]
async fn next_door_the_quota_is_used() {
    let network = [0, 1].map(Duration::from_millis);
    for case in &CASES {
        let what = format!("near, {} {}", case.algorithm, case.quota);
        assert_used(&what, run_over(case, Headers::default(), None, network).await);
    }
}

/// What is in flight counts as spent: that has to be a small part of the limit, and a round trip one
/// of its window.
#[tokio::test(start_paused = true)]
async fn overseas_the_quota_is_used_if_limits_are_large_enough() {
    let network = [60, 90].map(Duration::from_millis);
    for case in CASES.iter().filter(|case| case.quota == "100/s" || case.seconds > 60) {
        if (case.algorithm, case.quota) == ("fixed-window", "100/s") {
            continue;
        }
        let what = format!("far, {} {}", case.algorithm, case.quota);
        assert_used(&what, run_over(case, Headers::default(), None, network).await);
    }
}

#[tokio::test(start_paused = true)]
async fn either_family_of_headers_is_enough() {
    let families = [
        ("RateLimit", Headers::default().x_rate_limit(false)),
        ("X-RateLimit", Headers::default().rate_limit(false)),
    ];
    for (name, headers) in families {
        for case in [&CASES[1], &CASES[5], &CASES[10]] {
            let what = format!("{name}, {} {}", case.algorithm, case.quota);
            assert_used(&what, run(case, headers, None).await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_knows_its_quota_uses_it() {
    for case in [&CASES[0], &CASES[1], &CASES[2]] {
        assert_used(case.quota, run(case, Headers::default(), Some(case.quota)).await);
    }
    // Of what it does not announce, the far side refuses what the network compresses: a smaller burst
    // leaves room for that.
    let none = Headers::none();
    assert_used("nothing announced", run(&CASES[0], none, Some("100/s burst 80")).await);
}

/// What is in flight is unused there: the README says so.
#[tokio::test(start_paused = true)]
async fn a_sliding_window_of_one_second_is_not_used_to_the_last_percent() {
    let case = case("sliding-window", "100/s", 120);
    let (tally, all) = run(&case, Headers::default(), None).await;
    let used = tally.passed as f64 / all as f64;
    println!("sliding-window 100/s: used {used:.4}, {tally:?}");
    assert!((0.93..0.98).contains(&used) && tally.refused == 0, "{used:.4} {tally:?}");
}

/// Processes that know nothing of each other.
#[tokio::test(start_paused = true)]
async fn three_clients_share_a_limit_through_what_it_announces() {
    for case in [&CASES[0], &CASES[5], &CASES[10]] {
        let (clock, time) = (TokioClock::start(), Duration::from_secs(case.seconds));
        let all = capacity(case.quota, case.algorithm, time, clock);
        let gate = gated(case.quota, case.algorithm, Headers::default(), clock);
        let clients = [1, 2, 3].map(|seed| {
            let dice = Dice::new(seed);
            let far = distant(gate.clone(), WIDE[0], WIDE[1], dice.clone());
            let layer = ClientLayer::builder().clock(clock).random(move || dice.roll());
            let client = layer.max_retries(0).build().unwrap().layer(far);
            tokio::spawn(hurry(client, TASKS / 10, time))
        });
        let mut sum = Tally::default();
        for client in clients {
            let tally = client.await.unwrap();
            sum.passed += tally.passed;
            sum.refused += tally.refused;
        }
        let (used, refused) =
            (sum.passed as f64 / all as f64, sum.refused as f64 / sum.sent() as f64);
        println!(
            "three clients, {} {}: used {used:.4}, refused {refused:.4}",
            case.algorithm, case.quota
        );
        assert!(used >= 0.85 && refused < 0.05, "{}: {used:.4} {refused:.4}", case.algorithm);
    }
}

/// What a naive client would do to the same far side.
#[tokio::test(start_paused = true)]
async fn without_pacing_nearly_everything_is_refused() {
    let clock = TokioClock::start();
    let gate = gated("100/s burst 20", "token-bucket", Headers::default(), clock);
    let far = distant(gate, Duration::from_millis(5), Duration::from_millis(40), Dice::new(7));
    let naive = tower::ServiceExt::map_err(far, |never| match never {});
    let tally = hurry(naive, TASKS, Duration::from_secs(10)).await;
    assert!(tally.refused > 50 * tally.passed, "{tally:?}");
}
