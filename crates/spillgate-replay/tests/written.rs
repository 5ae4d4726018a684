//! Logs that nginx, Caddy, Envoy and HAProxy have really written.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use spillgate_policy::Policy;
use spillgate_replay::{EngineOptions, Replay, Report, Source};
use spillgate_testing::{Port, program};
use tempfile::TempDir;

const ENVOY: &str = "target/envoy/envoy/_bin/envoy";

/// A program that serves and logs. It ends with the test.
struct Program {
    child: Child,
    port: Port,
    folder: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a response is there to its end, as far as its head says where that is.
fn is_whole(response: &[u8]) -> bool {
    let response = String::from_utf8_lossy(response).to_lowercase();
    let Some((head, body)) = response.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() >= length.trim().parse().unwrap())
}

/// Waits for what another process does: on a busy machine a minute.
fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    for _ in 0..2400 {
        if is_there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("{what} did not happen");
}

impl Program {
    /// Starts a program with the configuration that `write` makes for an address and a folder.
    fn start(
        name: &str,
        arguments: &[&str],
        write: impl FnOnce(SocketAddr, &Path) -> String,
    ) -> Self {
        let port = Port::reserve();
        let address = port.address();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config"), write(address, folder.path())).unwrap();
        let output = fs::File::create(folder.path().join("output")).unwrap();
        let child = program(name)
            .args(arguments)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let mut started = Self { child, port, folder };
        until(&format!("{name} listens"), || {
            let ended = started.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name}: {}", started.text("output"));
            TcpStream::connect(address).is_ok()
        });
        started
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// Sends bytes, and reads until the response is whole or the connection is closed, for which
    /// Envoy takes a second.
    fn send(&self, bytes: &[u8]) {
        let mut stream = TcpStream::connect(self.port.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(bytes).unwrap();
        let (mut response, mut buffer) = (Vec::new(), [0; 4096]);
        while !is_whole(&response) {
            match stream.read(&mut buffer) {
                Ok(count @ 1..) => response.extend(&buffer[..count]),
                _ => break,
            }
        }
    }

    /// Sends what every program is sent: seven for one endpoint, one with quotes, escapes and a
    /// query, and something that is no request.
    fn send_all(&self) {
        let request = |line: &str| {
            let head = "HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\nuser-agent: a\"b\\c";
            self.send(format!("{line} {head}\r\ncontent-length: 0\r\n\r\n").as_bytes());
        };
        (0..7).for_each(|_| request("POST /login?next=/"));
        request("GET /users/7/%22quoted%22?q=\"");
        self.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n");
    }

    /// Replays a log once it holds all requests.
    fn replay(&self, log: &str, format: &str) -> Report {
        until("all requests are logged", || {
            let text = self.text(log);
            text.matches("/login").count() >= 7 && text.contains("/users/7")
        });
        let policy = "[[limit]]\nname = 'login'\nmatch = { path = '/login', method = 'POST' }\nquota = '5/h'\n\
                      [[limit]]\nname = 'users'\nmatch = { path = '/users/{*rest}', host = 'a.example' }\nquota = '1/h'";
        let mut options = EngineOptions::default();
        options.host = Some("a.example".to_owned());
        let replay = Replay::new(Policy::from_toml(policy).unwrap()).engine(options);
        let report = replay.run(vec![Source::open(&self.path(log)).unwrap()], |_| ()).unwrap();
        let context = format!("{report}\n{}", self.text(log));
        assert_eq!(report.logs[0].format, format, "{context}");
        assert_eq!((report.requests, report.allowed, report.refused), (8, 6, 2), "{context}");
        assert_eq!(report.limits[1].met, 1, "{context}");
        assert_eq!(report.callers.len(), 1, "{context}");
        // Envoy names the machine by another of its addresses.
        let is_here = report.callers[0].name == "ip:127.0.0.1" || format == "envoy";
        assert!(is_here, "{context}");
        assert!(report.skipped.iter().all(|it| it.reason == "not an HTTP request"), "{context}");
        report
    }
}

#[test]
fn logs_of_nginx_are_read() {
    let nginx = Program::start(
        "nginx",
        &["-e", "error.log", "-p", ".", "-c", "config"],
        |at, folder| {
            let folder = folder.display();
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|name| format!("{name}_temp_path {name};\n"))
                .concat();
            format!(
                "daemon off; master_process off; pid nginx.pid; events {{}}\nhttp {{\n{temporary}\
             log_format main '$remote_addr - $remote_user [$time_local] \"$request\" '\n\
             '$status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\"';\n\
             log_format json escape=json '{{\"msec\":$msec,\"remote_addr\":\"$remote_addr\",\
             \"request\":\"$request\",\"host\":\"$host\",\"status\":\"$status\"}}';\n\
             access_log {folder}/combined.log combined;\naccess_log {folder}/main.log main;\n\
             access_log {folder}/json.log json;\n\
             server {{ listen {at}; location / {{ return 200 ok; }} }}\n}}\n"
            )
        },
    );
    nginx.send_all();
    nginx.replay("combined.log", "combined");
    nginx.replay("main.log", "combined");
    nginx.replay("json.log", "json");
    // TLS to a port without it, which nginx logs with escapes.
    until("the broken request is logged", || nginx.text("combined.log").contains(r"\x16"));
    let report = nginx.replay("combined.log", "combined");
    assert_eq!(report.skipped.iter().map(|it| it.lines).sum::<u64>(), 1, "{report}");
}

#[test]
fn logs_of_caddy_are_read() {
    let caddy = Program::start(
        "caddy",
        &["run", "--adapter", "caddyfile", "--config", "config"],
        |at, folder| {
            let folder = folder.display();
            format!(
                "{{\n admin off\n auto_https off\n}}\nhttp://:{} {{\n bind 127.0.0.1\n log {{\n output file {folder}/access.log\n }}\n \
             respond ok\n}}\n",
                at.port()
            )
        },
    );
    caddy.send_all();
    caddy.replay("access.log", "json");
}

#[test]
fn logs_of_envoy_are_read() {
    let arguments = ["-c", "config", "--config-yaml", "{}", "--use-dynamic-base-id"];
    // Else it keeps its log to itself for ten seconds.
    let at_once = ["--concurrency", "1", "--file-flush-interval-msec", "100"];
    let arguments = [&arguments[..], &at_once].concat();
    let envoy = Program::start(ENVOY, &arguments, |at, folder| {
        let (folder, port) = (folder.display(), at.port());
        format!(
            r#"{{"static_resources": {{"listeners": [{{
  "address": {{"socket_address": {{"address": "127.0.0.1", "port_value": {port}}}}},
  "filter_chains": [{{"filters": [{{"name": "http", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "http", "use_remote_address": true,
    "access_log": [{{"name": "file", "typed_config": {{
      "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
      "path": "{folder}/access.log"}}}}],
    "http_filters": [{{"name": "router", "typed_config": {{
      "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}}],
    "route_config": {{"virtual_hosts": [{{"name": "all", "domains": ["*"], "routes": [{{
      "match": {{"prefix": "/"}}, "direct_response": {{"status": 200}}}}]}}]}}
  }}}}]}}]}}]}}}}"#
        )
    });
    envoy.send_all();
    envoy.replay("access.log", "envoy");
}

#[test]
fn logs_of_haproxy_are_read() {
    let haproxy = Program::start("haproxy", &["-db", "-f", "config"], |at, _| {
        format!(
            "global\n log stdout format raw local0\ndefaults\n mode http\n log global\n option httplog\n \
             timeout client 5s\n timeout server 5s\n timeout connect 5s\nfrontend web\n bind {at}\n \
             http-request return status 200\n"
        )
    });
    haproxy.send_all();
    haproxy.replay("output", "haproxy");
}
