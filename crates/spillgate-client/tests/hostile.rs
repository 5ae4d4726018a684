//! Far sides that lie: they can neither stall a client nor make it rush.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, Response, StatusCode};
use proptest::prelude::*;
use spillgate::{Clock, Quota, Timestamp};
use spillgate_client::ClientLayer;
use spillgate_testing::strategy::cases;
use tower::{Layer, ServiceExt};

use crate::common::{Body, Dice, Far, TokioClock, distant, far, get, hurry};

type Arrivals = Arc<Mutex<Vec<Timestamp>>>;

/// A far side that answers every request with one of these sets of headers, in turn.
fn saying(clock: TokioClock, answers: Vec<(u16, Vec<(&'static str, String)>)>) -> (Far, Arrivals) {
    let arrivals = Arrivals::default();
    let seen = Arc::clone(&arrivals);
    let service = far(move |_| {
        let mut seen = seen.lock().unwrap();
        let (status, headers) = &answers[seen.len() % answers.len()];
        seen.push(clock.now());
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::from_u16(*status).unwrap();
        for (name, value) in headers {
            response.headers_mut().append(*name, HeaderValue::from_str(value).unwrap());
        }
        std::future::ready(response)
    });
    (service, arrivals)
}

/// Panics if more arrived in some time than a quota allows, be it `slack` later than it was sent.
fn assert_within(quota: &str, arrivals: &[Timestamp], slack: Duration) {
    let quota: Quota = quota.parse().unwrap();
    for (begin, first) in arrivals.iter().enumerate() {
        for (end, last) in arrivals.iter().enumerate().skip(begin) {
            let time = last.since(*first) + slack;
            let most = quota.burst() + (quota.rate() * time.as_secs_f64()) as u64 + 1;
            let count = (end - begin + 1) as u64;
            assert!(count <= most, "{count} in {time:?}, {most} allowed");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_in_the_year_9999_stops_the_client_for_an_hour_at_most() {
    for headers in [
        vec![
            ("x-ratelimit-limit", "10".to_owned()),
            ("x-ratelimit-remaining", "0".into()),
            ("x-ratelimit-reset", "253402300799".into()),
        ],
        vec![("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT".into())],
        vec![("retry-after", "99999999999999999999".into())],
        vec![("ratelimit", "\"a\";r=0;t=999999999999999".into())],
    ] {
        let clock = TokioClock::start();
        let what = format!("{headers:?}");
        let (service, arrivals) = saying(clock, vec![(429, headers)]);
        let layer = ClientLayer::builder().clock(clock).build().unwrap();
        let client = layer.layer(service);
        assert_eq!(client.clone().oneshot(get()).await.unwrap().status(), 429);
        let began = clock.now();
        // Longer than anybody waits: it fails at once, and says when.
        let error = client.clone().oneshot(get()).await.unwrap_err();
        assert!(error.is_limited(), "{what}: {error}");
        assert_eq!(clock.now(), began);
        let retry_after = error.retry_after().unwrap();
        assert!(retry_after <= Duration::from_secs(3600), "{what}: {retry_after:?}");
        tokio::time::sleep(retry_after + Duration::from_millis(1)).await;
        assert_eq!(client.oneshot(get()).await.unwrap().status(), 429, "{what}");
        assert_eq!(arrivals.lock().unwrap().len(), 2, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_billion_does_not_lift_the_clients_own_quota() {
    let clock = TokioClock::start();
    let generous = vec![
        ("ratelimit-policy", "\"a\";q=1000000000;w=1".to_owned()),
        ("ratelimit", "\"a\";r=1000000000;t=1".into()),
        ("x-ratelimit-limit", "1000000000".into()),
        ("x-ratelimit-remaining", "1000000000".into()),
        ("x-ratelimit-reset", "0".into()),
    ];
    let (service, arrivals) = saying(clock, vec![(200, generous)]);
    let layer = ClientLayer::builder().clock(clock).quota("50/s burst 10").build().unwrap();
    hurry(layer.layer(service), 1_000, Duration::from_secs(20)).await;
    let arrivals = arrivals.lock().unwrap();
    assert!(arrivals.len() >= 980, "{}", arrivals.len());
    assert_within("50/s burst 10", &arrivals, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn without_a_quota_a_limit_of_a_billion_is_approached_from_below() {
    let clock = TokioClock::start();
    let generous = vec![("ratelimit", "\"a\";r=1000000000;t=1".to_owned())];
    let (service, arrivals) = saying(clock, vec![(200, generous)]);
    let second = Duration::from_secs(1);
    let far = distant(service, second, second, Dice::new(1));
    let layer = ClientLayer::builder().clock(clock).build().unwrap();
    hurry(layer.layer(far), 1_000, Duration::from_millis(8_500)).await;
    // One, two, four, eight per round trip of two seconds.
    assert_eq!(arrivals.lock().unwrap().len(), 1 + 2 + 4 + 8);
}

#[tokio::test(start_paused = true)]
async fn of_families_that_contradict_each_other_the_most_cautious_counts() {
    let clock = TokioClock::start();
    let contradicting = vec![
        ("ratelimit", "\"a\";r=1000;t=1".to_owned()),
        ("x-ratelimit-limit", "10".into()),
        ("x-ratelimit-remaining", "0".into()),
        ("x-ratelimit-reset", "20".into()),
        ("x-rate-limit-limit", "100".into()),
        ("x-rate-limit-remaining", "99".into()),
        ("x-rate-limit-reset", "1".into()),
    ];
    let (service, arrivals) = saying(clock, vec![(200, contradicting)]);
    let layer = ClientLayer::builder().clock(clock).build().unwrap();
    hurry(layer.layer(service), 100, Duration::from_secs(59)).await;
    let arrivals = arrivals.lock().unwrap();
    for pair in arrivals.windows(2) {
        let apart = pair[1].since(pair[0]).as_secs();
        assert!(apart >= 20, "{apart} s apart");
    }
    assert_eq!(arrivals.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_request_waits_for_longer_than_it_may() {
    for seconds in ["1", "59", "61", "3000"] {
        let clock = TokioClock::start();
        let refusing = vec![("retry-after", seconds.to_owned())];
        let (service, _) = saying(clock, vec![(429, refusing)]);
        let max_wait = Duration::from_secs(60);
        let layer = ClientLayer::builder().clock(clock).max_wait(max_wait).max_retries(0);
        let client = layer.build().unwrap().layer(service);
        for _ in 0..20 {
            let began = clock.now();
            let _ = client.clone().oneshot(get()).await;
            let waited = clock.now().since(began);
            assert!(waited <= max_wait, "{seconds}: {waited:?}");
        }
    }
}

/// Headers of every kind, sane or not.
fn lie() -> impl Strategy<Value = (u16, Vec<(&'static str, String)>)> {
    let names = prop::sample::select(vec![
        "retry-after",
        "retry-after-ms",
        "ratelimit",
        "ratelimit-policy",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-ratelimit-bucket",
        "x-ratelimit-global",
        "x-ratelimit-remaining-tokens",
        "x-shopify-shop-api-call-limit",
        "date",
    ]);
    let value = prop_oneof![
        "[0-9]{1,3}",
        "[0-9]{9,20}",
        "-[0-9]{1,3}",
        "[0-9]{1,2}/[0-9]{1,2}",
        "true",
        "\"[ab]\";r=[0-9]{1,12};t=[0-9]{1,12}",
        "\"[ab]\";q=[0-9]{1,12};w=[0-9]{1,12}",
        "\"c\";q=[0-9]{1,2};qu=\"concurrent-requests\", \"c\";r=[0-9]",
        "Fri, 31 Dec (1999|9999) 23:59:59 GMT",
    ];
    let status = prop::sample::select(vec![200_u16, 200, 200, 429, 503, 403, 500]);
    (status, prop::collection::vec((names, value), 0..5))
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn whatever_the_far_side_says_the_own_quota_holds_and_nobody_waits_for_ever(
        answers in prop::collection::vec(lie(), 1..8),
        seed in any::<u64>(),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(async {
            let clock = TokioClock::start();
            let (service, arrivals) = saying(clock, answers);
            let (least, most) = (Duration::from_millis(1), Duration::from_millis(30));
            let far = distant(service, least, most, Dice::new(seed));
            let dice = Dice::new(seed);
            let max_wait = Duration::from_secs(20);
            let layer = ClientLayer::builder().clock(clock).random(move || dice.roll());
            let layer = layer.quota("20/s burst 5").max_wait(max_wait).build().unwrap();
            let client = layer.layer(far);
            let tasks = (0..30).map(|_| {
                let client = client.clone();
                tokio::spawn(async move {
                    for _ in 0..5 {
                        let began = clock.now();
                        let _ = client.clone().oneshot(get()).await;
                        // Four attempts, each of which may wait, and their pauses.
                        assert!(clock.now().since(began) < Duration::from_secs(4 * 20 + 10));
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            assert_within("20/s burst 5", &arrivals.lock().unwrap(), most);
            // Nothing stays behind, and an hour later a request goes through.
            let status = &layer.status()[0];
            assert_eq!((status.in_flight, status.waiting), (0, 0));
            tokio::time::sleep(Duration::from_secs(3601)).await;
            let sent = layer.counts().sent;
            let _ = client.oneshot(get()).await;
            assert!(layer.counts().sent > sent, "{:?}", layer.status());
        });
    }
}
