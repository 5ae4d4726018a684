//! TLS on both sides, and which HTTP is agreed upon.

use std::io::{Read, Write};
use std::sync::Arc;

use spillgate_testing::program;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::server::{Home, run};
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok};

const TLS: &str = "tls-cert = 'cert.pem'\ntls-key = 'key.pem'\n";

/// A proxy that speaks TLS to its clients, with a certificate for localhost.
fn start(setup: Setup) -> Proxy {
    let setup = setup.server(TLS);
    let home = Home::new(&setup.file());
    home.certify();
    setup.start_in(home)
}

fn curl(proxy: &Proxy, version: &str) -> String {
    let mut curl = program("curl");
    curl.args(["-sS", "--max-time", "60", version, "-w", " %{http_version}", "--cacert"]);
    curl.arg(proxy.home.path("cert.pem"));
    run(curl.arg(format!("https://localhost:{}/", proxy.address.port())))
}

/// What a client goes by that trusts the proxy's certificate.
fn trusting(proxy: &Proxy) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = std::fs::read(proxy.home.path("cert.pem")).unwrap();
    roots.add(CertificateDer::from_pem_slice(&certificate).unwrap()).unwrap();
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

#[test]
fn curl_agrees_on_http2_or_http1_and_the_upstream_is_told_of_tls() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = start(Setup::to(&[upstream.url()]));
    assert_eq!(curl(&proxy, "--http2"), "hello 2");
    assert_eq!(curl(&proxy, "--http1.1"), "hello 1.1");
    for request in upstream.requests() {
        assert_eq!(request.header("x-forwarded-proto"), Some("https"), "{request:?}");
        let port = proxy.address.port();
        assert_eq!(request.header("host"), Some(format!("localhost:{port}").as_str()));
    }
}

#[test]
fn a_response_that_breaks_off_has_no_end_in_tls_either() {
    let upstream = Upstream::playing(|mut wire, seen| {
        if let Some(request) = seen.next(&mut wire) {
            let end = if request.path() == "/" { "" } else { "0\r\n\r\n" };
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            wire.send(format!("{head}4\r\nsome\r\n{end}"));
        }
    });
    let proxy = start(Setup::to(&[upstream.url()]));
    let config = trusting(&proxy);
    for (path, is_whole) in [("/", false), ("/whole", true)] {
        let session = ClientConnection::new(Arc::clone(&config), "localhost".try_into().unwrap());
        let socket = std::net::TcpStream::connect(proxy.address).unwrap();
        let mut stream = StreamOwned::new(session.unwrap(), socket);
        // In HTTP/1.0 the end of the connection is that of the response.
        stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: a\r\n\r\n").as_bytes()).unwrap();
        let mut response = Vec::new();
        let end = stream.read_to_end(&mut response);
        assert!(response.ends_with(b"\r\n\r\nsome"), "{path}: {response:?}");
        assert_eq!(end.is_ok(), is_whole, "{path}: {end:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_client_offers_is_agreed_upon() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = start(Setup::to(&[upstream.url()]));
    for (offered, agreed) in
        [(vec!["h2", "http/1.1"], Some("h2")), (vec!["http/1.1"], Some("http/1.1")), (vec![], None)]
    {
        let mut config = ClientConfig::clone(&trusting(&proxy));
        config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let socket = TcpStream::connect(proxy.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let session = TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
        let message = session.get_ref().1.alpn_protocol();
        assert_eq!(message, agreed.map(str::as_bytes), "{offered:?}");
    }
}

#[test]
fn an_upstream_behind_tls_is_believed_if_its_authority_is() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let behind = start(Setup::to(&[upstream.url()]));
    let url = format!("https://localhost:{}", behind.address.port());
    let ca = format!("upstream-ca = '{}'\n", behind.home.path("cert.pem").display());
    let trusting = Setup::to(std::slice::from_ref(&url)).proxy(&ca).start();
    for _ in 0..3 {
        assert_eq!(trusting.get("/").text(), "hello");
    }
    assert_eq!(upstream.requests().len(), 3);
    let strict = Setup::to(&[url]).start();
    let response = strict.get("/");
    assert_eq!(response.status(), 502, "{response:?}");
    response.problem();
    assert_eq!(upstream.requests().len(), 3);
    let log = strict.server.stop();
    assert!(log.contains("certificate"), "{log}");
}
