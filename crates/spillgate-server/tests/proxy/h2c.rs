//! Upstreams that speak HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::common::server::until;
use crate::proxy::http2::connect;
use crate::proxy::setup::Setup;
use crate::proxy::upstream::{Upstream, ok};

const PATIENCE: Duration = Duration::from_secs(60);

/// A service that speaks HTTP/2 alone. It ends with the test, and its connections with it.
pub(crate) struct Service {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Service {
    pub(crate) async fn start<H, F, B>(address: impl ToSocketAddrs, handle: H) -> Self
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        Self::on(TcpListener::bind(address).await.unwrap(), handle)
    }

    /// The same for whoever connects to this from now on.
    fn on<H, F, B>(listener: TcpListener, handle: H) -> Self
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let handle = handle.clone();
                let service = service_fn(move |request| {
                    let response = handle(request);
                    async move { Ok::<_, Infallible>(response.await) }
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                connections.spawn(builder.serve_connection(TokioIo::new(socket), service));
            }
        });
        Self { address, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("h2c://{}", self.address)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn saying(
    text: &'static str,
) -> impl Fn(Request<Incoming>) -> std::future::Ready<Response<Full<Bytes>>> + Clone {
    move |_| std::future::ready(Response::new(Full::new(Bytes::from(text))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_ends_is_a_502_and_is_found_again() {
    let service = Service::start("127.0.0.79:0", saying("first")).await;
    let address = service.address;
    let proxy = Setup::to(&[service.url()]).start();
    assert_eq!(proxy.get("/").text(), "first");
    drop(service);
    until("its end", || proxy.get("/").status() == 502);
    let _service = Service::start(address, saying("second")).await;
    until("the second", || proxy.get("/").text() == "second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_does_not_speak_it_after_all_is_a_502() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[format!("h2c://{}", upstream.address)]).start();
    for _ in 0..3 {
        let response = proxy.get("/");
        assert_eq!(response.status(), 502, "{response:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_on_which_nothing_is_answered_is_not_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("h2c://{}", listener.local_addr().unwrap());
    let proxy = Setup::to(&[url]).proxy("response-timeout = '500ms'\n").start();
    let accepted = tokio::spawn(async move {
        // As if its machine had gone: nobody says that the connection is over.
        let (silent, _) = listener.accept().await.unwrap();
        (silent, Service::on(listener, saying("hello")))
    });
    assert_eq!(proxy.get("/").status(), 504);
    let _both = accepted.await.unwrap();
    assert_eq!(proxy.get("/").text(), "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_carried_out_twice_is_sent_again_if_its_connection_ends() {
    for (method, status) in [("GET", 200), ("POST", 502)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("h2c://{}", listener.local_addr().unwrap());
        let proxy = Setup::to(&[url]).start();
        let accepted = tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let (end, mut ended) = unbounded_channel();
            let service = service_fn(move |request: Request<Incoming>| {
                let end = end.clone();
                async move {
                    if request.uri().path() == "/end" {
                        end.send(()).unwrap();
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("first"))))
                }
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::select! {
                ended = builder.serve_connection(TokioIo::new(socket), service) => ended.unwrap(),
                _ = ended.recv() => {}
            }
            Service::on(listener, saying("second"))
        });
        assert_eq!(proxy.get("/").text(), "first");
        let mut client = proxy.connect();
        client.send(format!("{method} /end HTTP/1.1\r\nhost: a\r\n\r\n"));
        let response = client.response(method).unwrap();
        assert_eq!(response.status(), status, "{response:?}");
        let _service = accepted.await.unwrap();
        assert_eq!(proxy.get("/").text(), "second");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_ends_its_request_there_and_no_other() {
    let (tell, mut message) = unbounded_channel();
    let service = Service::start("127.0.0.1:0", move |request: Request<Incoming>| {
        let tell = tell.clone();
        async move {
            if request.uri().path() == "/slow" {
                tell.send("busy").unwrap();
                // Dropped when the request is.
                let _left = Left(tell);
                std::future::pending::<()>().await;
            }
            Response::new(Full::new(Bytes::from("hello")))
        }
    })
    .await;
    let proxy = Setup::to(&[service.url()]).start();
    let mut client = proxy.connect();
    client.send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(timeout(PATIENCE, message.recv()).await.unwrap(), Some("busy"));
    drop(client);
    assert_eq!(timeout(PATIENCE, message.recv()).await.unwrap(), Some("left"));
    assert_eq!(proxy.get("/").text(), "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_read_nothing_hold_nobody_up() {
    // More than all buffers on the way take together.
    let large = Bytes::from(vec![b'x'; 32 << 20]);
    let service = Service::start("127.0.0.1:0", move |request: Request<Incoming>| {
        let is_large = request.uri().path() == "/large";
        let body = if is_large { large.clone() } else { Bytes::from("hello") };
        std::future::ready(Response::new(Full::new(body)))
    })
    .await;
    let proxy = Setup::to(&[service.url()]).start();
    let mut idle: Vec<_> = (0..8).map(|_| proxy.connect()).collect();
    for client in &mut idle {
        client.send("GET /large HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.head().unwrap().status(), 200);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(proxy.get("/").text(), "hello");
    drop(idle);
}

/// Tells when a request is over.
struct Left(tokio::sync::mpsc::UnboundedSender<&'static str>);

impl Drop for Left {
    fn drop(&mut self) {
        let _ = self.0.send("left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_responses_are_judged_as_those_of_http1_are() {
    // The path says which headers it answers with, as a query does.
    let service = Service::start("127.0.0.1:0", |request: Request<Incoming>| {
        let mut response = Response::builder().status(&request.uri().path()[1..]);
        for field in request.uri().query().unwrap_or_default().split('&') {
            let (name, value) = field.split_once('=').unwrap();
            response = response.header(name, value);
        }
        std::future::ready(response.body(Empty::<Bytes>::new()).unwrap())
    })
    .await;
    let proxy = Setup::to(&[service.url()]).start();
    let fields = |count: usize| {
        let fields: Vec<_> = (0..count).map(|number| format!("x-{number}=y")).collect();
        fields.join("&")
    };
    // Its date is one more.
    let (most, too_many) = (fields(99), fields(100));
    let same = vec!["x=y"; 100].join("&");
    let refused = [
        "content-length=abc",
        "content-length=-5",
        "content-length=+5",
        "content-length=",
        "content-length=5&content-length=6",
        "content-length=5,%205",
        &too_many,
        &same,
    ];
    for (method, status) in [("HEAD", "200"), ("GET", "200"), ("GET", "204"), ("GET", "304")] {
        let ask = |query: &str| {
            let mut wire = proxy.connect();
            wire.send(format!("{method} /{status}?{query} HTTP/1.1\r\nhost: a\r\n\r\n"));
            wire.response(method).unwrap()
        };
        for query in refused {
            assert_eq!(ask(query).status(), 502, "{method} {status} {query}");
        }
        assert_eq!(ask(&most).status().to_string(), status, "{method} {status} {most}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ends_can_talk_at_the_same_time() {
    let echo = |request: Request<Incoming>| std::future::ready(Response::new(request.into_body()));
    let service = Service::start("127.0.0.1:0", echo).await;
    let proxy = Setup::to(&[service.url()]).start();
    let mut client = connect(proxy.address).await;
    let (say, said) = unbounded_channel::<Bytes>();
    let frames = unfold(said, |mut said| async move {
        said.recv().await.map(|bytes| (Ok::<_, Infallible>(Frame::data(bytes)), said))
    });
    let request =
        Request::post("http://example.test/").body(StreamBody::new(frames).boxed_unsync());
    let asked = client.send_request(request.unwrap());
    let mut response = timeout(PATIENCE, asked).await.unwrap().unwrap();
    for word in ["one", "two", "three"] {
        say.send(Bytes::from(word)).unwrap();
        let frame = timeout(PATIENCE, response.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), word);
    }
    drop(say);
    let rest = timeout(PATIENCE, response.collect()).await.unwrap().unwrap();
    assert!(rest.to_bytes().is_empty());
}
