//! Public and authenticated routes with limits of their own, and a tier that has more of
//! each.
//!
//! Requests pass three things, the outermost first:
//!
//! 1. `authenticate` finds out which user a token belongs to;
//! 2. Spillgate, which counts users apart, and addresses where there is no user;
//! 3. the routes, one of which has another, stricter layer to itself.
//!
//! Since Spillgate stands before the routes, whoever tries out tokens is limited, too.
//!
//! `cargo run -p route-tiers` visits the server and checks what comes back;
//! `-- --serve` just serves.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use spillgate_policy::{Accept, Error, Gate, Identity, Limit, Policy, Tier};
use spillgate_tower::SpillgateLayer;
use visit::{Client, Outcome, Visit};

const TO_TRY: &str = "
curl -i URL/docs/start
curl -i URL/account/orders
curl -i -H 'authorization: Bearer token-1' URL/account/orders
curl -i -H 'authorization: Bearer token-2' URL/account/orders
curl -i -H 'authorization: Bearer token-2' URL/account/export
";

static USER: HeaderName = HeaderName::from_static("x-user-id");

fn app() -> Result<Router, Error> {
    // Any user is believed, since `authenticate` has written the header itself.
    let identity = Identity::new().user(USER.as_str(), Accept::Any);
    let policy = Policy::builder()
        .identity(identity.clone())
        .limit(Limit::new("public", "3/min").path("/docs/{*page}").per(["ip"]))
        .limit(Limit::new("account", "4/min").path("/account/{*page}"))
        .limit(Limit::new("search", "2/min").path("/search"))
        // A tier can have a quota under each limit, or keep that of the limit.
        .tier(
            "pro",
            Tier::new().callers(["user:2"]).quota("account", "6/min").quota("search", "5/min"),
        )
        .build()?;
    // This one is for a single route, so it needs no path. An export that it refuses has
    // been counted under "account" already: gates know nothing of each other. Within one
    // policy a request is counted under all of its limits or, if one refuses, under none.
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

/// Says in a header who the user is, in place of whatever the client says there.
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
async fn main() -> Outcome {
    let (listener, visit) = Visit::begin().await?;
    let server = axum::serve(listener, app()?.into_make_service_with_connect_info::<SocketAddr>());
    visit.play(server, TO_TRY, script).await
}

async fn script(client: Client) -> Outcome {
    println!("Public pages are counted per address, with a token or without:");
    assert_eq!(client.get("/docs/start").await?.status, 200);
    assert_eq!(client.get("/docs/start").await?.status, 200);
    assert_eq!(as_user(&client, 1, "/docs/start").await?.status, 200);
    assert_eq!(as_user(&client, 1, "/docs/start").await?.status, 429);

    println!("\nThe export has a layer of its own within the other, and so two limits:");
    assert_eq!(as_user(&client, 2, "/account/export").await?.status, 200);
    let refused = as_user(&client, 2, "/account/export").await?;
    assert_eq!(refused.status, 429);
    assert!(refused.body.contains(r#""violated-policies":["export"]"#));

    println!(
        "\nThe account is counted per user: 4 for user 1, and 6 for user 2, less two exports:"
    );
    for user in [1, 2] {
        for left in (0..4).rev() {
            let reply = as_user(&client, user, "/account/orders").await?;
            assert_eq!(reply.status, 200);
            assert_eq!(reply.header("x-ratelimit-remaining"), left.to_string());
        }
        assert_eq!(as_user(&client, user, "/account/orders").await?.status, 429);
    }

    println!("\nSearching has another limit, and the tier another quota there:");
    assert_eq!(as_user(&client, 1, "/search").await?.header("x-ratelimit-limit"), "2");
    assert_eq!(as_user(&client, 2, "/search").await?.header("x-ratelimit-limit"), "5");

    println!("\nWhoever only says who they are does not come in, and may not try for long:");
    for _ in 0..4 {
        let reply = client.get("/account/orders").header("x-user-id", "2").await?;
        assert_eq!(reply.status, 401);
    }
    assert_eq!(client.get("/account/orders").header("x-user-id", "2").await?.status, 429);
    Ok(())
}

async fn as_user(client: &Client, user: u8, path: &str) -> Outcome<visit::Reply> {
    client.get(path).header("authorization", format!("Bearer token-{user}")).await
}
