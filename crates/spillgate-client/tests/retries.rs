//! What is sent again, and what is not.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use spillgate::{Clock, Timestamp};
use spillgate_client::{BoxError, ClientBuilder, ClientLayer, Idempotent, NoRetryBody};
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{Body, Dice, TokioClock, far, get};

/// What the far side does with the first request; the second one gets 200.
#[derive(Clone, Copy, Debug)]
enum First {
    Status(u16, &'static [(&'static str, &'static str)]),
    Error(io::ErrorKind),
}

const RETRY_AFTER: &[(&str, &str)] = &[("retry-after", "1")];

fn builder(clock: TokioClock) -> ClientBuilder {
    let dice = Dice::new(5);
    ClientLayer::builder().clock(clock).random(move || dice.roll())
}

/// How often a request is sent.
async fn sent(builder: ClientBuilder, request: Request<Body>, first: First) -> usize {
    let attempts = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&attempts);
    let service = service_fn(move |_: Request<Body>| {
        let mut attempts = counted.lock().unwrap();
        *attempts += 1;
        let result = match first {
            _ if *attempts > 1 => Ok(Response::new(Body::default())),
            First::Error(kind) => Err(BoxError::from(io::Error::from(kind))),
            First::Status(status, headers) => Ok(answer(status, headers)),
        };
        std::future::ready(result)
    });
    // A response or an error: what counts is how often it was sent.
    let _ = builder.build().unwrap().layer(service).oneshot(request).await;
    *attempts.lock().unwrap()
}

fn answer(status: u16, headers: &[(&'static str, &str)]) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::default()).unwrap()
}

fn request(method: &Method) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri("http://api.example.com/")
        .body(Body::from("body"))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_what_is_safe_is_sent_again() {
    use First::{Error, Status};
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, NetworkUnreachable, TimedOut, UnexpectedEof,
    };
    let clock = TokioClock::start();
    // What happens, and how often GET and POST are sent.
    for (first, get, post) in [
        (Status(200, &[]), 1, 1),
        (Status(404, &[]), 1, 1),
        (Status(400, RETRY_AFTER), 1, 1),
        (Status(403, &[]), 1, 1),
        (Status(403, RETRY_AFTER), 2, 1),
        (Status(429, RETRY_AFTER), 2, 2),
        (Status(429, &[("retry-after-ms", "30")]), 2, 2),
        (Status(429, &[]), 2, 1),
        (Status(503, RETRY_AFTER), 2, 2),
        (Status(503, &[]), 2, 1),
        (Status(500, &[]), 2, 1),
        (Status(500, RETRY_AFTER), 2, 1),
        (Status(502, &[]), 2, 1),
        (Status(504, RETRY_AFTER), 2, 1),
        (Status(408, &[]), 2, 1),
        (Status(501, &[]), 1, 1),
        (Status(429, &[("retry-after", "1"), ("x-should-retry", "false")]), 1, 1),
        (Status(409, &[("x-should-retry", "true")]), 2, 1),
        (Status(200, &[("x-should-retry", "true")]), 1, 1),
        (Error(ConnectionRefused), 2, 2),
        (Error(NetworkUnreachable), 2, 2),
        (Error(ConnectionReset), 2, 1),
        (Error(UnexpectedEof), 2, 1),
        (Error(TimedOut), 2, 1),
    ] {
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS] {
            let sent = sent(builder(clock), request(&method), first).await;
            assert_eq!(sent, get, "{method} {first:?}");
        }
        for method in [Method::POST, Method::PATCH, Method::CONNECT] {
            let sent = sent(builder(clock), request(&method), first).await;
            assert_eq!(sent, post, "{method} {first:?}");
        }
        // If it is known to be idempotent, a POST is like a GET.
        let mut marked = request(&Method::POST);
        marked.extensions_mut().insert(Idempotent);
        assert_eq!(sent(builder(clock), marked, first).await, get, "marked POST {first:?}");
        let mut keyed = request(&Method::POST);
        keyed.headers_mut().insert("idempotency-key", "7".parse().unwrap());
        assert_eq!(
            sent(builder(clock), keyed.clone(), first).await,
            get,
            "POST with key {first:?}"
        );
        let distrusting = builder(clock).idempotency_key(false);
        assert_eq!(sent(distrusting, keyed, first).await, post, "POST with key {first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_can_say_which_errors_mean_that_nothing_was_sent() {
    let clock = TokioClock::start();
    let reset = First::Error(io::ErrorKind::ConnectionReset);
    let mine = builder(clock).not_sent_if(|error| error.to_string().contains("reset"));
    assert_eq!(sent(mine, request(&Method::POST), reset).await, 2);
    let never = builder(clock).not_sent_if(|_| false);
    let refused = First::Error(io::ErrorKind::ConnectionRefused);
    assert_eq!(sent(never, request(&Method::POST), refused).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_cannot_be_made_again_is_sent_once() {
    let clock = TokioClock::start();
    let service = far(|_| std::future::ready(answer(500, &[])));
    let never = builder(clock).replay_with(NoRetryBody).build().unwrap();
    assert_eq!(never.layer(service.clone()).oneshot(get()).await.unwrap().status(), 500);
    assert_eq!(never.counts().sent, 1);
    let replayed = builder(clock).replay_with(|_: &Body| None).build().unwrap();
    assert_eq!(replayed.layer(service).oneshot(get()).await.unwrap().status(), 500);
    assert_eq!(replayed.counts().sent, 1);
}

/// A far side that always answers the same, and when it was called.
type Calls = Arc<Mutex<Vec<Timestamp>>>;

fn always(
    clock: TokioClock,
    status: u16,
    headers: &'static [(&str, &str)],
) -> (crate::common::Far, Calls) {
    let calls = Calls::default();
    let counted = Arc::clone(&calls);
    let service = far(move |_| {
        counted.lock().unwrap().push(clock.now());
        std::future::ready(answer(status, headers))
    });
    (service, calls)
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_at_least_as_long_as_the_far_side_asks_for() {
    let clock = TokioClock::start();
    let (service, calls) = always(clock, 429, &[("retry-after", "7")]);
    let layer = builder(clock).max_retries(2).build().unwrap();
    assert_eq!(layer.layer(service).oneshot(get()).await.unwrap().status(), 429);
    let calls = calls.lock().unwrap();
    assert_eq!(calls.len(), 3);
    for pair in calls.windows(2) {
        let waited = pair[1].since(pair[0]);
        // And up to a tenth more.
        assert!(
            waited >= Duration::from_secs(7) && waited < Duration::from_millis(7_800),
            "{waited:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn waits_without_retry_after_are_random_parts_of_a_time_that_doubles() {
    let clock = TokioClock::start();
    for random in [0.0, 0.5, 0.999] {
        let (service, calls) = always(clock, 500, &[]);
        let layer = builder(clock).random(move || random).backoff(Duration::from_secs(1));
        let layer = layer.max_retries(7).retry_ratio(10.0).build().unwrap();
        assert_eq!(layer.layer(service).oneshot(get()).await.unwrap().status(), 500);
        let calls = calls.lock().unwrap();
        let waits: Vec<_> = calls.windows(2).map(|it| it[1].since(it[0]).as_secs_f64()).collect();
        let expected = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0].map(|seconds| seconds * random);
        for (wait, expected) in waits.iter().zip(expected) {
            // tokio's timer has whole milliseconds.
            assert!((wait - expected).abs() < 0.002, "{waits:?} {random}");
        }
        assert_eq!(waits.len(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn no_retry_begins_after_the_deadline() {
    let clock = TokioClock::start();
    let began = clock.now();
    let (service, calls) = always(clock, 429, &[("retry-after", "4")]);
    let layer = builder(clock).max_retries(100).deadline(Duration::from_secs(10)).build().unwrap();
    // The last response, and not an error: the far side has the last word.
    assert_eq!(layer.layer(service).oneshot(get()).await.unwrap().status(), 429);
    assert_eq!(calls.lock().unwrap().len(), 3);
    assert!(clock.now().since(began) <= Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn retries_are_a_share_of_all_requests() {
    let clock = TokioClock::start();
    for (ratio, most) in [(0.2, 205), (0.0, 0), (f64::NAN, 0)] {
        let (service, _) = always(clock, 500, &[]);
        let layer = builder(clock).retry_ratio(ratio).backoff(Duration::ZERO).build().unwrap();
        let client = layer.layer(service);
        for _ in 0..1_000 {
            assert_eq!(client.clone().oneshot(get()).await.unwrap().status(), 500);
        }
        let counts = layer.counts();
        assert!(counts.retries <= most && counts.retries + 10 >= most, "{ratio}: {counts:?}");
        assert_eq!(counts.sent, 1_000 + counts.retries);
        assert!(counts.retries_denied > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_retried_request_is_the_same_request() {
    let clock = TokioClock::start();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sight = Arc::clone(&seen);
    let service = service_fn(move |request: Request<String>| {
        let (parts, body) = request.into_parts();
        let extension = parts.extensions.get::<u8>().copied();
        let mut seen = sight.lock().unwrap();
        seen.push((parts.method, parts.uri, parts.version, parts.headers, body, extension));
        let status = if seen.len() == 1 { 503 } else { 200 };
        let response = Response::builder().status(status).body(()).unwrap();
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let request = Request::put("http://api.example.com/a?b=c").version(http::Version::HTTP_2);
    let request = request.header("x-a", "1").header("x-a", "2").extension(9_u8);
    let layer = builder(clock).build().unwrap();
    let client = layer.layer(service);
    assert_eq!(
        client.oneshot(request.body("text".to_owned()).unwrap()).await.unwrap().status(),
        200
    );
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), &seen[0]), (2, &seen[1]));
    assert_eq!(seen[0].5, Some(9));
}
