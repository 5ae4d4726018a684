//! nginx in front of the proxy, and nginx behind it.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use spillgate_testing::{Port, program};
use tempfile::TempDir;

use crate::common::server::until;
use crate::proxy::setup::{OPEN, Setup};
use crate::proxy::upstream::{Upstream, ok};
use crate::proxy::wire::Wire;

/// Ends with the test.
struct Nginx {
    address: SocketAddr,
    _port: Port,
    child: Child,
    folder: TempDir,
}

impl Nginx {
    /// Starts it with what is in a `server`, and a file of a million bytes in its folder.
    fn start(server: &str) -> Self {
        let port = Port::reserve();
        let address = port.address();
        let folder = tempfile::tempdir().unwrap();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {name};\n"))
            .concat();
        let whole = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n\
             {temporary}server {{\nlisten {address};\n{server}\n}}\n}}\n"
        );
        std::fs::write(folder.path().join("nginx.conf"), whole).unwrap();
        std::fs::create_dir(folder.path().join("files")).unwrap();
        std::fs::write(folder.path().join("files/large"), "0123456789".repeat(100_000)).unwrap();
        let mut command = program("nginx");
        command.args(["-e", "error.log", "-c", "nginx.conf", "-p"]).arg(folder.path());
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let nginx = Self { address, _port: port, child, folder };
        until("nginx", || TcpStream::connect(address).is_ok());
        nginx
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn nginx_behind_the_proxy_serves_files_ranges_and_errors() {
    let nginx = Nginx::start(
        "root files;\nlocation /moved { return 301 /large; }\n\
         location /whoami { return 200 \"$host $http_x_forwarded_for\"; }\n",
    );
    let proxy = Setup::to(&[format!("http://{}", nginx.address)]).start();
    let mut client = proxy.connect();
    let whole = client.get("/large", "");
    assert_eq!((whole.status(), whole.body.len()), (200, 1_000_000), "{}", nginx.log());
    let part = client.get("/large", "range: bytes=999990-\r\n");
    assert_eq!((part.status(), part.text().as_str()), (206, "0123456789"));
    let tag = whole.header("etag").unwrap();
    let same = client.get("/large", &format!("if-none-match: {tag}\r\n"));
    assert_eq!((same.status(), same.body.len()), (304, 0));
    assert_eq!(client.get("/nothing", "").status(), 404);
    let moved = client.get("/moved", "");
    assert_eq!(moved.status(), 301);
    // It was asked by the name that the client used, and says so.
    assert!(moved.header("location").unwrap().starts_with("http://example.test"), "{moved:?}");
    assert_eq!(client.get("/whoami", "").text(), "example.test 127.0.0.1");
    client.send("HEAD /large HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.response("HEAD").unwrap().header("content-length"), Some("1000000"));
}

#[test]
fn nginx_behind_the_proxy_compresses_as_it_does_by_itself() {
    let nginx = Nginx::start("root files;\ndefault_type text/html;\ngzip on;\n");
    let proxy = Setup::to(&[format!("http://{}", nginx.address)]).start();
    let accepts = "accept-encoding: gzip\r\n";
    for (version, mut client) in
        [("alone", Wire::connect(nginx.address)), ("behind the proxy", proxy.connect())]
    {
        let response = client.get("/large", accepts);
        assert_eq!(response.header("content-encoding"), Some("gzip"), "{version}: {response:?}");
        assert!(response.body.len() < 100_000 && response.is_whole, "{version}");
        assert_eq!(response.header("via"), None, "{version}");
    }
    // By default it compresses nothing for requests that have come through a proxy.
    let telling = Setup::to(&[format!("http://{}", nginx.address)]).proxy("via = true\n").start();
    let response = telling.connect().get("/large", accepts);
    assert_eq!((response.header("content-encoding"), response.body.len()), (None, 1_000_000));
}

#[test]
fn nginx_in_front_names_its_clients_and_they_are_told_apart() {
    let upstream = Upstream::answering(|request| ok(&request.body.len().to_string()));
    let limit = "[[limit]]\nname = 'api'\nmatch = { path = '/api' }\nquota = '1/h burst 2'\n";
    let trusting = "[identity]\ntrusted-proxies = ['127.0.0.1']\n";
    let policy = format!("{trusting}{limit}{OPEN}");
    let proxy = Setup::to(&[upstream.url()]).policy(&policy).start();
    // Its clients are all on this machine; a header stands for where they come from.
    let nginx = Nginx::start(&format!(
        "client_max_body_size 10m;\nlocation / {{\nproxy_pass http://{};\nproxy_http_version 1.1;\n\
         proxy_set_header Connection \"\";\nproxy_set_header Host $host;\n\
         proxy_set_header X-Forwarded-For $http_x_client;\nproxy_set_header X-Forwarded-Proto https;\n}}",
        proxy.address
    ));
    let mut client = Wire::connect(nginx.address);
    for (address, expected) in [("203.0.113.1", [200, 200, 429]), ("203.0.113.2", [200, 200, 429])]
    {
        let header = format!("x-client: {address}\r\n");
        let statuses = [(); 3].map(|()| client.get("/api", &header).status());
        assert_eq!(statuses, expected, "{}", nginx.log());
        let seen = upstream.requests().pop().unwrap();
        assert_eq!(seen.header("x-forwarded-for"), Some(format!("{address}, 127.0.0.1").as_str()));
        assert_eq!(seen.header("x-forwarded-proto"), Some("https"));
        assert_eq!(seen.header("host"), Some("example.test"));
    }
    let body = "x".repeat(3_000_000);
    let length = body.len();
    client.send(format!("POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n"));
    client.send(body);
    assert_eq!(client.response("POST").unwrap().text(), "3000000", "{}", nginx.log());
}
