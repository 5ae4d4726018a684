//! The programs that people use.

use spillgate_testing::program;

use crate::common::server::{Server, run, spillgate};
use crate::proxy::setup::{Proxy, listener};
use crate::proxy::upstream::{Upstream, ok};

fn curl(url: &str, options: &[&str]) -> String {
    let mut curl = program("curl");
    run(curl.args(["-sS", "--max-time", "60"]).args(options).arg(url))
}

#[test]
fn curl_speaks_both_versions_with_bodies_both_ways() {
    let upstream = Upstream::answering(|request| ok(&format!("{} bytes", request.body.len())));
    let proxy = Proxy::to(&upstream);
    let file = proxy.home.path("upload");
    std::fs::write(&file, vec![b'x'; 3_000_000]).unwrap();
    let url = format!("http://{}/upload", proxy.address);
    for version in ["--http1.0", "--http1.1", "--http2-prior-knowledge"] {
        assert_eq!(curl(&url, &[version]), "0 bytes", "{version}");
        // Asks whether to continue over HTTP/1.1, since it is large.
        let upload = curl(&url, &[version, "-T", file.to_str().unwrap()]);
        assert_eq!(upload, "3000000 bytes", "{version}");
        assert!(curl(&url, &[version, "-I"]).contains("content-length: 7"), "{version}");
    }
    let chunked = curl(&url, &["-H", "transfer-encoding: chunked", "-d", "hello"]);
    assert_eq!(chunked, "5 bytes");
}

#[test]
fn flags_alone_make_a_proxy_with_a_limit() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let mut command = spillgate();
    command.args(["proxy", "--to", &upstream.url(), "--limit", "1/h burst 3"]);
    command.args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let server = Server::start(command);
    let url = format!("http://{}/[1-5]", listener(&server));
    assert_eq!(curl(&url, &["-o", "/dev/null", "-w", "%{http_code} "]), "200 200 200 429 429 ");
    assert_eq!(server.resp.port(), 0, "nothing else listens");
    server.stop();
}

#[test]
fn a_proxy_beside_the_server_shares_its_limits() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let file = format!(
        "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\n[proxy]\nlisten = '127.0.0.1:0'\nto = ['{}']\n\
         [[limit]]\nname = 'api'\nquota = '1/h burst 2'\n",
        upstream.url()
    );
    let home = crate::common::server::Home::new(&file);
    let server = home.start(&[]);
    let check = curl(&server.url("/v1/check"), &["--json", r#"{"limit":"api","key":"127.0.0.1"}"#]);
    assert!(check.contains("\"remaining\":1"), "{check}");
    let url = format!("http://{}/", listener(&server));
    let status = || curl(&url, &["-o", "/dev/null", "-w", "%{http_code}"]);
    assert_eq!((status().as_str(), status().as_str()), ("200", "429"));
    server.stop();
}

#[test]
fn what_is_wrong_is_told_at_the_start() {
    for (arguments, message) in [
        (&["--limit", "10/s"][..], "--to"),
        (&["--to", "ftp://127.0.0.1"], "ftp"),
        (&["--to", "127.0.0.1:80"], "http://"),
        (&["--to", "http://127.0.0.1:80", "--limit", "10/fortnight"], "fortnight"),
    ] {
        let mut command = spillgate();
        command.arg("proxy").args(arguments).args(["--listen", "127.0.0.1:0", "--http", "off"]);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{arguments:?}: {error}");
    }
}

/// The rows of the table of settings of the page about the proxy: key and default.
fn settings() -> Vec<(String, String)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/proxy.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() > 3);
    let cell = |text: &str| text.trim().trim_matches('`').to_owned();
    let rows = rows.map(|row| row.split('|').map(cell).collect::<Vec<_>>());
    rows.map(|row| (row[1].clone(), row[2].clone())).collect()
}

#[test]
fn help_tells_what_holds_if_nothing_is_said() {
    let help = run(spillgate().args(["proxy", "--help"]));
    let message = |flag: &str| {
        let text = help.split(&format!("--{flag}")).nth(1).unwrap_or_else(|| panic!("no --{flag}"));
        let text = text.split("[env").next().unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Nothing is spoken that was not asked for.
    for off in ["resp <ADDRESS>", "grpc <ADDRESS>"] {
        assert!(message(off).ends_with("or \"off\" [default: off]"), "{off}: {}", message(off));
    }
    assert!(message("http <ADDRESS>").contains("[default: 127.0.0.1:8390]"));
    let rows = settings();
    assert!(rows.iter().any(|(key, _)| key == "via"), "{rows:?}");
    for (key, default) in rows {
        let message = message(&key);
        let default = if default == "none" { "nothing".to_owned() } else { default };
        let is_told = message.contains(&format!("[default: {default}]"));
        assert!(is_told || !message.contains("[default"), "{key}: {message}");
    }
}
