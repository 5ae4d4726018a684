//! A login at which only failures count.
//!
//! Whoever guesses passwords is stopped after three wrong ones; whoever knows theirs may log
//! in as often as they like. Each attempt is counted when it begins, so that many at the
//! same time are no more than three, and given back when it turns out to be right: `settle`
//! goes by the status of the response. (The headers speak of when the request was decided, so
//! they count an attempt that is given back a moment later.)
//!
//! `cargo run -p login-failures` visits the server and checks what comes back; `-- --serve`
//! just serves.

use std::net::SocketAddr;

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Form, Router};
use serde::Deserialize;
use spillgate_policy::{Error, Gate, Limit, Policy, Settle};
use spillgate_tower::SpillgateLayer;
use visit::{Client, Outcome, Visit};

const TO_TRY: &str = "
curl -i -d 'user=admin&password=wrong' URL/login
curl -i -d 'user=admin&password=open-sesame' URL/login
";

fn app() -> Result<Router, Error> {
    let login = Limit::new("login", "3 per 10 min")
        .path("/login")
        .methods(["POST"])
        // Not per user: then anyone could lock anyone out.
        .per(["ip"])
        // The cost stands if the response is a 401, and is given back otherwise.
        .settle(Settle::status(["401"]));
    let policy = Policy::builder().limit(login).build()?;
    Ok(Router::new()
        .route("/", get(async || "Please log in.\n"))
        .route("/login", post(login_form))
        .layer(SpillgateLayer::new(Gate::new(policy)?)))
}

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

/// A real one compares hashes.
async fn login_form(Form(login): Form<Login>) -> (StatusCode, &'static str) {
    if login.user == "admin" && login.password == "open-sesame" {
        (StatusCode::OK, "Welcome.\n")
    } else {
        (StatusCode::UNAUTHORIZED, "Wrong user or password.\n")
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (listener, visit) = Visit::begin().await?;
    let server = axum::serve(listener, app()?.into_make_service_with_connect_info::<SocketAddr>());
    visit.play(server, TO_TRY, script).await
}

async fn script(client: Client) -> Outcome {
    println!("The right password, as often as one likes. Each attempt is given back:");
    for _ in 0..5 {
        assert_eq!(log_in(&client, "open-sesame").await?, 200);
    }

    println!("\nWrong ones count:");
    assert_eq!(log_in(&client, "123456").await?, 401);
    assert_eq!(log_in(&client, "qwerty").await?, 401);

    println!("\nA right one in between costs nothing, and forgives nothing:");
    assert_eq!(log_in(&client, "open-sesame").await?, 200);
    assert_eq!(log_in(&client, "letmein").await?, 401);

    println!("\nFrom now on not even the right one is looked at, until a failure is forgiven:");
    assert_eq!(log_in(&client, "open-sesame").await?, 429);

    println!("\nOther pages are not concerned:");
    assert_eq!(client.get("/").await?.status, 200);
    Ok(())
}

async fn log_in(client: &Client, password: &str) -> Outcome<StatusCode> {
    Ok(client.post("/login", format!("user=admin&password={password}")).await?.status)
}
