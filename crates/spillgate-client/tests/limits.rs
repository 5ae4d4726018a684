//! Several limits at once: by host, key, route and the names that the far side gives them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use spillgate::{Clock, Timestamp};
use spillgate_client::{ClientBuilder, ClientLayer, Unit};
use tower::{Layer, ServiceExt};

use crate::common::{Body, Dice, Far, TokioClock, distant, far, get, hurry};

type Headers = Vec<(&'static str, String)>;
type Seen = Arc<Mutex<Vec<(String, Timestamp)>>>;

/// A far side that answers by the path of a request.
fn by_path(
    clock: TokioClock,
    answer: impl Fn(&str) -> (u16, Headers) + Clone + Send + Sync + 'static,
) -> (Far, Seen) {
    let seen = Seen::default();
    let sight = Arc::clone(&seen);
    let service = far(move |request| {
        let path = request.uri().path().to_owned();
        let (status, headers) = answer(&path);
        sight.lock().unwrap().push((path, clock.now()));
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        std::future::ready(response.body(Body::default()).unwrap())
    });
    (service, seen)
}

fn to(uri: &str) -> Request<Body> {
    Request::get(uri).body(Body::default()).unwrap()
}

fn builder(clock: TokioClock) -> ClientBuilder {
    ClientLayer::builder().clock(clock).random(|| 0.0).max_retries(0)
}

/// Limits of Discord: `/a` and `/b` share a bucket, `/c` has another.
fn discord(path: &str) -> (u16, Headers) {
    let (bucket, status) = match path {
        "/a" | "/b" => ("one", 429),
        "/global" => ("two", 429),
        _ => ("three", 200),
    };
    let remaining = if status == 429 { "0" } else { "4" };
    let mut headers = vec![
        ("x-ratelimit-limit", "5".to_owned()),
        ("x-ratelimit-remaining", remaining.into()),
        ("x-ratelimit-reset-after", "30".into()),
        ("x-ratelimit-bucket", bucket.into()),
    ];
    if status == 429 {
        headers.push(("retry-after", "30".into()));
    }
    if path == "/global" {
        headers.push(("x-ratelimit-global", "true".into()));
    }
    (status, headers)
}

#[tokio::test(start_paused = true)]
async fn routes_share_the_bucket_that_the_far_side_names() {
    let clock = TokioClock::start();
    let (service, seen) = by_path(clock, discord);
    let layer = builder(clock).route(|request| request.uri.path().to_owned());
    let layer = layer.max_wait(Duration::from_secs(10)).build().unwrap();
    let client = layer.layer(service);
    let send = async |path: &str| {
        let sent = client.clone().oneshot(to(&format!("http://api.example.com{path}"))).await;
        sent.map(|response| response.status().as_u16()).map_err(|error| error.retry_after())
    };
    // Which bucket a route is in is known from its first response on.
    assert_eq!(send("/a").await, Ok(429));
    let error = send("/a").await.unwrap_err().unwrap();
    assert!(error > Duration::from_secs(29), "{error:?}");
    assert_eq!(send("/c").await, Ok(200));
    assert_eq!(send("/b").await, Ok(429));
    assert!(send("/b").await.is_err());
    assert_eq!(send("/c").await, Ok(200));
    // All requests of this client are refused.
    assert_eq!(send("/global").await, Ok(429));
    for path in ["/a", "/b", "/c", "/d"] {
        assert!(send(path).await.is_err(), "{path}");
    }
    assert_eq!(seen.lock().unwrap().len(), 5);
    let status = &layer.status()[0];
    let names: Vec<_> = status.limits.iter().map(|(key, _)| key.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["one", "three", "two"]);
    assert!(status.blocked_for > Duration::from_secs(29));
}

#[tokio::test(start_paused = true)]
async fn hosts_and_keys_have_budgets_of_their_own() {
    let clock = TokioClock::start();
    let (service, _) = by_path(clock, |_| (429, vec![("retry-after", "50".into())]));
    let layer = builder(clock).max_wait(Duration::from_secs(1));
    let layer = layer.key(|request| {
        let key = request.headers.get("x-api-key");
        key.map_or(String::new(), |key| key.to_str().unwrap().to_owned())
    });
    let layer = layer.build().unwrap();
    let client = layer.layer(service);
    let send = async |host: &str, key: &str| {
        let mut request = to(&format!("http://{host}/"));
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        client.clone().oneshot(request).await.is_ok()
    };
    for (host, key) in
        [("a.example", "1"), ("a.example", "2"), ("b.example", "1"), ("a.example:81", "1")]
    {
        assert!(send(host, key).await, "{host} {key}");
        assert!(!send(host, key).await, "{host} {key}");
    }
    // Spelling, passwords and the port of the scheme make no other host.
    assert!(!send("A.Example", "1").await);
    assert!(!send("a.example:80", "1").await);
    assert!(!send("user:password@a.example", "1").await);
    let status: Vec<_> = layer.status().into_iter().map(|it| (it.host, it.key)).collect();
    assert_eq!(status.len(), 4);
    assert!(status.is_sorted() && !format!("{status:?}").contains("password"));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_honoured_as_well_as_requests() {
    let clock = TokioClock::start();
    // Plenty of requests, but each takes 100 of 1,000 tokens, which are back after a minute.
    let spent = Arc::new(Mutex::new((clock.now(), 0)));
    let (service, seen) = by_path(clock, move |_| {
        let mut spent = spent.lock().unwrap();
        let now = clock.now();
        if now.since(spent.0) >= Duration::from_secs(60) {
            *spent = (now, 0);
        }
        spent.1 += 100;
        let status = if spent.1 <= 1_000 { 200 } else { 429 };
        let reset = Duration::from_secs(60) - now.since(spent.0);
        let headers = vec![
            ("x-ratelimit-limit-requests", "10000".to_owned()),
            ("x-ratelimit-remaining-requests", "9999".into()),
            ("x-ratelimit-reset-requests", "1s".into()),
            ("x-ratelimit-limit-tokens", "1000".into()),
            ("x-ratelimit-remaining-tokens", 1_000_u64.saturating_sub(spent.1).to_string()),
            ("x-ratelimit-reset-tokens", format!("{}s", reset.as_secs_f64())),
        ];
        (status, headers)
    });
    let latency = Duration::from_millis(20);
    let far = distant(service, latency, latency, Dice::new(1));
    let layer = builder(clock).build().unwrap();
    let tally = hurry(layer.layer(far), 50, Duration::from_secs(600)).await;
    println!("{tally:?} of {}", seen.lock().unwrap().len());
    assert!(tally.passed >= 90, "{tally:?}");
    assert!(tally.refused <= 3, "{tally:?}");
    let limits = &layer.status()[0].limits;
    assert!(limits.iter().any(|(key, _)| key.unit == Unit::Other));
}

/// A request in flight, until it ends or is cancelled: counts how many there are, and were at most.
struct Busy(Arc<Mutex<(u32, u32)>>);

impl Busy {
    fn new(load: Arc<Mutex<(u32, u32)>>) -> Self {
        let (now, most) = *load.lock().unwrap();
        *load.lock().unwrap() = (now + 1, most.max(now + 1));
        Self(load)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().unwrap().0 -= 1;
    }
}

#[tokio::test(start_paused = true)]
async fn an_announced_concurrency_limit_bounds_what_is_in_flight() {
    let clock = TokioClock::start();
    let load = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&load);
    let far = far(move |_| {
        let load = Arc::clone(&seen);
        async move {
            let _busy = Busy::new(load);
            tokio::time::sleep(Duration::from_millis(50)).await;
            let response = Response::builder()
                .header("ratelimit-policy", "\"up\";q=3;qu=\"concurrent-requests\"")
                .header("ratelimit", "\"up\";r=1");
            response.body(Body::default()).unwrap()
        }
    });
    let layer = builder(clock).build().unwrap();
    let tally = hurry(layer.layer(far), 100, Duration::from_secs(10)).await;
    assert_eq!(*load.lock().unwrap(), (0, 3));
    assert!(tally.passed > 500, "{tally:?}");
    assert_eq!(layer.status()[0].max_in_flight, 3);
}

#[tokio::test(start_paused = true)]
async fn what_remains_of_a_window_is_spread_over_the_time_until_its_reset() {
    let clock = TokioClock::start();
    let (began, count) = (clock.now(), Arc::new(Mutex::new(0_u64)));
    let (service, seen) = by_path(clock, move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        let headers = vec![
            ("x-ratelimit-limit", "80".to_owned()),
            ("x-ratelimit-remaining", 80_u64.saturating_sub(*count).to_string()),
            (
                "x-ratelimit-reset",
                (Duration::from_secs(40) - clock.now().since(began)).as_secs_f64().to_string(),
            ),
        ];
        (200, headers)
    });
    let latency = Duration::from_millis(5);
    let far = distant(service, latency, latency, Dice::new(1));
    let layer = builder(clock).build().unwrap();
    hurry(layer.layer(far), 200, Duration::from_millis(39_900)).await;
    let times = seen.lock().unwrap();
    let times: Vec<_> = times.iter().map(|(_, at)| at.since(began).as_secs_f64()).collect();
    assert!((79..=80).contains(&times.len()), "{}", times.len());
    // Seven eighths as fast as they can be sent, the others one every four seconds.
    assert!(times[69] < 1.0, "{times:?}");
    for pair in times[72..].windows(2) {
        let apart = pair[1] - pair[0];
        assert!((3.0..5.0).contains(&apart), "{apart}: {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_sent_in_the_order_of_the_calls() {
    let clock = TokioClock::start();
    let (service, seen) = by_path(clock, |_| (200, Vec::new()));
    let layer = builder(clock).quota("10/s burst 1").build().unwrap();
    let client = layer.layer(service);
    let mut tasks = Vec::new();
    for number in 0..50 {
        let sent = client.clone().oneshot(to(&format!("http://api.example.com/{number}")));
        tasks.push(tokio::spawn(sent));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().status(), 200);
    }
    let paths: Vec<_> = seen.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
    let expected: Vec<_> = (0..50).map(|number| format!("/{number}")).collect();
    assert_eq!(paths, expected);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_no_longer_announced_is_forgotten() {
    let clock = TokioClock::start();
    let (service, _) = by_path(clock, |path| match path {
        "/old" => (
            200,
            vec![
                ("x-ratelimit-limit", "9".into()),
                ("x-ratelimit-remaining", "8".into()),
                ("x-ratelimit-reset", "5".into()),
            ],
        ),
        _ => (200, Vec::new()),
    });
    let layer = builder(clock).build().unwrap();
    let client = layer.layer(service);
    client.clone().oneshot(to("http://api.example.com/old")).await.unwrap();
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(layer.status()[0].limits.len(), 1);
    tokio::time::sleep(Duration::from_secs(6)).await;
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(layer.status()[0].limits.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn limits_without_a_name_belong_to_their_route() {
    let clock = TokioClock::start();
    // As X has it: each endpoint has a limit of its own, and none has a name.
    let (service, _) = by_path(clock, |path| {
        let remaining = if path == "/used" { "0" } else { "50" };
        let headers = vec![
            ("x-rate-limit-limit", "100".to_owned()),
            ("x-rate-limit-remaining", remaining.into()),
            ("x-rate-limit-reset", "30".into()),
        ];
        (200, headers)
    });
    let layer = builder(clock).route(|request| request.uri.path().to_owned());
    let layer = layer.max_wait(Duration::from_secs(10)).build().unwrap();
    let client = layer.layer(service);
    let send = async |path: &str| {
        client.clone().oneshot(to(&format!("http://api.example.com{path}"))).await.is_ok()
    };
    assert!(send("/used").await && !send("/used").await);
    for _ in 0..3 {
        assert!(send("/free").await);
        assert!(!send("/used").await);
    }
    let status = &layer.status()[0];
    let routes: Vec<_> = status.limits.iter().map(|(key, _)| key.route.as_deref()).collect();
    assert_eq!(routes, [Some("/free"), Some("/used")]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_idle_routes_do_not_displace_one_that_is_blocked() {
    let clock = TokioClock::start();
    let (service, _) = by_path(clock, |path| match path {
        "/a" => discord(path),
        _ => (200, Vec::new()),
    });
    let layer = builder(clock).route(|request| request.uri.path().to_owned());
    let layer = layer.max_wait(Duration::from_secs(10)).build().unwrap();
    let client = layer.layer(service);
    let send = async |path: &str| {
        client.clone().oneshot(to(&format!("http://api.example.com{path}"))).await.is_ok()
    };
    assert!(send("/a").await && !send("/a").await);
    for number in 0..1_000 {
        assert!(send(&format!("/{number}")).await);
    }
    assert!(!send("/a").await);
}
