//! Responses that an upstream breaks off, all at once: the client gets what came, and sees that
//! there should be more.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use spillgate_testing::certificates::self_signed;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::common::server::{Home, until};
use crate::proxy::frames::{
    DATA, END_HEADERS, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame,
};
use crate::proxy::http2::connect;
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::Upstream;
use crate::proxy::wire::Wire;

const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that an upstream sends in one piece before it hangs up, and the body that is in them.
type Answer = (&'static str, Vec<u8>, &'static str);

fn over_http1() -> Vec<Answer> {
    let with = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}");
    let sized = |body| with("content-length: 50\r\n", body).into_bytes();
    let chunked = |body| with("transfer-encoding: chunked\r\n", body).into_bytes();
    vec![
        ("a length that is too long", sized("some"), "some"),
        ("a length, and nothing after the head", sized(""), ""),
        ("a chunk that breaks off", chunked("8\r\nsome"), "some"),
        ("a chunk without its end", chunked("4\r\nsome"), "some"),
        ("chunks without the last", chunked("4\r\nsome\r\n"), "some"),
        ("a last chunk without its end", chunked("4\r\nsome\r\n0\r\n"), "some"),
        ("trailers that break off", chunked("4\r\nsome\r\n0\r\nx: "), "some"),
        ("chunks, and nothing after the head", chunked(""), ""),
        ("a chunk that is none", chunked("4\r\nsome\r\nx\r\n"), "some"),
    ]
}

fn over_http2() -> Vec<Answer> {
    // Status 200, as a name and value that both sides know.
    let head = frame(HEADERS, END_HEADERS, 1, &[0x88]);
    let data = frame(DATA, 0, 1, b"some");
    let reset = frame(RST_STREAM, 0, 1, &[0, 0, 0, 2]);
    let goaway = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 2]);
    vec![
        ("a reset", [&*head, &data, &reset].concat(), "some"),
        ("a reset after the head", [&*head, &reset].concat(), ""),
        ("a farewell", [&*head, &data, &goaway].concat(), "some"),
        ("an end of the connection", [&*head, &data].concat(), "some"),
    ]
}

/// Reads frames of a client until its request is there.
fn await_request(wire: &mut Wire) {
    wire.take(PREFACE.len());
    loop {
        let [a, b, c, kind, ..] = wire.take(9)[..] else { return };
        wire.take(u32::from_be_bytes([0, a, b, c]) as usize);
        if kind == HEADERS {
            return;
        }
    }
}

/// Asks over either version, and tells what is not as it should be.
async fn judge(proxy: &Proxy, name: &str, expected: &str) {
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let response = client.response("GET").unwrap_or_else(|| panic!("{name}: an empty reply"));
    assert_eq!((response.status(), response.is_whole), (200, false), "{name}: {response:?}");
    assert_eq!(response.text(), expected, "{name}");
    let mut client = connect(proxy.address).await;
    let request = Request::get("http://example.test/").body(Empty::<Bytes>::new()).unwrap();
    let response = timeout(PATIENCE, client.send_request(request)).await.unwrap().unwrap();
    assert_eq!(response.status(), 200, "{name}");
    let (mut body, mut came) = (response.into_body(), Vec::new());
    let end = loop {
        match timeout(PATIENCE, body.frame()).await.unwrap() {
            Some(Ok(frame)) => came.extend(frame.into_data().unwrap()),
            end => break end,
        }
    };
    assert!(end.is_some_and(|end| end.is_err()), "{name} ends over HTTP/2");
    assert_eq!(String::from_utf8(came).unwrap(), expected, "{name} over HTTP/2");
    // Both are counted as what they were.
    let count = |name: &str| proxy.metric(&format!("spillgate_proxy_{name}")).unwrap();
    until("the count", || count("requests_total{status=\"incomplete\"}") >= 2.0);
    assert_eq!(count("requests_total{status=\"2xx\"}"), 0.0, "{name}");
    assert_eq!(count("failures_total{kind=\"broken\"}"), 2.0, "{name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_over_http1_is_passed_on_and_broken_off() {
    for (name, sent, body) in over_http1() {
        let upstream = Upstream::playing(move |mut wire, seen| {
            if seen.next(&mut wire).is_some() {
                wire.send(&sent);
            }
        });
        judge(&Proxy::to(&upstream), name, body).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_over_http2_is_passed_on_and_broken_off() {
    for (name, sent, body) in over_http2() {
        let upstream = Upstream::playing(move |mut wire, _| {
            await_request(&mut wire);
            wire.send([&*frame(SETTINGS, 0, 0, &[]), &sent].concat());
        });
        let proxy = Setup::to(&[format!("h2c://{}", upstream.address)]).start();
        judge(&proxy, name, body).await;
    }
}

/// Answers over TLS, and hangs up without the word that this is the end.
fn cut_tls(listener: TcpListener, config: Arc<ServerConfig>, sent: Vec<u8>) {
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if std::io::Read::read(&mut stream, &mut byte).unwrap_or(0) == 0 {
                    break;
                }
                head.extend(byte);
            }
            let _ = stream.write_all(&sent).and_then(|()| stream.flush());
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_of_tls_that_anyone_could_have_made_is_none() {
    let own = self_signed(&["localhost"]);
    let certificate = CertificateDer::from_pem_slice(own.pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nsome".to_vec();
    let answers = over_http1().into_iter().filter(|(.., body)| !body.is_empty());
    for (name, sent, body) in answers.chain([("a body without a length", until_close, "some")]) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        cut_tls(listener, Arc::clone(&config), sent);
        let setup = Setup::to(&[url]).proxy("upstream-ca = 'ca.pem'\n");
        let home = Home::new(&setup.file());
        std::fs::write(home.path("ca.pem"), &own.pem).unwrap();
        judge(&setup.start_in(home), name, body).await;
    }
}

#[test]
fn a_client_that_reads_late_gets_all_that_came_before_the_end() {
    // More than the proxy and the system keep for a client that does not read.
    const COUNT: usize = 32 << 20;
    let upstream = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire).unwrap();
        wire.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", COUNT + 1));
        wire.send(vec![b'x'; COUNT]);
    });
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), 200);
    assert_eq!(client.rest().len(), COUNT);
}
