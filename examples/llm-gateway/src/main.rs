//! Language model tokens over HTTP, reserved before the call and settled by its response.
//!
//! The gateway takes 500 tokens from a team's budget before it asks the model, so that concurrent calls cannot spend
//! the same tokens. A response header reports how many were used, and Spillgate corrects the budget. `llm-budget` does
//! the same within a program, without a server.
//!
//! ```text
//! cargo run -p llm-gateway
//! curl -i -H 'x-api-key: team-1' -d 'write a haiku' http://127.0.0.1:3000/complete
//! curl -H 'x-api-key: team-1' http://127.0.0.1:3000/budget
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use spillgate_policy::{Gate, Policy};
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;

// If the model has answered, the header decides what it cost. If it failed, the 500 are refunded.
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

fn app() -> Result<Router, spillgate_policy::Error> {
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

/// How many tokens the model used, and its answer.
fn model(prompt: &str) -> Option<(&'static str, &'static str)> {
    match prompt {
        "write a haiku" => Some(("60", "Five syllables here,\n")),
        "read the archive" => Some(("2400", "It is about spillways.\n")),
        _ => None,
    }
}

/// A gate can also be asked about a limit by name, here without spending.
async fn budget(State(gate): State<Arc<Gate>>, headers: HeaderMap) -> Result<String, StatusCode> {
    let key = headers.get("x-api-key").and_then(|key| key.to_str().ok());
    let team = format!("api-key:{}", key.ok_or(StatusCode::UNAUTHORIZED)?);
    let state = gate.peek_limit("tokens", &[&team], 1).await;
    let state = state.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(format!("{} of {}", state.remaining(), state.limit()))
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
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    async fn send(
        app: &Router,
        team: &str,
        request: Request<&'static str>,
    ) -> (StatusCode, String) {
        let mut request = request.map(Body::from);
        request.headers_mut().insert("x-api-key", team.parse().unwrap());
        let response = app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.into()).unwrap())
    }

    async fn complete(app: &Router, team: &str, prompt: &'static str) -> StatusCode {
        send(app, team, Request::post("/complete").body(prompt).unwrap()).await.0
    }

    async fn budget(app: &Router, team: &str) -> String {
        send(app, team, Request::get("/budget").body("").unwrap()).await.1
    }

    #[tokio::test]
    async fn what_an_answer_did_not_use_is_refunded() {
        let app = app().unwrap();
        assert_eq!(complete(&app, "team-1", "write a haiku").await, StatusCode::OK);
        assert_eq!(budget(&app, "team-1").await, "1940 of 2000");
        // A failed call is free.
        assert_eq!(complete(&app, "team-1", "divide by zero").await, StatusCode::BAD_GATEWAY);
        assert_eq!(budget(&app, "team-1").await, "1940 of 2000");
    }

    #[tokio::test]
    async fn an_answer_beyond_the_budget_is_a_debt_of_that_team_alone() {
        let app = app().unwrap();
        assert_eq!(complete(&app, "team-1", "read the archive").await, StatusCode::OK);
        assert_eq!(budget(&app, "team-1").await, "0 of 2000");
        let denied = complete(&app, "team-1", "write a haiku").await;
        assert_eq!(denied, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(complete(&app, "team-2", "write a haiku").await, StatusCode::OK);
        assert_eq!(budget(&app, "team-2").await, "1940 of 2000");
    }
}
