//! Language model tokens over HTTP, reserved before the call and settled by its response.
//!
//! The gateway takes 500 tokens from a team's budget before it asks the model, which keeps
//! calls that run at the same time from spending the same tokens. The response tells in a
//! header how many it really were, and Spillgate corrects the budget by it. `llm-budget` does
//! the same within a program, without a server.
//!
//! `cargo run -p llm-gateway` visits the server and checks what comes back; `-- --serve`
//! just serves.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use spillgate_policy::{Error, Gate, Policy};
use spillgate_tower::SpillgateLayer;
use visit::{Client, Outcome, Visit};

const TO_TRY: &str = "
curl -i -H 'x-api-key: team-1' -d 'write a haiku' URL/complete
curl -i -H 'x-api-key: team-1' -d 'read the archive' URL/complete
curl -H 'x-api-key: team-1' URL/budget
";

// The cost stands, as the header corrects it, if the model has answered. If it failed, it
// is given back.
const POLICY: &str = r#"
    [identity]
    api-key = { header = "x-api-key", accept = ["team-1", "team-2"] }

    [[limit]]
    name = "tokens"
    match = { path = "/complete" }
    quota = "2000/day"
    cost = 500
    settle = { status = "2xx", header = "x-tokens-used" }
"#;

fn app() -> Result<Router, Error> {
    let gate = Arc::new(Gate::new(Policy::from_toml(POLICY)?)?);
    Ok(Router::new()
        .route("/complete", post(complete))
        .route("/budget", get(budget))
        .layer(SpillgateLayer::new(Arc::clone(&gate)))
        .with_state(gate))
}

async fn complete(prompt: String) -> Response {
    match model(&prompt) {
        Some((tokens, answer)) => ([("x-tokens-used", tokens)], answer).into_response(),
        None => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// How many tokens the model took, and what it said.
fn model(prompt: &str) -> Option<(&'static str, &'static str)> {
    match prompt {
        "write a haiku" => Some(("60", "Five syllables here,\n")),
        "read the archive" => Some(("2400", "It is about tolls.\n")),
        _ => None,
    }
}

/// A gate can also be asked by name, here without spending.
async fn budget(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Result<String, StatusCode> {
    let key = headers.get("x-api-key").and_then(|key| key.to_str().ok());
    let team = format!("api-key:{}", key.ok_or(StatusCode::UNAUTHORIZED)?);
    let state = gate.peek_limit("tokens", &[&team], 1).await;
    let state = state.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(format!("{} of {}", state.remaining(), state.limit()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (listener, visit) = Visit::begin().await?;
    let server = axum::serve(listener, app()?.into_make_service_with_connect_info::<SocketAddr>());
    visit.play(server, TO_TRY, script).await
}

async fn script(client: Client) -> Outcome {
    println!("A short answer: of the 500 that were taken, 440 are given back.");
    assert_eq!(ask(&client, "team-1", "write a haiku").await?, 200);
    assert_eq!(left(&client, "team-1").await?, "1940 of 2000");

    println!("\nThe model fails, which costs nothing.");
    assert_eq!(ask(&client, "team-1", "divide by zero").await?, 502);
    assert_eq!(left(&client, "team-1").await?, "1940 of 2000");

    println!("\nAn answer longer than the budget puts the team into debt, to be paid off first.");
    assert_eq!(ask(&client, "team-1", "read the archive").await?, 200);
    assert_eq!(left(&client, "team-1").await?, "0 of 2000");
    assert_eq!(ask(&client, "team-1", "write a haiku").await?, 429);

    println!("\nThat is no concern of the other team.");
    assert_eq!(ask(&client, "team-2", "write a haiku").await?, 200);
    assert_eq!(left(&client, "team-2").await?, "1940 of 2000");
    Ok(())
}

async fn ask(client: &Client, team: &str, prompt: &str) -> Outcome<StatusCode> {
    Ok(client.post("/complete", prompt).header("x-api-key", team).await?.status)
}

async fn left(client: &Client, team: &str) -> Outcome<String> {
    let left = client.get("/budget").header("x-api-key", team).await?.body;
    println!("    {left} tokens are left");
    Ok(left)
}
