#![doc = include_str!("../../../docs/migrating.md")]

/// What the page says about both sides, on the same requests.
#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::num::NonZeroU32;
    use std::time::Duration;

    use axum::body::Body;
    use axum::extract::ConnectInfo;
    use axum::http::{Request, Response};
    use axum::{Router, routing::get};
    use governor::clock::FakeRelativeClock;
    use governor::{Quota, RateLimiter};
    use spillgate::{Limiter, ManualClock};
    use spillgate_policy::{Gate, Identity, Limit, Policy};
    use spillgate_tower::SpillgateLayer;
    use tower::ServiceExt;
    use tower_governor::GovernorLayer;
    use tower_governor::governor::GovernorConfigBuilder;
    use tower_governor::key_extractor::SmartIpKeyExtractor;

    fn app() -> Router {
        Router::new().route("/", get(|| async { "hello" }))
    }

    async fn send(app: &Router, forwarded: Option<String>) -> Response<Body> {
        let mut request = Request::get("/");
        if let Some(forwarded) = forwarded {
            request = request.header("x-forwarded-for", forwarded);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let proxy = SocketAddr::from(([10, 0, 0, 1], 54321));
        request.extensions_mut().insert(ConnectInfo(proxy));
        app.clone().oneshot(request).await.unwrap()
    }

    #[test]
    fn both_decide_alike_at_rates_that_are_whole_nanoseconds() {
        let (theirs, ours) = (FakeRelativeClock::default(), ManualClock::default());
        let [rate, burst] = [10, 20].map(|number| NonZeroU32::new(number).unwrap());
        let quota = Quota::per_second(rate).allow_burst(burst);
        let governor = RateLimiter::direct_with_clock(quota, theirs.clone());
        let spillgate =
            Limiter::<()>::builder("10/s burst 20").clock(ours.clone()).build().unwrap();
        for step in 0..1000 {
            let pause = Duration::from_millis(step * 37 % 151);
            theirs.advance(pause);
            ours.advance(pause);
            assert_eq!(governor.check().is_ok(), spillgate.check(&()).is_allowed(), "step {step}");
        }
    }

    #[tokio::test]
    async fn the_layers_admit_the_same_and_round_retry_after_differently() {
        let config = GovernorConfigBuilder::default().per_millisecond(500).burst_size(8).finish();
        let theirs = app().layer(GovernorLayer::new(config.unwrap()));
        let ours = app().layer(SpillgateLayer::per_ip("2/s burst 8").unwrap());
        for (name, app, retry_after) in [("governor", theirs, "0"), ("spillgate", ours, "1")] {
            for _ in 0..8 {
                assert_eq!(send(&app, None).await.status(), 200, "{name}");
            }
            let denied = send(&app, None).await;
            assert_eq!(denied.status(), 429, "{name}");
            assert_eq!(denied.headers()["retry-after"], retry_after, "{name}");
        }
    }

    #[tokio::test]
    async fn a_forged_address_is_a_new_key_for_one_and_not_for_the_other() {
        let config = GovernorConfigBuilder::default()
            .per_second(60)
            .burst_size(1)
            .key_extractor(SmartIpKeyExtractor)
            .finish();
        let theirs = app().layer(GovernorLayer::new(config.unwrap()));
        let policy = Policy::builder()
            .identity(Identity::new().trusted_proxies(["10.0.0.0/8"]))
            .limit(Limit::new("all", "1/min"))
            .build();
        let ours = app().layer(SpillgateLayer::new(Gate::new(policy.unwrap()).unwrap()));
        for (name, app, admitted) in [("governor", theirs, 5), ("spillgate", ours, 1)] {
            let mut passed = 0;
            for forged in 0..5 {
                // What the client wrote, and what the proxy appended.
                let forwarded = format!("192.0.2.{forged}, 203.0.113.7");
                passed += u32::from(send(&app, Some(forwarded)).await.status() == 200);
            }
            assert_eq!(passed, admitted, "{name}");
        }
    }

    #[tokio::test]
    async fn without_a_peer_address_one_fails_and_the_other_counts() {
        let config = GovernorConfigBuilder::default().finish().unwrap();
        let theirs = app().layer(GovernorLayer::new(config));
        let ours = app().layer(SpillgateLayer::per_ip("2/s burst 8").unwrap());
        for (name, app, status) in [("governor", theirs, 500), ("spillgate", ours, 200)] {
            let request = Request::get("/").body(Body::empty()).unwrap();
            assert_eq!(app.oneshot(request).await.unwrap().status(), status, "{name}");
        }
    }
}
