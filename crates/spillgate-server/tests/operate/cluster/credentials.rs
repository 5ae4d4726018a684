//! Credentials of the store: client certificates, and what is rotated while a server runs.

use spillgate_testing::certificates::{authority, sign};
use spillgate_testing::{Port, effort};

use super::{config, metric};
use crate::common::redis::Redis;
use crate::common::server::{Home, Server, spillgate, until};
use crate::operate::clients::Http;

const LIMIT: &str = "[[limit]]\nname = 'api'\nquota = '1000/s'\nper = 'ip'\noutage = 'closed'\n";

fn check(server: &Server) -> bool {
    Http::connect(server.http).unwrap().check("api", "203.0.113.7").is_ok()
}

/// Waits until so many connections to the store were opened.
fn until_connected(server: &Server, times: f64) {
    until("another connection", || metric(server, "spillgate_store_connects_total") == times);
}

/// A Redis whose user has the password that stands in a file, and a server that reads it.
fn scene() -> (Redis, Home, Server) {
    let redis = Redis::start();
    redis.command(&["ACL", "SETUSER", "limiter", "on", ">sesame-one", "~*", "+@all"]);
    let own = "username = 'limiter'\npassword-file = 'password'\n";
    let home = Home::new(&config(&redis, &format!("{own}{LIMIT}")));
    std::fs::write(home.path("password"), "sesame-one\n").unwrap();
    let server = home.start(&[]);
    (redis, home, server)
}

#[test]
fn a_rotated_password_is_taken_up_on_sighup_without_an_outage() {
    let (redis, home, server) = scene();
    assert!(check(&server));
    redis.command(&["ACL", "SETUSER", "limiter", ">sesame-two"]);
    std::fs::write(home.path("password"), "sesame-two\n").unwrap();
    server.signal("HUP");
    until_connected(&server, 2.0);
    redis.command(&["ACL", "SETUSER", "limiter", "<sesame-one"]);
    assert!(check(&server));
    // And with the next connection too.
    redis.command(&["CLIENT", "KILL", "USER", "limiter"]);
    until_connected(&server, 3.0);
    until("that it decides", || check(&server));
    let log = server.stop();
    assert!(log.contains("reconnected with new credentials"), "{log}");
    assert!(!log.contains("need a restart") && !log.contains("sesame"), "{log}");
}

#[test]
fn a_password_that_is_not_accepted_or_cannot_be_read_leaves_the_old_one() {
    let (redis, home, server) = scene();
    std::fs::write(home.path("password"), "sesame-bad\n").unwrap();
    server.signal("HUP");
    until("the reload", || metric(&server, "spillgate_reloads_total{outcome=\"accepted\"}") >= 1.0);
    assert!(check(&server));
    std::fs::remove_file(home.path("password")).unwrap();
    redis.command(&["CLIENT", "KILL", "USER", "limiter"]);
    until_connected(&server, 2.0);
    until("that it decides", || check(&server));
    let log = server.stop();
    let refused = "Redis refused new credentials; keeping the previous ones";
    assert_eq!(log.matches(refused).count(), 1, "{log}");
    let unread = "cannot read the Redis credentials; keeping the previous ones";
    assert_eq!(log.matches(unread).count(), 1, "{log}");
    assert!(!log.contains("sesame"), "{log}");
}

#[test]
fn a_redis_that_requires_a_client_certificate_is_shown_one() {
    let home = Home::new("");
    authority(&home.path(""));
    sign(&home.path(""), "server");
    sign(&home.path(""), "client");
    let reserved = Port::reserve();
    let port = reserved.number();
    let file = |name: &str| home.path(name).display().to_string();
    let [ca, certificate, key] = ["ca.pem", "server.pem", "server.key"].map(file);
    let _redis = Redis::with(
        &[
            ["--tls-port", &port.to_string()],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &ca],
            ["--tls-auth-clients", "yes"],
        ]
        .concat(),
    );
    let store = format!("[store]\nurl = 'rediss://localhost:{port}'\ntls-ca = 'ca.pem'\n");
    let listen = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n";
    home.write(&format!("{listen}{store}{LIMIT}"));
    let mut serve = spillgate();
    let output =
        serve.arg("serve").arg("--config").arg(home.path("spillgate.toml")).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("requires a client certificate: set store.tls-cert and store.tls-key"),
        "{message}"
    );

    home.write(&format!("{listen}{store}tls-cert = 'client.pem'\ntls-key = 'client.key'\n{LIMIT}"));
    let server = home.start(&[]);
    assert!(check(&server));
    // A renewed certificate is taken up by itself, as those of listeners are. Both files are
    // written at once, or they do not go together.
    let before = ["client.pem", "client.key"].map(|name| std::fs::read(home.path(name)).unwrap());
    let [ca, server_pem, server_key] =
        ["ca.pem", "server.pem", "server.key"].map(|name| std::fs::read(home.path(name)).unwrap());
    std::fs::write(home.path("client.pem"), &server_pem).unwrap();
    std::fs::write(home.path("client.key"), &server_key).unwrap();
    assert!(before[0] != server_pem && !ca.is_empty());
    until_connected(&server, 2.0);
    assert!(check(&server));
    let log = server.stop();
    assert!(log.contains("reconnected with new credentials"), "{log}");
}

#[test]
fn an_eviction_policy_that_becomes_unsafe_is_shown() {
    let redis = Redis::with(&["--maxmemory", "100mb"]);
    let home = Home::new(&config(&redis, LIMIT));
    let server = home.start(&[]);
    assert!(server.get("/readyz").contains("\"store_warning\":null"));
    assert_eq!(metric(&server, "spillgate_store_clock_steps_back_total"), 0.0);
    // Looked at for each connection, and every ten seconds: with more effort that is waited for.
    let look = || {
        if effort() == 1 {
            redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
    };
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    look();
    until("the warning", || metric(&server, "spillgate_store_may_evict") == 1.0);
    let ready = server.get("/readyz");
    assert!(ready.contains("`maxmemory-policy allkeys-lru`"), "{ready}");
    until("that it decides", || check(&server));
    assert!(metric(&server, "spillgate_store_up") == 1.0);
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    look();
    until("that it is gone", || metric(&server, "spillgate_store_may_evict") == 0.0);
    let log = server.stop();
    assert_eq!(log.matches("set it to `noeviction`").count(), 1, "{log}");
    assert_eq!(log.matches("no longer evicts counters").count(), 1, "{log}");
}
