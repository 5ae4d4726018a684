//! Far sides that fail: they get less, and nothing twice that may have been processed.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper_util::rt::TokioIo;
use spillgate_client::{ClientLayer, is_not_sent};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::{Layer, service_fn};

use crate::common::{Body, Dice, TokioClock, distant, far, hurry};

/// A connection that takes a request, and then reports that there is no way to the host: as Linux does if
/// that is what it heard before the connection timed out.
struct Lost(bool);

impl AsyncRead for Lost {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0 {
            true => Poll::Ready(Err(io::ErrorKind::HostUnreachable.into())),
            false => Poll::Pending,
        }
    }
}

impl AsyncWrite for Lost {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn an_unreachable_host_on_an_established_connection_is_no_proof_that_nothing_was_sent() {
    let connection = hyper::client::conn::http1::handshake(TokioIo::new(Lost(false)));
    let (mut sender, connection) = connection.await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("/").header("host", "api.example.com").body(Body::from("body"));
    let error = sender.send_request(request.unwrap()).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::HostUnreachable);
    assert!(!is_not_sent(&error), "{error:?}");
    // Neither if something wraps it.
    assert!(!is_not_sent(&io::Error::other(error)));
}

#[tokio::test(start_paused = true)]
async fn a_far_side_that_always_fails_is_not_given_more_and_more() {
    let clock = TokioClock::start();
    let service = far(|_| {
        let response = Response::builder().status(500).body(Body::default());
        std::future::ready(response.unwrap())
    });
    let latency = Duration::from_millis(20);
    let far = distant(service, latency, latency, Dice::new(1));
    let layer = ClientLayer::builder().clock(clock).max_retries(0).build().unwrap();
    let tally = hurry(layer.layer(far), 1_000, Duration::from_secs(20)).await;
    // One at a time, at 40 ms each.
    assert!((400..=510).contains(&tally.refused), "{tally:?}");
    assert_eq!(layer.status()[0].max_in_flight, 1);
}

#[tokio::test(start_paused = true)]
async fn a_far_side_that_begins_to_fail_is_given_less_every_second() {
    let clock = TokioClock::start();
    let requests = Arc::new(Mutex::new(0));
    let service = far(move |_| {
        let mut requests = requests.lock().unwrap();
        *requests += 1;
        let status = if *requests > 1_000 { 502 } else { 200 };
        std::future::ready(Response::builder().status(status).body(Body::default()).unwrap())
    });
    let latency = Duration::from_millis(20);
    let far = distant(service, latency, latency, Dice::new(1));
    let layer = ClientLayer::builder().clock(clock).max_retries(0).build().unwrap();
    let client = layer.layer(far);
    hurry(client.clone(), 1_000, Duration::from_millis(500)).await;
    let before = layer.status()[0].max_in_flight;
    assert!(before > 200, "{before}");
    hurry(client, 1_000, Duration::from_secs(20)).await;
    let after = layer.status()[0].max_in_flight;
    assert!(after * 5 < before, "{before} before, {after} after");
}

#[tokio::test(start_paused = true)]
async fn attempts_to_connect_are_within_the_quota() {
    let clock = TokioClock::start();
    let attempts = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&attempts);
    let service = service_fn(move |_: Request<Body>| {
        *counted.lock().unwrap() += 1;
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        std::future::ready(Err::<Response<Body>, _>(refused))
    });
    let layer = ClientLayer::builder().clock(clock).quota("10/s burst 5").build().unwrap();
    let client = layer.layer(service);
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    let tasks = (0..50).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            while tokio::time::Instant::now() < end {
                let sent = tower::ServiceExt::oneshot(client.clone(), crate::common::get());
                let _ = tokio::time::timeout_at(end, sent).await;
                tokio::task::yield_now().await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let attempts = *attempts.lock().unwrap();
    assert!((90..=106).contains(&attempts), "{attempts} attempts in 10 s");
}
