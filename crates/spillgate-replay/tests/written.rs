//! Logs that nginx, Caddy, Envoy and HAProxy have really written.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use spillgate_policy::Policy;
use spillgate_replay::{EngineOptions, Replay, Report, Source};
use tempfile::TempDir;

/// Where `scripts/test` puts it.
const ENVOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/envoy/envoy/_bin/envoy");

/// A program that serves and logs. It ends with the test.
struct Program {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for what another process does, half a minute at most.
fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    for _ in 0..1200 {
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
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config"), write(address, folder.path())).unwrap();
        let output = fs::File::create(folder.path().join("output")).unwrap();
        let child = Command::new(name)
            .args(arguments)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{name} cannot be run: {error}; scripts/test installs it")
            });
        let mut program = Self { child, address, folder };
        until(&format!("{name} listens"), || {
            let ended = program.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name}: {}", program.text("output"));
            TcpStream::connect(address).is_ok()
        });
        program
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// Sends bytes, and reads until the connection is closed.
    fn send(&self, bytes: &[u8]) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(bytes).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
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
                "{{\n admin off\n auto_https off\n}}\nhttp://:{} {{\n log {{\n output file {folder}/access.log\n }}\n \
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
    assert!(Path::new(ENVOY).is_file(), "there is no Envoy at {ENVOY}; scripts/test installs it");
    let arguments =
        ["-c", "config", "--config-yaml", "{}", "--use-dynamic-base-id", "--concurrency", "1"];
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
    // Debian puts it where only root looks.
    let paths = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"];
    let program = paths.into_iter().find(|path| Path::new(path).is_file()).unwrap_or("haproxy");
    let haproxy = Program::start(program, &["-db", "-f", "config"], |at, _| {
        format!(
            "global\n log stdout format raw local0\ndefaults\n mode http\n log global\n option httplog\n \
             timeout client 5s\n timeout server 5s\n timeout connect 5s\nfrontend web\n bind {at}\n \
             http-request return status 200\n"
        )
    });
    haproxy.send_all();
    haproxy.replay("output", "haproxy");
}
