//! API keys and plans: a policy file, and closures that know the keys.
//!
//! `policy.toml` says how much each plan may do, where it can be read and changed. Which key has which plan is up to
//! wherever the service keeps its customers: here a map. Two closures connect the two: one accepts keys, the other
//! returns the tier of a key.
//!
//! A key that the service does not know is ignored. Otherwise a caller that is denied would invent the next one.
//!
//! ```text
//! cargo run -p api-keys
//! curl -i -H 'x-api-key: key-on-pro' http://127.0.0.1:3000/v1/things
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use spillgate_policy::{Accept, Caller, Gate, Identity, Policy, PolicyBuilder};
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;

/// The plan of each key.
type Plans = HashMap<&'static [u8], &'static str>;

fn plans() -> Plans {
    HashMap::from([
        (b"key-on-free".as_slice(), "free"),
        (b"key-on-pro", "pro"),
        (b"key-of-partner", "pro"),
    ])
}

fn policy(plans: Plans) -> Result<Policy, spillgate_policy::Error> {
    let plans = Arc::new(plans);
    let keys = Arc::clone(&plans);
    let accept = Accept::closure(move |key| keys.contains_key(key));
    PolicyBuilder::from_toml(include_str!("../policy.toml"))?
        // Replaces the file's `[identity]`, which is empty.
        .identity(Identity::new().api_key("x-api-key", accept))
        // Both closures run on every request: look into memory, and refresh that elsewhere.
        .tier_of(move |_request, caller| match caller {
            Caller::ApiKey(key) => plans.get(key.as_ref()).copied().map(Cow::Borrowed),
            _ => None,
        })
        .build()
}

fn app() -> Result<Router, spillgate_policy::Error> {
    let gate = Gate::new(policy(plans())?)?;
    Ok(Router::new()
        .route("/v1/things", get(async || "Things.\n"))
        .layer(SpillgateLayer::new(gate)))
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
    use axum::body::Body;
    use axum::extract::ConnectInfo;
    use axum::http::{Request, StatusCode};
    use axum::response::Response;
    use tower::ServiceExt;

    use super::*;

    async fn get(app: &Router, key: Option<&str>) -> Response {
        let mut request = Request::get("/v1/things");
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let client = SocketAddr::from(([203, 0, 113, 7], 54321));
        request.extensions_mut().insert(ConnectInfo(client));
        app.clone().oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn each_key_has_the_quota_of_its_plan_or_its_own() {
        let app = app().unwrap();
        for (key, most) in [("key-on-free", 3), ("key-on-pro", 5), ("key-of-partner", 8)] {
            for left in (0..most).rev() {
                let reply = get(&app, Some(key)).await;
                assert_eq!(reply.status(), StatusCode::OK, "{key}");
                assert_eq!(reply.headers()["x-ratelimit-remaining"], left.to_string(), "{key}");
            }
            let denied = get(&app, Some(key)).await;
            assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS, "{key}");
        }
    }

    #[tokio::test]
    async fn invented_keys_share_the_allowance_of_their_address() {
        let app = app().unwrap();
        assert_eq!(get(&app, None).await.status(), StatusCode::OK);
        assert_eq!(get(&app, Some("invented")).await.status(), StatusCode::OK);
        for key in ["another", "key-on-Pro"] {
            let denied = get(&app, Some(key)).await;
            assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS, "{key}");
        }
    }
}
