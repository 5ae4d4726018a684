//! Public and authenticated routes with limits of their own, and a tier with larger quotas.
//!
//! A request passes three layers, outermost first:
//!
//! 1. `authenticate` maps a token to a user;
//! 2. Spillgate counts per user, or per address where there is no user;
//! 3. the routes, one of which has a stricter layer of its own.
//!
//! Spillgate comes before the routes, so guessing tokens is limited, too.
//!
//! ```text
//! cargo run -p route-tiers
//! curl -i http://127.0.0.1:3000/docs/start
//! curl -i -H 'authorization: Bearer token-2' http://127.0.0.1:3000/account/orders
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use spillgate_policy::{Accept, Gate, Identity, Limit, Policy, Tier};
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;

static USER: HeaderName = HeaderName::from_static("x-user-id");

fn app() -> Result<Router, spillgate_policy::Error> {
    // Any value is accepted: `authenticate` has written the header itself.
    let identity = Identity::new().user(USER.as_str(), Accept::Any);
    let policy = Policy::builder()
        .identity(identity.clone())
        .limit(Limit::new("public", "3/min").path("/docs/{*page}").per(["ip"]))
        .limit(Limit::new("account", "4/min").path("/account/{*page}"))
        .limit(Limit::new("search", "2/min").path("/search"))
        // A tier has a quota of its own per limit, or inherits the limit's.
        .tier(
            "pro",
            Tier::new().callers(["user:2"]).quota("account", "6/min").quota("search", "5/min"),
        )
        .build()?;
    // For a single route, so it needs no path. Gates are independent: an export that this one denies has been
    // counted under "account" already. Limits of one policy are spent all together or not at all.
    let export =
        Policy::builder().identity(identity).limit(Limit::new("export", "1/min")).build()?;

    let export = get(account).layer(SpillgateLayer::new(Gate::new(export)?));
    Ok(Router::new()
        .route("/docs/{page}", get(async || "Read this.\n"))
        .route("/search", get(async || "Found.\n"))
        .route("/account/orders", get(account))
        .route("/account/export", export)
        .layer(SpillgateLayer::new(Gate::new(policy)?))
        .layer(from_fn(authenticate)))
}

/// Writes the user into a header, and removes whatever the client sent there.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let token = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let user = match token {
        Some(b"Bearer token-1") => Some("1"),
        Some(b"Bearer token-2") => Some("2"),
        _ => None,
    };
    request.headers_mut().remove(&USER);
    if let Some(user) = user {
        request.headers_mut().insert(&USER, HeaderValue::from_static(user));
    }
    next.run(request).await
}

async fn account(request: Request) -> Result<&'static str, StatusCode> {
    let user = request.headers().get(&USER);
    user.map(|_| "This is yours.\n").ok_or(StatusCode::UNAUTHORIZED)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::extract::ConnectInfo;
    use tower::ServiceExt;

    use super::*;

    async fn get(app: &Router, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let client = SocketAddr::from(([203, 0, 113, 7], 54321));
        request.extensions_mut().insert(ConnectInfo(client));
        app.clone().oneshot(request).await.unwrap()
    }

    const USER_1: &[(&str, &str)] = &[("authorization", "Bearer token-1")];
    const USER_2: &[(&str, &str)] = &[("authorization", "Bearer token-2")];

    #[tokio::test]
    async fn public_pages_count_per_address_with_a_token_or_without() {
        let app = app().unwrap();
        for headers in [&[][..], &[], USER_1] {
            assert_eq!(get(&app, "/docs/start", headers).await.status(), StatusCode::OK);
        }
        let denied = get(&app, "/docs/start", USER_1).await;
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    }

    #[tokio::test]
    async fn the_export_meets_two_limits() {
        let app = app().unwrap();
        assert_eq!(get(&app, "/account/export", USER_2).await.status(), StatusCode::OK);
        let denied = get(&app, "/account/export", USER_2).await;
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
        let body = to_bytes(denied.into_body(), usize::MAX).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains(r#""violated-policies":["export"]"#));
        // Two of user 2's six are spent.
        let orders = get(&app, "/account/orders", USER_2).await;
        assert_eq!(orders.headers()["x-ratelimit-remaining"], "3");
    }

    #[tokio::test]
    async fn the_account_counts_per_user_and_the_tier_has_more() {
        let app = app().unwrap();
        for (user, most) in [(USER_1, 4), (USER_2, 6)] {
            for left in (0..most).rev() {
                let reply = get(&app, "/account/orders", user).await;
                assert_eq!(reply.status(), StatusCode::OK);
                assert_eq!(reply.headers()["x-ratelimit-remaining"], left.to_string());
            }
            let denied = get(&app, "/account/orders", user).await;
            assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
        }
        assert_eq!(get(&app, "/search", USER_1).await.headers()["x-ratelimit-limit"], "2");
        assert_eq!(get(&app, "/search", USER_2).await.headers()["x-ratelimit-limit"], "5");
    }

    #[tokio::test]
    async fn a_forged_user_header_does_not_help_and_guessing_is_limited() {
        let app = app().unwrap();
        let forged = &[("x-user-id", "2")];
        for _ in 0..4 {
            let reply = get(&app, "/account/orders", forged).await;
            assert_eq!(reply.status(), StatusCode::UNAUTHORIZED);
        }
        let denied = get(&app, "/account/orders", forged).await;
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}
