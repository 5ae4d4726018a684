//! Trailers: none says what a header may not say, and others pass where HTTP has room for them.
//!
//! Clients and upstreams that speak HTTP/1.1 and HTTP/2 meet in all four ways.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::proxy::h2c::Service;
use crate::proxy::http2::connect;
use crate::proxy::setup::{OPEN, Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok};
use crate::proxy::wire::Wire;

const PATIENCE: Duration = Duration::from_secs(60);

/// Goes by headers of its own, beside those that everybody knows.
const POLICY: &str = "[identity]\norder = ['user', 'ip']\ntrusted-proxies = ['127.0.0.1']\n\
    user = { header = 'x-who', accept = 'trusted-proxies' }\ntier-header = 'x-tier'\n";

/// What no trailer may say, in either direction.
const FORBIDDEN: [&str; 39] = [
    "x-forwarded-for",
    "x_forwarded_for",
    "X-Forwarded_Host",
    "x-forwarded-proto",
    "x-forwarded-anything",
    "forwarded",
    "x-real-ip",
    "x_real_ip",
    "cf-connecting-ip",
    "client-ip",
    "x-azure-clientip",
    "x-azure_client_ip",
    "x-envoy-external-address",
    "x-envoy_external_address",
    "x-appengine-user-ip",
    "ali-real-ip",
    "x-vercel-forwarded-for",
    "wl-forwarded",
    "true_client_ip",
    "via",
    "host",
    "content-length",
    "content_length",
    "content-type",
    "content-encoding",
    "content-range",
    "trailer",
    "authorization",
    "cookie",
    "set-cookie",
    "www-authenticate",
    "proxy-authorization",
    "proxy",
    "cache-control",
    "expect",
    "range",
    "if-none-match",
    "max-forwards",
    "ratelimit",
];
/// What this policy goes by, of requests.
const TRUSTED: [&str; 4] = ["x-who", "x_who", "x-tier", "X_Tier"];
/// What HTTP/2 has no frames for.
const OF_CONNECTIONS: [&str; 6] =
    ["connection", "transfer-encoding", "te", "upgrade", "keep-alive", "proxy-connection"];
/// What may pass, announced or not.
const ANNOUNCED: &str = "x-sum";
const UNANNOUNCED: &str = "x-late";

type Names = BTreeSet<String>;

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
    names.into_iter().map(str::to_lowercase).collect()
}

/// Every trailer that is sent: each with a value of its own.
fn sent(forbidden: &[&'static str], over_http2: bool) -> Vec<&'static str> {
    let others: &[_] = if over_http2 { &[] } else { &OF_CONNECTIONS };
    [forbidden, others, &[ANNOUNCED, UNANNOUNCED]].concat()
}

/// Chunks, and these trailers.
fn chunks(trailers: &[impl AsRef<str>]) -> String {
    let trailer = |name: &_| format!("{}: 203.0.113.9\r\n", AsRef::<str>::as_ref(name));
    let trailers: String = trailers.iter().map(trailer).collect();
    format!("5\r\nhello\r\n0\r\n{trailers}\r\n")
}

type Trailing =
    StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// The same for HTTP/2.
fn trailing(trailers: &[impl AsRef<str>]) -> Trailing {
    let value = HeaderValue::from_static("203.0.113.9");
    let trailers: HeaderMap = trailers
        .iter()
        .map(|name| (HeaderName::try_from(name.as_ref()).unwrap(), value.clone()))
        .collect();
    let frames = vec![Ok(Frame::data(Bytes::from("hello"))), Ok(Frame::trailers(trailers))];
    StreamBody::new(futures_util::stream::iter(frames))
}

/// An upstream that keeps the trailers of requests, and what it announces and sends itself.
struct Two {
    _http1: Upstream,
    _http2: Service,
    seen: Arc<Mutex<Vec<Names>>>,
    over_http1: Proxy,
    over_http2: Proxy,
}

impl Two {
    async fn start() -> Self {
        let seen = Arc::<Mutex<Vec<Names>>>::default();
        let (seen1, seen2) = (Arc::clone(&seen), Arc::clone(&seen));
        let all = announcement(&sent(&FORBIDDEN, false));
        let http1 = Upstream::answering(move |request| {
            let trailers = names(request.trailers.iter().map(|(name, _)| &**name));
            assert!(request.is_whole && request.text() == "hello", "{request:?}");
            assert!(is_announced(&trailers, request.header("trailer")), "{request:?}");
            seen1.lock().unwrap().push(trailers);
            let head = format!("trailer: {all}\r\ntransfer-encoding: chunked\r\n\r\n");
            format!("HTTP/1.1 200 OK\r\n{head}{}", chunks(&sent(&FORBIDDEN, false)))
        });
        let http2 = Service::start("127.0.0.1:0", move |request: Request<Incoming>| {
            let seen = Arc::clone(&seen2);
            async move {
                let body = request.into_body().collect().await.unwrap();
                let trailers = body.trailers().cloned().unwrap_or_default();
                seen.lock().unwrap().push(names(trailers.keys().map(HeaderName::as_str)));
                assert_eq!(body.to_bytes(), "hello");
                let all = announcement(&sent(&FORBIDDEN, true));
                let response = Response::builder().header("trailer", all);
                response.body(trailing(&sent(&FORBIDDEN, true))).unwrap()
            }
        })
        .await;
        let policy = format!("{POLICY}{OPEN}");
        let to = |url| Setup::to(&[url]).policy(&policy).start();
        let (over_http1, over_http2) = (to(http1.url()), to(http2.url()));
        Self { _http1: http1, _http2: http2, seen, over_http1, over_http2 }
    }

    /// What reached the upstream last.
    fn seen(&self) -> Names {
        self.seen.lock().unwrap().pop().unwrap()
    }
}

/// All but those that come without a word.
fn announcement(trailers: &[&str]) -> String {
    let announced: Vec<_> = trailers.iter().copied().filter(|name| *name != UNANNOUNCED).collect();
    announced.join(", ")
}

fn is_announced(trailers: &Names, announced: Option<&str>) -> bool {
    let announced = names(announced.unwrap_or_default().split(", "));
    let allowed = names([ANNOUNCED, ""]);
    trailers.is_subset(&announced) && announced.is_subset(&allowed)
}

/// Asks over HTTP/1.1, and hands out the trailers of the response.
async fn ask_http1(address: SocketAddr, te: &'static str) -> Names {
    let ask = move || {
        let trailers = sent(&[&FORBIDDEN[..], &TRUSTED, &["x-hop"]].concat(), false);
        let head = format!("trailer: {}\r\n{te}", announcement(&trailers));
        let mut wire = Wire::connect(address);
        wire.send(format!(
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: x-hop\r\n{head}\
             transfer-encoding: chunked\r\n\r\n{}",
            chunks(&trailers)
        ));
        let response = wire.response("POST").unwrap();
        assert!(response.is_whole && response.text() == "hello", "{response:?}");
        let message = names(response.trailers.iter().map(|(name, _)| &**name));
        assert!(is_announced(&message, response.header("trailer")), "{response:?}");
        message
    };
    timeout(PATIENCE, spawn_blocking(ask)).await.unwrap().unwrap()
}

/// The same over HTTP/2.
async fn ask_http2(address: SocketAddr) -> Names {
    let mut client = connect(address).await;
    let trailers = sent(&[&FORBIDDEN[..], &TRUSTED].concat(), true);
    let request = Request::post("http://a/").header("trailer", announcement(&trailers));
    let request = request.body(trailing(&trailers)).unwrap();
    let response = timeout(PATIENCE, client.send_request(request)).await.unwrap().unwrap();
    let announced = response.headers().get("trailer").map(|value| value.to_str().unwrap());
    let announced = names(announced.unwrap_or_default().split(", "));
    assert_eq!(announced, names([ANNOUNCED]));
    let body = timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap();
    let message = body.trailers().cloned().unwrap_or_default();
    assert_eq!(body.to_bytes(), "hello");
    names(message.keys().map(HeaderName::as_str))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_trailer_says_what_a_header_may_not_and_others_pass_where_there_is_room() {
    let two = Two::start().await;
    let (announced, all) = (names([ANNOUNCED]), names([ANNOUNCED, UNANNOUNCED]));
    // HTTP/1.1 has room for those that were announced, and HTTP/2 for all.
    let (http1, http2) = (two.over_http1.address, two.over_http2.address);
    assert_eq!(ask_http1(http1, "te: trailers\r\n").await, announced);
    assert_eq!(two.seen(), announced, "HTTP/1.1 to HTTP/1.1");
    assert_eq!(ask_http1(http2, "te: trailers\r\n").await, announced);
    assert_eq!(two.seen(), all, "HTTP/1.1 to HTTP/2");
    assert_eq!(ask_http2(http1).await, all);
    assert_eq!(two.seen(), announced, "HTTP/2 to HTTP/1.1");
    assert_eq!(ask_http2(http2).await, all);
    assert_eq!(two.seen(), all, "HTTP/2 to HTTP/2");
    // Who does not say that it takes trailers gets none over HTTP/1.1.
    assert_eq!(ask_http1(http1, "").await, Names::new());
    assert_eq!(ask_http1(http2, "").await, Names::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_whose_trailers_are_all_dropped_ends_as_any_other() {
    let echo = |request: Request<Incoming>| async move {
        let body = request.into_body().collect().await.unwrap();
        assert!(body.trailers().is_none_or(HeaderMap::is_empty));
        Response::new(trailing(&["via"]))
    };
    let service = Service::start("127.0.0.1:0", echo).await;
    let proxy = Setup::to(&[service.url()]).start();
    let mut client = connect(proxy.address).await;
    for _ in 0..3 {
        let request = Request::post("http://a/").body(trailing(&["forwarded"])).unwrap();
        let response = timeout(PATIENCE, client.send_request(request)).await.unwrap().unwrap();
        let body = timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap();
        assert!(body.trailers().is_none_or(HeaderMap::is_empty));
        assert_eq!(body.to_bytes(), "hello");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_trailers_are_no_message() {
    let many: Vec<_> = (0..101).map(|number| format!("x-{number}")).collect();
    // Requests: over either version the client is told.
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    let mut client = connect(proxy.address).await;
    let request = Request::post("http://a/").body(trailing(&many)).unwrap();
    let response = timeout(PATIENCE, client.send_request(request)).await.unwrap().unwrap();
    assert_eq!(response.status(), 400);
    let mut wire = proxy.connect();
    wire.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    wire.send(chunks(&many));
    assert_eq!(wire.response("POST").unwrap().status(), 400);
    assert!(upstream.requests().iter().all(|request| !request.is_whole));
    // Responses: they break off, as others do whose end is not to be understood.
    let body = chunks(&many);
    let http1 = Upstream::answering(move |_| {
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}")
    });
    let http2 = Service::start("127.0.0.1:0", move |_: Request<Incoming>| {
        std::future::ready(Response::new(trailing(&many)))
    })
    .await;
    for url in [http1.url(), http2.url()] {
        let proxy = Setup::to(std::slice::from_ref(&url)).start();
        let response = proxy.get("/");
        assert!(!response.is_whole && response.text() == "hello", "{url}: {response:?}");
    }
}
