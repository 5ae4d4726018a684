//! TLS, with the clients that people use.

use std::process::Command;

use spillgate_testing::program;

use crate::common::server::{Home, Server, run, until};

const CONFIG: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n\
    tls-cert = 'cert.pem'\ntls-key = 'key.pem'\n[[limit]]\nname = 'api'\nquota = '5/h'\n";

fn curl(home: &Home, server: &Server, ca: &str) -> Command {
    let mut curl = program("curl");
    curl.args(["-sS", "--cacert"]).arg(home.path(ca)).args(["--max-time", "60"]);
    curl.arg(format!("https://127.0.0.1:{}/healthz", server.http.port()));
    curl
}

#[test]
fn curl_and_redis_cli_talk_over_tls_and_nobody_without() {
    let home = Home::new(CONFIG);
    home.certify();
    let server = home.start(&[]);
    assert!(run(&mut curl(&home, &server, "cert.pem")).contains("ok"));
    let address = format!("https://127.0.0.1:{}/", server.http.port());
    let page = run(curl(&home, &server, "cert.pem").arg(&address));
    assert!(page.contains(&format!("{address}v1/check")), "{page}");
    let port = server.resp.port().to_string();
    let mut redis = program("redis-cli");
    redis.args(["-h", "localhost", "-p", &port, "--tls", "--cacert"]).arg(home.path("cert.pem"));
    let reply = run(redis.args(["CL.THROTTLE", "k", "15", "30", "60"]));
    assert_eq!(reply, "0\n16\n15\n-1\n2\n");
    let mut plain = program("curl");
    plain.args(["-sS", "--max-time", "5"]).arg(server.url("/healthz"));
    assert!(!plain.output().unwrap().status.success());

    // One that says nothing is not waited for at the end.
    let silent = std::net::TcpStream::connect(server.http).unwrap();

    // Explained over TLS too.
    let mut explain = crate::common::server::spillgate();
    let url = format!("https://localhost:{}", server.http.port());
    explain.args(["explain", "--server", &url, "--path", "/", "--token", server.token(), "--ca"]);
    assert!(run(explain.arg(home.path("cert.pem"))).starts_with("answer   allowed"));
    let log = server.stop();
    assert!(log.contains("refused a connection without TLS"), "{log}");
    assert!(!log.contains("did not read"), "{log}");
    drop(silent);
}

#[test]
fn a_renewed_certificate_is_taken_up_and_a_bad_one_is_not() {
    let home = Home::new(CONFIG);
    home.certify();
    let server = home.start(&[]);
    std::fs::copy(home.path("cert.pem"), home.path("old.pem")).unwrap();
    home.certify();
    let works = |ca| curl(&home, &server, ca).output().unwrap().status.success();
    until("the new certificate", || works("cert.pem"));
    assert!(!works("old.pem"));
    std::fs::copy(home.path("cert.pem"), home.path("good.pem")).unwrap();
    std::fs::write(home.path("cert.pem"), "rubbish").unwrap();
    let ready = || {
        let mut ready = curl(&home, &server, "good.pem");
        ready.arg(format!("https://127.0.0.1:{}/readyz", server.http.port()));
        run(&mut ready)
    };
    until("the refusal", || ready().contains("BEGIN CERTIFICATE"));
    // One leaves at once, as a balancer does that only looks; others did not trust the server.
    drop(std::net::TcpStream::connect(server.http).unwrap());
    let log = server.stop();
    assert!(log.contains("TLS handshake failed"), "{log}");
    assert!(!log.contains("without TLS"), "{log}");
}
