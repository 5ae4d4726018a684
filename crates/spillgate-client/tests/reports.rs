//! What a client tells about itself.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Response;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use spillgate_client::ClientLayer;
use tower::{Layer, ServiceExt};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{Body, TokioClock, far, get};

#[tokio::test(start_paused = true)]
async fn counts_status_and_metrics_say_what_was_done() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).random(|| 0.0).max_retries(1);
    let layer = layer.max_wait(Duration::from_secs(3)).build().unwrap();
    let client = layer.layer(far(|request| {
        let status = if request.uri().path() == "/refuse" { 429 } else { 200 };
        let response = Response::builder()
            .status(status)
            .header("ratelimit-policy", "\"public\";q=20;w=2")
            .header("ratelimit", "\"public\";r=12;t=2")
            .header("retry-after", "2");
        std::future::ready(response.body(Body::default()).unwrap())
    }));
    client.clone().oneshot(get()).await.unwrap();
    let status = layer.status();
    assert_eq!((status.len(), &*status[0].host, &*status[0].key), (1, "api.example.com", ""));
    let (key, limit) = &status[0].limits[0];
    assert_eq!(key.name.as_deref(), Some("public"));
    assert_eq!((limit.limit, limit.remaining), (20, 12));
    assert_eq!(limit.reset_after, Duration::from_secs(2));

    let refused =
        http::Request::get("http://api.example.com/refuse").body(Body::default()).unwrap();
    assert_eq!(client.clone().oneshot(refused).await.unwrap().status(), 429);
    let error = client.clone().oneshot(get()).await;
    assert!(error.is_ok(), "{error:?}");
    let counts = layer.counts();
    assert_eq!((counts.sent, counts.refused, counts.retries, counts.blocks), (4, 2, 1, 2));
    assert_eq!((counts.limited, counts.queue_full, counts.retries_denied), (0, 0, 0));
    assert_eq!(counts.waited, 2);

    let mut registry = Registry::default();
    layer.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "spillgate_client_sent_total 4",
        "spillgate_client_refused_total 2",
        "spillgate_client_waited_total 2",
        "spillgate_client_retries_total 1",
        "spillgate_client_blocks_total 2",
        "spillgate_client_in_flight 0",
        "spillgate_client_waiting 0",
        "spillgate_client_budgets 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_say_when_to_retry_and_what_to_change() {
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).quota("1/h").build().unwrap();
    let client = layer.layer(far(|_| std::future::ready(Response::new(Body::default()))));
    client.clone().oneshot(get()).await.unwrap();
    let error = client.clone().oneshot(get()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(
        error.to_string(),
        "the rate limit of \"api.example.com\" leaves no room for 3600000 ms, which is longer than this \
         request may wait; retry then, or raise `max_wait`"
    );
    assert!(error.into_service_error().is_err());

    let fault = ClientLayer::learning().layer(tower::service_fn(async |_: http::Request<Body>| {
        Err::<Response<Body>, _>(std::io::Error::other("no route"))
    }));
    let error = fault.oneshot(get()).await.unwrap_err();
    assert_eq!((error.to_string(), error.is_limited()), ("no route".to_owned(), false));
    let service = error.into_service_error().unwrap();
    assert!(service.downcast_ref::<std::io::Error>().is_some());

    let error = ClientLayer::new("10/fortnight").unwrap_err();
    assert!(error.to_string().contains("unknown unit \"fortnight\""), "{error}");
}

/// Keeps all that events say.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_key_is_in_no_log_no_error_and_no_metric() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let clock = TokioClock::start();
    let layer = ClientLayer::builder().clock(clock).random(|| 0.0).max_queue(1).max_retries(1);
    let layer = layer.key(|_| "api-key-5c1".to_owned()).max_wait(Duration::from_secs(3));
    let layer = layer.build().unwrap();
    let client = layer.layer(far(|_| {
        let response = Response::builder().status(429).header("retry-after", "2");
        std::future::ready(response.body(Body::default()).unwrap())
    }));
    let mut texts = Vec::new();
    for _ in 0..3 {
        let (one, other) = tokio::join!(
            client.clone().oneshot(get()),
            tokio::time::timeout(Duration::from_secs(1), client.clone().oneshot(get())),
        );
        texts.push(format!("{one:?} {other:?}"));
        texts.extend(one.err().map(|error| error.to_string()));
    }
    let mut registry = Registry::default();
    layer.register(&mut registry);
    let mut metrics = String::new();
    encode(&mut metrics, &registry).unwrap();
    texts.push(metrics);
    texts.push(format!("{layer:?} {client:?}"));
    // The program finds it in the status, but does not print it by accident.
    assert_eq!(&*layer.status()[0].key, "api-key-5c1");
    texts.push(format!("{:?}", layer.status()));
    let log = log.0.lock().unwrap().clone();
    assert!(log.contains("refused by a rate limit") && log.contains("waiting"), "{log}");
    texts.push(log);
    for text in texts {
        assert!(!text.contains("api-key-5c1"), "{text}");
    }
}
