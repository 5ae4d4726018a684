//! Whatever rate limit headers say, what a client reads is bounded, and it waits no longer than it may.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use libfuzzer_sys::fuzz_target;
use spillgate::{ManualClock, Timestamp};
use spillgate_client::{ClientLayer, RateLimitInfo, parse_at};
use tower::{Layer, ServiceExt, service_fn};

const NAMES: [&str; 35] = [
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-should-retry",
    "date",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "ratelimit-name",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-used",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-bucket",
    "x-ratelimit-resource",
    "x-ratelimit-scope",
    "x-ratelimit-global",
    "x-rate-limit-limit",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "x-ratelimit-requests-remaining",
    "x-ratelimit-requests-reset",
    "x-ratelimit-complexity-remaining",
    "x-shopify-shop-api-call-limit",
];

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime")
});

/// Whether a request is refused, how long it is until the next one, and headers.
type Answer = (bool, u16, Vec<Line>);
/// A name, and a value.
type Line = (u8, Vec<u8>);

fuzz_target!(|answers: Vec<Answer>| {
    let clock = ManualClock::default();
    let layer = ClientLayer::builder().clock(clock.clone()).random(|| 0.5);
    // Waits are those of the clock, which does not move while somebody waits: nobody does.
    let layer = layer.max_wait(Duration::ZERO).max_retries(0).build().expect("no quota");
    for (is_refused, millis, lines) in answers.into_iter().take(16) {
        let headers = headers(&lines);
        check(&parse_at(&headers, Timestamp::from_nanos(u64::from(millis) << 40)));
        let status = if is_refused { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
        let client = layer.layer(service_fn(move |_: Request<()>| {
            let mut response = Response::new(());
            (*response.status_mut(), *response.headers_mut()) = (status, headers.clone());
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        }));
        if let Err(error) = RUNTIME.block_on(client.oneshot(Request::new(()))) {
            assert!(error.retry_after() <= Some(Duration::from_secs(3600)), "{error}");
        }
        let status = &layer.status()[0];
        assert_eq!((status.in_flight, status.waiting), (0, 0));
        assert!(status.blocked_for <= Duration::from_secs(3600));
        clock.advance(Duration::from_millis(millis.into()));
    }
    // An hour later, nothing that was said counts any more.
    clock.advance(Duration::from_secs(3600));
    let client = layer.layer(service_fn(|_: Request<()>| {
        std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(())))
    }));
    RUNTIME.block_on(client.oneshot(Request::new(()))).expect("the client is not stalled");
});

fn headers(lines: &[Line]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            let name = NAMES[usize::from(*name) % NAMES.len()];
            headers.append(HeaderName::from_static(name), value);
        }
    }
    headers
}

fn check(info: &RateLimitInfo) {
    assert!(info.limits.len() <= RateLimitInfo::MAX_LIMITS);
    assert!(info.retry_after <= Some(RateLimitInfo::LONGEST));
    for limit in &info.limits {
        assert!(limit.reset_after <= Some(RateLimitInfo::LONGEST));
        assert!(limit.window <= Some(RateLimitInfo::LONGEST));
        assert!(limit.limit <= Some(RateLimitInfo::MOST) && limit.limit != Some(0));
        assert!(limit.remaining <= Some(RateLimitInfo::MOST));
    }
}
