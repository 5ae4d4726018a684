//! Test rate limits through the layer, without waiting.
//!
//! The gate reads a [`Clock`]. In production that is [`SystemClock`]; the tests below pass a `ManualClock` and
//! advance it: an hour of refill takes no time, and the result does not depend on how fast the machine is.
//!
//! ```text
//! cargo test -p manual-clock
//! cargo run -p manual-clock
//! curl -i -X POST http://127.0.0.1:3000/invite
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::post;
use spillgate::{Clock, SystemClock};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Limit, Policy};
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;

/// The whole service, under any clock.
fn app(clock: impl Clock + Clone + 'static) -> Result<Router, spillgate_policy::Error> {
    let invite = Limit::new("invite", "3/h").path("/invite").methods(["POST"]).per(["ip"]);
    let policy = Policy::builder().limit(invite).build()?;
    let gate = Gate::with_store(policy, Memory::new(clock))?;
    Ok(Router::new().route("/invite", post(async || "Sent.\n")).layer(SpillgateLayer::new(gate)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let service = app(SystemClock)?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use axum::extract::ConnectInfo;
    use axum::http::{Request, StatusCode};
    use axum::response::Response;
    use spillgate::ManualClock;
    use tower::ServiceExt;

    use super::*;

    /// A request as axum's server passes it on, with the address of the client.
    async fn invite(app: &Router, client: [u8; 4]) -> Response {
        let mut request = Request::post("/invite").body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from((client, 54321))));
        app.clone().oneshot(request).await.unwrap()
    }

    const ALICE: [u8; 4] = [203, 0, 113, 7];
    const BOB: [u8; 4] = [203, 0, 113, 8];

    #[tokio::test]
    async fn three_invitations_per_hour_and_address() {
        let clock = ManualClock::default();
        let app = app(clock.clone()).unwrap();
        for _ in 0..3 {
            assert_eq!(invite(&app, ALICE).await.status(), StatusCode::OK);
        }
        assert_eq!(invite(&app, ALICE).await.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(invite(&app, BOB).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn retry_after_is_exact() {
        let clock = ManualClock::default();
        let app = app(clock.clone()).unwrap();
        for _ in 0..3 {
            invite(&app, ALICE).await;
        }
        let denied = invite(&app, ALICE).await;
        assert_eq!(denied.headers()["retry-after"], "1200");

        clock.advance(Duration::from_secs(1200) - Duration::from_nanos(1));
        assert_eq!(invite(&app, ALICE).await.status(), StatusCode::TOO_MANY_REQUESTS);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(invite(&app, ALICE).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_full_hour_refills_everything() {
        let clock = ManualClock::default();
        let app = app(clock.clone()).unwrap();
        for _ in 0..3 {
            invite(&app, ALICE).await;
        }
        clock.advance(Duration::from_secs(3600));
        assert_eq!(invite(&app, ALICE).await.headers()["x-ratelimit-remaining"], "2");
    }
}
