//! A hyper server behind a reverse proxy, where a client cannot forge its address.
//!
//! All connections come from the proxy, so the peer address says nothing about the client. The proxy reports it in a
//! header, which anyone can write. So the policy lists the trusted proxies, and of `X-Forwarded-For` only what they
//! have appended counts. In nginx, here at 127.0.0.1:
//!
//! ```nginx
//! location / {
//!     proxy_pass http://127.0.0.1:3000;
//!     # Appends the client's address to whatever the client has sent in this header.
//!     proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
//! }
//! ```
//!
//! This is hyper alone. axum and tonic put the peer address into the extensions of a request; here the program does,
//! as [`PeerAddr`].
//!
//! ```text
//! cargo run -p behind-proxy
//! curl -i -H 'x-forwarded-for: 203.0.113.7' http://127.0.0.1:3000/
//! curl -i -H 'x-forwarded-for: 192.0.2.1, 203.0.113.7' http://127.0.0.1:3000/
//! curl -i --interface 127.0.0.2 -H 'x-forwarded-for: 192.0.2.1' http://127.0.0.1:3000/
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spillgate_policy::{Gate, Identity, Limit, Policy};
use spillgate_tower::{PeerAddr, SpillgateLayer};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};

fn layer() -> Result<SpillgateLayer, spillgate_policy::Error> {
    let policy = Policy::builder()
        // One address, or the range of the load balancers. Never more: every machine in it can claim any address.
        .identity(Identity::new().trusted_proxies(["127.0.0.1"]))
        .limit(Limit::new("all", "2/min"))
        .build()?;
    Ok(SpillgateLayer::new(Gate::new(policy)?))
}

async fn hello<B>(_: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello.\n")))
}

async fn serve(listener: TcpListener, layer: SpillgateLayer) -> io::Result<()> {
    let limited = layer.layer(tower::service_fn(hello));
    loop {
        let (stream, peer) = listener.accept().await?;
        let limited = limited.clone();
        let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(PeerAddr(peer.ip()));
            limited.clone().oneshot(request)
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // One broken connection does not affect the others.
        tokio::spawn(async move { drop(connection.await) });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    serve(listener, layer()?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use spillgate_tower::ResponseBody;

    use super::*;

    type Answer = Response<ResponseBody<Full<Bytes>>>;

    const PROXY: [u8; 4] = [127, 0, 0, 1];

    /// Sends a request from an address, with what `X-Forwarded-For` holds by then.
    async fn send(layer: &SpillgateLayer, peer: [u8; 4], forwarded: &str) -> Answer {
        let mut request = Request::get("/").header("x-forwarded-for", forwarded).body(()).unwrap();
        request.extensions_mut().insert(PeerAddr(peer.into()));
        layer.layer(tower::service_fn(hello)).oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn clients_of_the_proxy_have_allowances_of_their_own() {
        let layer = layer().unwrap();
        for client in ["203.0.113.7", "203.0.113.8"] {
            assert_eq!(send(&layer, PROXY, client).await.status(), StatusCode::OK);
            assert_eq!(send(&layer, PROXY, client).await.status(), StatusCode::OK);
            let denied = send(&layer, PROXY, client).await;
            assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
        }
        // What a client writes itself stands before what the proxy appends, and is ignored.
        for claim in ["192.0.2.1", "192.0.2.2", "127.0.0.1", "no address"] {
            let forged = format!("{claim}, 203.0.113.7");
            let denied = send(&layer, PROXY, &forged).await;
            assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS, "{claim}");
        }
        // Nor does it count against the one that was claimed.
        let other = send(&layer, PROXY, "192.0.2.1").await;
        assert_eq!(other.headers()["x-ratelimit-remaining"], "1");
    }

    #[tokio::test]
    async fn a_peer_that_is_not_the_proxy_is_not_believed() {
        let layer = layer().unwrap();
        for (claim, status) in [("192.0.2.1", 200), ("192.0.2.2", 200), ("192.0.2.3", 429)] {
            assert_eq!(send(&layer, [203, 0, 113, 9], claim).await.status(), status, "{claim}");
        }
    }
}
