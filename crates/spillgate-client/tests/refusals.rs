//! A refusal is obeyed, whatever limit it names.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use spillgate::{Clock, Timestamp};
use spillgate_client::{ClientBuilder, ClientLayer, Error};
use tower::{Layer, ServiceExt};

use crate::common::{Body, Dice, Far, TokioClock, distant, far, hurry};

type Headers = Vec<(&'static str, String)>;

/// A far side that answers by the path of a request.
fn by_path(answer: impl Fn(&str) -> (u16, Headers) + Clone + Send + Sync + 'static) -> Far {
    far(move |request| {
        let (status, headers) = answer(request.uri().path());
        std::future::ready(respond(status, headers))
    })
}

fn respond(status: u16, headers: Headers) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::default()).unwrap()
}

/// A client with a route per path, whose requests wait for ten seconds at most.
fn builder(clock: TokioClock) -> ClientBuilder {
    let builder = ClientLayer::builder().clock(clock).random(|| 0.0).max_retries(0);
    builder.max_wait(Duration::from_secs(10)).route(|request| request.uri.path().to_owned())
}

async fn send(
    client: &(impl tower::Service<Request<Body>, Response = Response<Body>, Error = Error> + Clone),
    path: &str,
) -> Result<u16, Option<Duration>> {
    let uri = format!("http://api.example.com{path}");
    let sent = client.clone().oneshot(Request::get(uri).body(Body::default()).unwrap()).await;
    sent.map(|response| response.status().as_u16()).map_err(|error| error.retry_after())
}

fn bucket(name: &str, remaining: u64, reset: u64) -> Headers {
    vec![
        ("x-ratelimit-bucket", name.to_owned()),
        ("x-ratelimit-limit", "10".into()),
        ("x-ratelimit-remaining", remaining.to_string()),
        ("x-ratelimit-reset-after", reset.to_string()),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_a_concurrency_limit_blocks() {
    let clock = TokioClock::start();
    let far = by_path(|_| {
        let headers = vec![
            ("ratelimit-policy", "\"uploads\";q=3;qu=\"concurrent-requests\"".to_owned()),
            ("ratelimit", "\"uploads\";r=0".into()),
            ("retry-after", "30".into()),
        ];
        (429, headers)
    });
    let client = builder(clock).build().unwrap().layer(far);
    assert_eq!(send(&client, "/").await, Ok(429));
    assert_eq!(send(&client, "/").await, Err(Some(Duration::from_secs(30))));
}

#[tokio::test(start_paused = true)]
async fn the_lowest_of_several_concurrency_limits_counts() {
    let clock = TokioClock::start();
    let far = by_path(|_| {
        let policy =
            "\"up\";q=3;qu=\"concurrent-requests\", \"all\";q=100;qu=\"concurrent-requests\"";
        let headers = vec![
            ("ratelimit-policy", policy.to_owned()),
            ("ratelimit", "\"up\";r=1, \"all\";r=50".into()),
        ];
        (200, headers)
    });
    let latency = Duration::from_millis(20);
    let far = distant(far, latency, latency, Dice::new(1));
    let layer = builder(clock).build().unwrap();
    hurry(layer.layer(far), 50, Duration::from_secs(5)).await;
    assert_eq!(layer.status()[0].max_in_flight, 3);
}

/// 64 limits that nobody uses any more, then one more.
async fn after_64_limits(
    reset: u64,
    last: fn() -> (u16, Headers),
) -> Result<u16, Option<Duration>> {
    let clock = TokioClock::start();
    let far = by_path(move |path| match path {
        "/last" => last(),
        path => (200, bucket(path, 9, reset)),
    });
    let client = builder(clock).build().unwrap().layer(far);
    for number in 0..64 {
        assert_eq!(send(&client, &format!("/{number}")).await, Ok(200));
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    send(&client, "/last").await.unwrap();
    send(&client, "/last").await
}

#[tokio::test(start_paused = true)]
async fn the_65th_limit_is_honoured() {
    for reset in [1, 3600] {
        let waits = after_64_limits(reset, || (200, bucket("last", 0, 30))).await;
        assert_eq!(waits, Err(Some(Duration::from_secs(30))), "the others reset in {reset} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_the_65th_limit_blocks() {
    let refused = || {
        let mut headers = bucket("last", 0, 0);
        headers.push(("retry-after", "30".into()));
        (429, headers)
    };
    for reset in [1, 3600] {
        let waits = after_64_limits(reset, refused).await;
        assert_eq!(waits, Err(Some(Duration::from_secs(30))), "the others reset in {reset} s");
    }
}

/// What arrives after a block at a far side that has refused for a second, with a ramp that had grown.
async fn after_a_named_refusal(headers: &'static str) -> Vec<Timestamp> {
    let clock = TokioClock::start();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (sight, began) = (Arc::clone(&seen), clock.now());
    let service = far(move |_| {
        let age = clock.now().since(began);
        let is_refused = (3..4).contains(&age.as_secs());
        sight.lock().unwrap().push(clock.now());
        std::future::ready(match is_refused {
            true => {
                respond(429, vec![("ratelimit", headers.to_owned()), ("retry-after", "5".into())])
            }
            false => respond(200, Vec::new()),
        })
    });
    let latency = Duration::from_millis(20);
    let far = distant(service, latency, latency, Dice::new(1));
    let layer = ClientLayer::builder().clock(clock).random(|| 0.5).max_retries(0).build().unwrap();
    hurry(layer.layer(far), 1_000, Duration::from_secs(12)).await;
    let seen = seen.lock().unwrap();
    let before = seen.iter().filter(|at| at.since(began) < Duration::from_secs(3)).count();
    assert!(before > 20_000, "the ramp is at {before} requests");
    let after = |at: &&Timestamp| at.since(began) >= Duration::from_secs(5);
    seen.iter().filter(after).copied().collect()
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_by_a_named_limit_requests_come_back_one_two_four() {
    for headers in ["\"a\";r=0;t=0", "\"a\";r=0;t=1", "\"a\";r=0"] {
        let seen = after_a_named_refusal(headers).await;
        for round in 0..6_u32 {
            let end = seen[0] + Duration::from_millis(40) * round + Duration::from_millis(20);
            let arrived = seen.iter().filter(|at| **at <= end).count();
            assert!(
                arrived < 2_usize.pow(round + 1),
                "{headers}: {arrived} in {round} round trips"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn while_others_go_to_the_host_one_request_finds_out_about_a_bucket() {
    let clock = TokioClock::start();
    let (began, seen) = (clock.now(), Arc::new(Mutex::new(Vec::new())));
    let sight = Arc::clone(&seen);
    let service = far(move |request| {
        let age = clock.now().since(began);
        let is_bucket = request.uri().path() == "/bucket";
        if is_bucket {
            sight.lock().unwrap().push(age);
        }
        let refusal = vec![("ratelimit", "\"a\";r=0;t=0".to_owned()), ("retry-after", "5".into())];
        std::future::ready(match is_bucket && age < Duration::from_secs(3) {
            true => respond(429, refusal),
            false => respond(200, Vec::new()),
        })
    });
    let latency = Duration::from_millis(20);
    let far = distant(service, latency, latency, Dice::new(1));
    let client = builder(clock).build().unwrap().layer(far);
    assert_eq!(send(&client, "/bucket").await, Ok(429));
    // The ramp grows with these.
    let others = tokio::spawn(hurry(client.clone(), 500, Duration::from_secs(6)));
    let bucket = (0..100).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { send(&client, "/bucket").await })
    });
    for task in bucket.collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap(), Ok(200));
    }
    assert!(others.await.unwrap().passed > 10_000);
    let seen = seen.lock().unwrap();
    let round_trip = seen.iter().filter(|at| **at >= seen[1] && **at < seen[1] + 2 * latency);
    assert_eq!(round_trip.count(), 1, "{seen:?}");
}
