//! Requests that nobody waits for any more, and memory that is bounded.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use spillgate_client::ClientLayer;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::common::{Body, TokioClock, far, get};

fn hello() -> crate::common::Far {
    far(|_| std::future::ready(Response::new(Body::default())))
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_that_waits_gives_its_place_back() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).quota("1/s").max_queue(3).build().unwrap();
    let client = layer.layer(hello());
    client.clone().oneshot(get()).await.unwrap();
    let send = || tokio::spawn(client.clone().oneshot(get()));
    let waiting: Vec<_> = (0..3).map(|_| send()).collect();
    tokio::task::yield_now().await;
    assert_eq!(layer.status()[0].waiting, 3);
    let error = client.clone().oneshot(get()).await.unwrap_err();
    assert!(error.is_queue_full(), "{error}");
    assert_eq!(
        error.to_string(),
        "3 requests wait for \"api.example.com\" already; send fewer at once, or raise `max_queue`"
    );
    // The first and the second leave. The third gets the turn of the first.
    waiting[0].abort();
    waiting[1].abort();
    tokio::task::yield_now().await;
    assert_eq!(layer.status()[0].waiting, 1);
    let began = tokio::time::Instant::now();
    let mut waiting = waiting;
    waiting.remove(2).await.unwrap().unwrap();
    assert!(began.elapsed() <= Duration::from_millis(1_001), "{:?}", began.elapsed());
    let status = &layer.status()[0];
    assert_eq!((status.waiting, status.in_flight), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn storms_of_cancelled_requests_leave_nothing_behind() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).quota("100/s burst 5").build().unwrap();
    // Half of them are cancelled in flight, half while they wait.
    let client = layer.layer(far(|_| pending()));
    for round in 0..200 {
        let storm: Vec<_> = (0..50).map(|_| tokio::spawn(client.clone().oneshot(get()))).collect();
        tokio::time::sleep(Duration::from_millis(round % 7)).await;
        storm.iter().for_each(tokio::task::JoinHandle::abort);
        for task in storm {
            assert!(task.await.unwrap_err().is_cancelled());
        }
    }
    let status = &layer.status()[0];
    assert_eq!((status.waiting, status.in_flight), (0, 0));
    let client = layer.layer(hello());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
}

/// A service that never becomes ready.
#[derive(Clone)]
struct NeverReady;

impl Service<Request<Body>> for NeverReady {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Pending<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Pending
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        pending()
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_never_handed_over_costs_nothing() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).quota("1/h burst 1").build().unwrap();
    let mut waiting = Box::pin(layer.layer(NeverReady).oneshot(get()));
    let polled = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_ready())).await;
    assert!(!polled && layer.status()[0].in_flight == 1);
    drop(waiting);
    assert_eq!(layer.status()[0].in_flight, 0);
    // The only token of the hour is still there.
    assert_eq!(layer.layer(hello()).oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(layer.counts().sent, 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_become_ready_is_not_waited_for_any_longer() {
    let clock = TokioClock::start();
    let (wait, deadline) = (Duration::from_secs(3), Duration::from_secs(2));
    for (builder, longest) in [
        (ClientLayer::builder().max_wait(wait), wait),
        (ClientLayer::builder().max_wait(wait).deadline(deadline), deadline),
    ] {
        let layer = builder.clock(clock).quota("1/h burst 1").build().unwrap();
        let began = tokio::time::Instant::now();
        let error = layer.layer(NeverReady).oneshot(get()).await.unwrap_err();
        assert!(error.is_limited(), "{error}");
        assert!(began.elapsed() <= longest + Duration::from_millis(2), "{:?}", began.elapsed());
        assert_eq!((layer.counts().sent, layer.counts().limited), (0, 1));
        // It costs nothing.
        assert_eq!(layer.layer(hello()).oneshot(get()).await.unwrap().status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_service_ends_its_request() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).build().unwrap();
    let client = layer.layer(service_fn(async |_: Request<Body>| {
        assert!(std::hint::black_box(false), "a fault of the service");
        Ok::<_, Infallible>(Response::new(()))
    }));
    let failed = tokio::spawn(client.oneshot(get())).await;
    assert!(failed.unwrap_err().is_panic());
    assert_eq!(layer.status()[0].in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_hosts_take_the_memory_of_a_thousand() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).quota("100/s").build().unwrap();
    let client = layer.layer(hello());
    for host in 0..100_000 {
        let request = Request::get(format!("http://host-{host}.example/")).body(Body::default());
        // Those without a budget of their own share one, and its quota.
        client.clone().oneshot(request.unwrap()).await.unwrap();
    }
    let status = layer.status();
    let shared = status.iter().filter(|it| &*it.host == "other hosts").count();
    let budgets = status.len() - shared;
    assert!((900..=1_000).contains(&budgets) && shared == 1, "{budgets} and {shared}");
    // Idle ones make room.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for host in 0..500 {
        let request = Request::get(format!("http://new-{host}.example/")).body(Body::default());
        client.clone().oneshot(request.unwrap()).await.unwrap();
    }
    let hosts: Vec<_> = layer.status().into_iter().map(|status| status.host).collect();
    assert_eq!(hosts.iter().filter(|host| host.starts_with("new-")).count(), 500);
    assert!(hosts.len() <= 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_routes_and_invented_bucket_names_are_bounded() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).route(|request| request.uri.path().to_owned());
    let layer = layer.build().unwrap();
    let client = layer.layer(far(|request| {
        let bucket = request.uri().path().trim_start_matches('/').to_owned();
        let response = Response::builder()
            .header("x-ratelimit-bucket", bucket)
            .header("x-ratelimit-limit", "10")
            .header("x-ratelimit-remaining", "9")
            .header("x-ratelimit-reset", "3600");
        std::future::ready(response.body(Body::default()).unwrap())
    }));
    for number in 0..1_000 {
        let request =
            Request::get(format!("http://api.example.com/{number}")).body(Body::default());
        client.clone().oneshot(request.unwrap()).await.unwrap();
    }
    assert!(layer.status()[0].limits.len() <= 64);
}
