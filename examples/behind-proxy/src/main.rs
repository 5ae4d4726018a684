//! A hyper server behind a reverse proxy, where a client cannot lie about its address.
//!
//! All requests come from the proxy, so the address at the other end of the connection says
//! nothing about the client. The proxy tells it in a header, which anyone can write. So the
//! policy names the proxies that are believed, and of a list of addresses only what they
//! have appended counts. In nginx, which is at 127.0.0.1 here:
//!
//! ```nginx
//! location / {
//!     proxy_pass http://127.0.0.1:8080;
//!     # Appends the client's address to whatever the client has sent in this header.
//!     proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
//! }
//! ```
//!
//! The server is hyper's alone. axum and tonic say who is at the other end of a connection;
//! here the program does, with [`PeerAddr`].
//!
//! `cargo run -p behind-proxy` visits the server and checks what comes back; `-- --serve`
//! just serves.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spillgate_policy::{Error, Gate, Identity, Limit, Policy};
use spillgate_tower::{PeerAddr, SpillgateLayer};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};
use visit::{Ask, Client, Outcome, Visit};

const TO_TRY: &str = "
curl -i -H 'x-forwarded-for: 203.0.113.7' URL/
curl -i -H 'x-forwarded-for: 203.0.113.8' URL/
curl -i -H 'x-forwarded-for: 192.0.2.1, 203.0.113.7' URL/
curl -i --interface 127.0.0.2 -H 'x-forwarded-for: 192.0.2.1' URL/
";

fn layer() -> Result<SpillgateLayer, Error> {
    let policy = Policy::builder()
        // A single address, or the range that the load balancers are in. Never more: every
        // machine in it can say that it is anyone.
        .identity(Identity::new().trusted_proxies(["127.0.0.1"]))
        .limit(Limit::new("all", "2/min"))
        .build()?;
    Ok(SpillgateLayer::new(Gate::new(policy)?))
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello.\n")))
}

async fn serve(listener: TcpListener, layer: SpillgateLayer) -> io::Result<()> {
    let limited = layer.layer(tower::service_fn(hello));
    loop {
        let (stream, peer) = listener.accept().await?;
        let limited = limited.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(PeerAddr(peer.ip()));
            limited.clone().oneshot(request)
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // What goes wrong with one connection is no concern of the others.
        tokio::spawn(async move { drop(connection.await) });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (listener, visit) = Visit::begin().await?;
    visit.play(serve(listener, layer()?), TO_TRY, script).await
}

async fn script(client: Client) -> Outcome {
    println!("Clients of the proxy are told apart:");
    for address in ["203.0.113.7", "203.0.113.8"] {
        assert_eq!(by_proxy(&client, None, address).await?.status, 200);
        assert_eq!(by_proxy(&client, None, address).await?.status, 200);
        assert_eq!(by_proxy(&client, None, address).await?.status, 429);
    }

    println!("\nOne that claims to be another is still the one that the proxy has seen:");
    for claim in ["192.0.2.1", "192.0.2.2", "127.0.0.1", "no address"] {
        assert_eq!(by_proxy(&client, Some(claim), "203.0.113.7").await?.status, 429);
    }

    println!("\nOne that goes around the proxy, from 127.0.0.2, is not believed at all:");
    let outsider = client.at([127, 0, 0, 2]);
    for (claim, status) in [("192.0.2.1", 200), ("192.0.2.2", 200), ("192.0.2.3", 429)] {
        let reply = outsider.get("/").header("x-forwarded-for", claim).await?;
        assert_eq!(reply.status, status);
    }

    println!("\nAnd nothing of that was at the expense of those they claimed to be:");
    assert_eq!(by_proxy(&client, None, "192.0.2.1").await?.header("x-ratelimit-remaining"), "1");
    Ok(())
}

/// What the server gets of a request that a client with this address sends to the proxy.
fn by_proxy(proxy: &Client, claim: Option<&str>, address: &str) -> Ask {
    let claim = claim.map(|claim| format!("{claim}, ")).unwrap_or_default();
    proxy.get("/").header("x-forwarded-for", format!("{claim}{address}"))
}
