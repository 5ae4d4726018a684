//! Time that a test moves, and far sides that live in it.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use spillgate::{Clock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};
use spillgate_tower::{Headers, PeerAddr, SpillgateLayer};
use tokio::time::{Instant, sleep};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

pub(crate) type Body = Full<Bytes>;
/// A far side.
pub(crate) type Far = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The time of tokio, which a test can pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokioClock(Instant);

impl TokioClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // Somewhere within a second, so that windows do not begin with the test.
        Timestamp::from_nanos(1_700_000_000_370_000_000) + self.0.elapsed()
    }
}

/// Pseudo-random numbers, the same in every run.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Arc<Mutex<u64>>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// From 0 up to 1.
    pub(crate) fn roll(&self) -> f64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }
}

/// A service behind a Spillgate gate, with one limit.
pub(crate) fn gated(quota: &str, algorithm: &str, headers: Headers, clock: TokioClock) -> Far {
    let policy =
        format!("[[limit]]\nname = \"public\"\nquota = \"{quota}\"\nalgorithm = \"{algorithm}\"\n");
    let gate = Gate::with_store(Policy::from_toml(&policy).unwrap(), Memory::new(clock)).unwrap();
    let layer = SpillgateLayer::new(gate).headers(headers).log(false);
    let hello = service_fn(|_: Request<Body>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(Body::from("hello"))))
    });
    let service = layer.layer(hello);
    let peer = PeerAddr(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)));
    far(move |mut request| {
        let service = service.clone();
        async move {
            request.extensions_mut().insert(peer);
            let Ok(response) = service.oneshot(request).await;
            response.map(|body| body.into_parts().0)
        }
    })
}

/// How many requests pass a gate at most, if one comes every millisecond and nothing else matters.
pub(crate) fn capacity(quota: &str, algorithm: &str, time: Duration, clock: TokioClock) -> u64 {
    let limiter = spillgate::Limiter::<str>::builder(quota).algorithm(algorithm.parse().unwrap());
    let limiter = limiter.capacity(1).build().unwrap();
    let start = clock.now();
    let millis = 0..time.as_millis() as u64;
    let spend = |millis| {
        let now = start + Duration::from_millis(millis);
        let all = limiter.peek_at("", 0, now).remaining();
        limiter.check_at("", all, now).cost()
    };
    millis.map(spend).sum()
}

/// A far side that is a function.
pub(crate) fn far<F>(answer: impl Fn(Request<Body>) -> F + Clone + Send + Sync + 'static) -> Far
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    BoxCloneSyncService::new(service_fn(move |request| {
        let answered = answer(request);
        async move { Ok(answered.await) }
    }))
}

/// A far side at the end of a network that takes between two times per direction.
pub(crate) fn distant(service: Far, least: Duration, most: Duration, dice: Dice) -> Far {
    let way = move || least + (most - least).mul_f64(dice.roll());
    far(move |request| {
        let (service, there, back) = (service.clone(), way(), way());
        async move {
            sleep(there).await;
            let Ok(response) = service.oneshot(request).await;
            sleep(back).await;
            response
        }
    })
}

pub(crate) fn get() -> Request<Body> {
    Request::get("http://api.example.com/things").body(Body::default()).unwrap()
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) refused: u64,
    pub(crate) unsent: u64,
}

impl Tally {
    pub(crate) fn sent(&self) -> u64 {
        self.passed + self.refused
    }

    pub(crate) fn count(&mut self, result: &Result<Response<Body>, spillgate_client::Error>) {
        match result {
            Ok(response) if response.status() == StatusCode::OK => self.passed += 1,
            Ok(_) => self.refused += 1,
            Err(_) => self.unsent += 1,
        }
    }
}

/// Tasks that send one request after the other for some time, as fast as they can.
pub(crate) async fn hurry<S>(client: S, tasks: usize, time: Duration) -> Tally
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = spillgate_client::Error>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let end = Instant::now() + time;
    let tasks = (0..tasks).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut tally = Tally::default();
            while Instant::now() < end {
                let sent = client.clone().oneshot(get());
                let Ok(result) = tokio::time::timeout_at(end, sent).await else { break };
                tally.count(&result);
                if let Err(error) = result {
                    sleep(error.retry_after().unwrap_or(Duration::from_secs(1))).await;
                }
            }
            tally
        })
    });
    let mut sum = Tally::default();
    for task in tasks.collect::<Vec<_>>() {
        let Tally { passed, refused, unsent } = task.await.unwrap();
        sum.passed += passed;
        sum.refused += refused;
        sum.unsent += unsent;
    }
    sum
}
