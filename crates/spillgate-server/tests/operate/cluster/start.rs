//! A store that cannot be used is told at the start, with what to change.

use super::config;
use crate::common::redis::Redis;
use crate::common::server::{Home, Server, spillgate, until};

const LIMIT: &str =
    "[[limit]]\nname = 'api'\nquota = '1/h burst 10'\nper = 'ip'\noutage = 'open'\n";
const NOBODY: &str = "redis://127.0.0.1:1";

/// How a server fails that is told so of its store.
fn failure(store: &str, flags: &[&str]) -> String {
    let home = Home::new(&format!("[store]\n{store}\n{LIMIT}"));
    let mut serve = spillgate();
    serve.arg("serve").args(["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--config"]);
    let output = serve.arg(home.path("spillgate.toml")).args(flags).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(!message.contains("hunter2"), "a password is never shown: {message}");
    message
}

#[test]
fn what_is_wrong_with_the_settings_is_told_with_its_line() {
    for (store, expected) in [
        ("url = 'localhost:6379'", ":2:7: store: url: the URL `…` has no scheme"),
        ("url = 'http://u:hunter2@a'", ":2:7: store: url: the URL `…` has an unknown scheme"),
        ("urll = 'redis://a'", ":2:1: store: unknown key \"urll\"; did you mean \"url\"?"),
        (
            "url = 'redis://a'\nsecret = 'hunter2'",
            ":3:10: store: secret: it has 7 bytes; use at least 16",
        ),
        (
            "url = 'redis://a'\nkey-prefix = 'a{b}'",
            ":3:14: store: key-prefix is \"a{b}\"; use at most 64",
        ),
        ("url = 'redis://a'\ncommand-timeout = 50", ":3:19: store: command-timeout is a number"),
        (
            "url = 'redis://a'\ncommand-timeout = '1us'",
            ":3:19: store: command-timeout is \"1us\"; write at least 1ms",
        ),
        (
            "url = 'redis://a'\nconnect-timeout = '1h'",
            ":3:19: store: connect-timeout is \"1h\"; write at most 10s",
        ),
        ("url = 'redis://a'\npool-size = 0", ":3:13: store: pool-size is 0; write at least 1"),
        ("url = 'redis://a'\npassword = 'hunter2'\npassword-file = 'x'", "keep one of them"),
        ("url = 'redis://a'\nsecret-file = 'missing'", "the store secret-file"),
        ("url = 'redis://a'\npassword-file = 'missing'", "the store password-file"),
        (
            "url = 'redis://a'\nsentinel-password-file = 'missing'",
            "the store sentinel-password-file",
        ),
        (
            "url = 'redis://a'\nsentinel-password = 'hunter2'\nsentinel-password-file = 'x'",
            "keep one of them",
        ),
        (
            "url = 'rediss://a'\ntls-cert = 'x'",
            "store tls-cert is set but store tls-key is not; set both",
        ),
        (
            "url = 'rediss://a'\ntls-key = 'x'",
            "store tls-key is set but store tls-cert is not; set both",
        ),
        (
            "url = 'redis://a'\ntls-cert = 'x'\ntls-key = 'x'",
            "begin it with rediss://, or leave them out",
        ),
        ("url = 'rediss://a'\ntls-cert = 'x'\ntls-key = 'x'", "x cannot be read"),
        (
            "url = 'redis://a?password=hunter2'",
            ":2:7: store: url: the URL `redis://…` has a ? or #",
        ),
        ("url = 'redis://:hunter2@a", ":2:26: this is not TOML"),
        ("url = 'redis://a'\non-mismatch = 'panic'", "on-mismatch is \"panic\"; write \"warn\" or"),
        (
            "url = 'redis://a'\nstart-in-outage = true",
            "store start-in-outage needs store nodes: a server that has not reached",
        ),
        ("key-prefix = 'a:'", "store key-prefix is set but url is not; add url ="),
    ] {
        let message = failure(store, &[]);
        assert!(message.contains(expected) && message.lines().count() == 1, "{store}\n{message}");
    }
    let message = failure("", &["--store", "redis://u:hunter2@a,b"]);
    assert!(message.contains("store url: the URL `redis://…` names several hosts"), "{message}");
}

#[test]
fn a_store_that_cannot_be_used_is_told_with_what_to_change() {
    let message = failure(&format!("url = '{NOBODY}'"), &[]);
    assert!(
        message.contains("the store cannot be used: ") && message.contains("127.0.0.1:1"),
        "{message}"
    );

    let locked = Redis::with(&["--requirepass", "sesame-sesame"]);
    let url = format!("url = '{}'", locked.url());
    assert!(failure(&url, &[]).contains("requires a password"));
    let wrong = failure(&format!("{url}\npassword = 'hunter2'"), &[]);
    assert!(wrong.contains("does not accept this user and password"), "{wrong}");

    let forgetful = Redis::with(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let message = failure(&format!("url = '{}'", forgetful.url()), &[]);
    assert!(
        message.contains("allkeys-lru") && message.contains("set it to `noeviction`"),
        "{message}"
    );
}

#[test]
fn a_password_can_stand_in_a_file_a_variable_or_the_url_and_is_not_shown() {
    let redis = Redis::with(&["--requirepass", "sesame-sesame"]);
    let home = Home::new(&config(&redis, LIMIT));
    std::fs::write(home.path("password"), "sesame-sesame\n").unwrap();
    let file = home.path("password").display().to_string();
    home.start(&["--store-password-file", &file]).stop();
    let mut serve = spillgate();
    serve.arg("serve").arg("--config").arg(home.path("spillgate.toml"));
    serve.env("SPILLGATE_STORE_PASSWORD", "sesame-sesame");
    Server::start(serve).stop();
    let server = home.start(&["--store", &redis.url().replace("//", "//:sesame-sesame@")]);
    let state = format!("state   shared, in {}\n", redis.url());
    assert!(server.banner.contains(&state), "{}", server.banner);
    assert!(!server.stop().contains("sesame"));
}

#[test]
fn check_config_connects_only_if_it_is_told_to() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMIT));
    let check = |flags: &[&str]| {
        let mut check = spillgate();
        check.arg("check-config").arg(home.path("spillgate.toml")).args(flags);
        let output = check.output().unwrap();
        let message = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.success(), message.concat())
    };
    let (is_right, message) = check(&["--connect"]);
    assert!(
        is_right && message.contains(&format!("store  {}, connected", redis.url())),
        "{message}"
    );
    for url in [
        "redis://me:hunter2@a/3",
        "redis://hunter2@a",
        "rediss+sentinel://:hunter2@a,b/main",
        "redis+cluster://me:@/:hunter2@a",
    ] {
        let (is_right, message) = check(&["--store", url]);
        assert!(is_right && !message.contains("hunter2"), "{message}");
    }
    let (is_right, message) = check(&["--store", NOBODY]);
    assert!(is_right && message.contains("store  redis://127.0.0.1:1\n"), "{message}");
    // Files are read nevertheless.
    let missing = ["--store-tls-cert", "missing.pem", "--store-tls-key", "missing.key"];
    let (is_right, message) = check(&[&["--store", "rediss://127.0.0.1:1"], &missing[..]].concat());
    assert!(!is_right && message.contains("missing.pem cannot be read"), "{message}");
    let (is_right, message) = check(&["--store", NOBODY, "--connect"]);
    assert!(!is_right && message.contains("the store cannot be used"), "{message}");
}

#[test]
fn a_server_that_may_starts_in_an_outage_and_goes_on_when_there_is_a_store() {
    let mut redis = Redis::start();
    redis.kill();
    let home = Home::new(&config(&redis, LIMIT));
    let server = home.start(&["--store-start-in-outage", "--store-nodes", "2"]);
    assert!(
        server.banner.contains(&format!("state   shared, in {}", redis.url())),
        "{}",
        server.banner
    );
    assert!(server.get("/readyz").contains("cannot be reached"));
    redis.restart();
    until("that it is there", || super::metric(&server, "spillgate_store_up") == 1.0);
    let log = server.stop();
    assert!(log.contains("starting without the store"), "{log}");
}
