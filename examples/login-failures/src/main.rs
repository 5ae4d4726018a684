//! A login on which only failures count.
//!
//! Three wrong passwords, and the address is locked out for a while; right ones are free. Each attempt is counted when
//! it begins, so that concurrent guesses are no more than three, and refunded when it turns out to be right: `settle`
//! looks at the status of the response. (The headers describe the decision, so they still include an attempt that is
//! refunded a moment later.)
//!
//! ```text
//! cargo run -p login-failures
//! curl -i -d 'user=admin&password=wrong' http://127.0.0.1:3000/login
//! curl -i -d 'user=admin&password=open-sesame' http://127.0.0.1:3000/login
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Form, Router};
use serde::Deserialize;
use spillgate_policy::{Gate, Limit, Policy, Settle};
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;

fn app() -> Result<Router, spillgate_policy::Error> {
    let login = Limit::new("login", "3 per 10 min")
        .path("/login")
        .methods(["POST"])
        // Not per user: then anyone could lock anyone out.
        .per(["ip"])
        // The cost stands if the response is a 401, and is refunded otherwise.
        .settle(Settle::status(["401"]));
    let policy = Policy::builder().limit(login).build()?;
    Ok(Router::new()
        .route("/", get(async || "Please log in.\n"))
        .route("/login", post(log_in))
        .layer(SpillgateLayer::new(Gate::new(policy)?)))
}

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

/// A real one compares password hashes.
async fn log_in(Form(login): Form<Login>) -> (StatusCode, &'static str) {
    if login.user == "admin" && login.password == "open-sesame" {
        (StatusCode::OK, "Welcome.\n")
    } else {
        (StatusCode::UNAUTHORIZED, "Wrong user or password.\n")
    }
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
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    async fn send(app: &Router, request: Request<String>) -> StatusCode {
        let mut request = request.map(Body::from);
        let client = SocketAddr::from(([203, 0, 113, 7], 54321));
        request.extensions_mut().insert(ConnectInfo(client));
        app.clone().oneshot(request).await.unwrap().status()
    }

    async fn log_in(app: &Router, password: &str) -> StatusCode {
        let form = format!("user=admin&password={password}");
        let request = Request::post("/login")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form);
        send(app, request.unwrap()).await
    }

    #[tokio::test]
    async fn only_failures_count() {
        let app = app().unwrap();
        for _ in 0..5 {
            assert_eq!(log_in(&app, "open-sesame").await, StatusCode::OK);
        }
        assert_eq!(log_in(&app, "123456").await, StatusCode::UNAUTHORIZED);
        assert_eq!(log_in(&app, "qwerty").await, StatusCode::UNAUTHORIZED);
        // A right one in between is free, and resets nothing.
        assert_eq!(log_in(&app, "open-sesame").await, StatusCode::OK);
        assert_eq!(log_in(&app, "letmein").await, StatusCode::UNAUTHORIZED);
        // From now on not even the right one is tried.
        assert_eq!(log_in(&app, "open-sesame").await, StatusCode::TOO_MANY_REQUESTS);
        // Other pages are not affected.
        let home = Request::get("/").body(String::new()).unwrap();
        assert_eq!(send(&app, home).await, StatusCode::OK);
    }
}
