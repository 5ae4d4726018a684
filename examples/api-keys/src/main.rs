//! API keys and plans: a policy from a file, and closures that know the keys.
//!
//! How much each plan may do stands in `policy.toml`, where it can be read and changed. Who
//! has which plan stands wherever the service keeps its customers, here a map. Two closures
//! bring them together: one says which keys there are, the other in which tier a key is.
//!
//! A key that nobody was given is as good as none. Otherwise whoever is refused would send
//! another one, and start afresh.
//!
//! `cargo run -p api-keys` visits the server and checks what comes back; `-- --serve` just
//! serves.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use spillgate_policy::{Accept, Caller, Error, Gate, Identity, Policy, PolicyBuilder};
use spillgate_tower::SpillgateLayer;
use visit::{Client, Outcome, Visit};

const TO_TRY: &str = "
curl -i URL/v1/things
curl -i -H 'x-api-key: key-on-free' URL/v1/things
curl -i -H 'x-api-key: key-on-pro' URL/v1/things
curl -i -H 'x-api-key: key-of-partner' URL/v1/things
curl -i -H 'x-api-key: invented' URL/v1/things
";

/// The plan of each key.
type Plans = HashMap<&'static [u8], &'static str>;

fn plans() -> Plans {
    HashMap::from([
        (b"key-on-free".as_slice(), "free"),
        (b"key-on-pro", "pro"),
        (b"key-of-partner", "pro"),
    ])
}

fn policy(plans: Plans) -> Result<Policy, Error> {
    let plans = Arc::new(plans);
    let keys = Arc::clone(&plans);
    let accept = Accept::closure(move |key| keys.contains_key(key));
    PolicyBuilder::from_toml(include_str!("../policy.toml"))?
        // In place of the file's `[identity]`, which has none.
        .identity(Identity::new().api_key("x-api-key", accept))
        // Asked for every request, so both closures should be quick: look into memory, and
        // keep that up to date from elsewhere.
        .tier_of(move |_request, caller| match caller {
            Caller::ApiKey(key) => plans.get(key.as_ref()).copied().map(Cow::Borrowed),
            _ => None,
        })
        .build()
}

fn app() -> Result<Router, Error> {
    let gate = Gate::new(policy(plans())?)?;
    Ok(Router::new()
        .route("/v1/things", get(async || "Things.\n"))
        .layer(SpillgateLayer::new(gate)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (listener, visit) = Visit::begin().await?;
    let server = axum::serve(listener, app()?.into_make_service_with_connect_info::<SocketAddr>());
    visit.play(server, TO_TRY, script).await
}

async fn script(client: Client) -> Outcome {
    for (key, most) in [("key-on-free", 3), ("key-on-pro", 5), ("key-of-partner", 8)] {
        println!("{key} may send {most}:");
        for left in (0..most).rev() {
            let reply = client.get("/v1/things").header("x-api-key", key).await?;
            assert_eq!(reply.status, 200);
            assert_eq!(reply.header("x-ratelimit-remaining"), left.to_string());
        }
        let refused = client.get("/v1/things").header("x-api-key", key).await?;
        assert_eq!(refused.status, 429);
        println!();
    }

    println!("Whoever has no key shares the two of their address, and inventing keys is no help:");
    assert_eq!(client.get("/v1/things").await?.status, 200);
    assert_eq!(client.get("/v1/things").header("x-api-key", "invented").await?.status, 200);
    assert_eq!(client.get("/v1/things").header("x-api-key", "another").await?.status, 429);
    assert_eq!(client.get("/v1/things").header("x-api-key", "key-on-Pro").await?.status, 429);
    Ok(())
}
