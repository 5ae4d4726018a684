//! What cannot be is told in a line that says what and how to mend it, and the exit code
//! says so too.

use std::net::TcpListener;
use std::process::Command;

use spillgate_testing::certificates::self_signed;

use crate::common::server::{Home, spillgate};

/// How a command fails: its exit code, and what it tells.
fn failure(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_server_that_cannot_start_says_why_in_a_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let home = Home::new("");
    let file = |name: &str, text: &str| {
        std::fs::write(home.path(name), text).unwrap();
        home.path(name).display().to_string()
    };
    let (one, other) = (self_signed(&["one"]), self_signed(&["other"]));
    let certificate = file("cert.pem", &one.pem);
    let right_key = file("key.pem", &one.key);
    let wrong_key = file("wrong.pem", &other.key);
    let rubbish = file("rubbish", "rubbish");
    let bad = file("bad.toml", "[server]\nhttp = 'everywhere'\n");
    let missing = home.path("missing").display().to_string();
    let nowhere = home.path("no/state").display().to_string();
    let folder = home.path("").display().to_string();
    let tls = |cert: &str, key: &str| {
        vec!["--tls-cert".to_owned(), cert.to_owned(), "--tls-key".to_owned(), key.to_owned()]
    };
    let flags = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect();
    let cases: Vec<(Vec<String>, i32, &str)> = vec![
        (
            flags(&["--http", &taken]),
            1,
            "another program listens there; stop it, or choose another with --http",
        ),
        (
            flags(&["--resp", "192.0.2.1:1", "--token", "0123456789abcdef"]),
            1,
            "choose another with --resp",
        ),
        (flags(&["--config", &missing]), 1, "missing cannot be read: No such file"),
        (flags(&["--config", &folder]), 1, "it is not a file"),
        (
            flags(&["--config", &bad]),
            1,
            "bad.toml:2:8: server: http is \"everywhere\"; write an address and a port",
        ),
        (
            flags(&["--http", "everywhere"]),
            2,
            "write an address and a port, such as \"127.0.0.1:8390\"",
        ),
        (flags(&["--http", "off", "--resp", "off"]), 1, "http, resp, grpc and admin are all off"),
        (
            flags(&["--http", "0.0.0.0:0"]),
            1,
            "other machines can reach, and there is no token; set SPILLGATE_TOKEN",
        ),
        (flags(&["--resp", "[::]:0"]), 1, "resp listens on [::]:0"),
        (flags(&["--token", "short"]), 1, "token: it has 5 characters; use at least 16"),
        (flags(&["--token-file", &missing]), 1, "the token-file"),
        (flags(&["--token-file", &rubbish, "--token", "0123456789abcdef"]), 1, "keep one of them"),
        (flags(&["--tls-cert", &certificate]), 1, "tls-cert is set but tls-key is not; set both"),
        (tls(&missing, &right_key), 1, "missing cannot be read"),
        (tls(&rubbish, &right_key), 1, "has no -----BEGIN CERTIFICATE-----; it must be in PEM"),
        (tls(&certificate, &rubbish), 1, "has no -----BEGIN PRIVATE KEY-----; it must be in PEM"),
        (tls(&certificate, &wrong_key), 1, "use the key that the certificate was issued for"),
        (flags(&["--snapshot", &nowhere]), 1, "make the folder first"),
        (flags(&["--snapshot", &folder]), 1, "choose another place with --snapshot"),
        (flags(&["--snapshot", "/dev/null"]), 1, "it is not a file; choose another place"),
        (flags(&["--snapshot-interval", "soon"]), 2, "write a duration, such as \"30s\""),
        (flags(&["--throttle-capacity", "0"]), 1, "throttle-capacity is 0; write at least 1"),
        (flags(&["--max-connections", "0"]), 1, "max-connections is 0; write at least 1"),
        (flags(&["--log-level", "loud"]), 2, "write \"error\""),
    ];
    for (flags, code, expected) in cases {
        let mut command = spillgate();
        command.arg("serve");
        for listen in ["--http", "--resp"] {
            if !flags.iter().any(|flag| flag == listen) {
                command.args([listen, "127.0.0.1:0"]);
            }
        }
        let (exit, message) = failure(command.args(&flags));
        assert_eq!(exit, code, "{flags:?}\n{message}");
        assert!(message.contains(expected), "{flags:?}\n{message}");
        assert!(!message.contains("short"), "a token is never shown: {message}");
        if code == 1 {
            assert!(
                message.starts_with("spillgate: ") && message.lines().count() == 1,
                "{message}"
            );
        }
    }
}

#[test]
fn a_bad_file_is_told_whole() {
    let home = Home::new(
        "[server]\nhtpp = '127.0.0.1:1'\nsnapshot-interval = 30\npublic-metrics = 'yes'\n\
         auth-allow = ['10.0.0.0/33']\n\n[[limit]]\nname = 'api'\nquota = '10/fortnight'\n",
    );
    let (code, message) = failure(spillgate().arg("check-config").arg(home.path("spillgate.toml")));
    assert_eq!(code, 1);
    for expected in [
        ":2:1: server: unknown key \"htpp\"; did you mean \"http\"?",
        ":3:21: server: snapshot-interval is a number; write a text, such as \"30s\"",
        ":4:18: server: public-metrics is a text; write true or false",
        ":5:15: server: auth-allow, entry 1 is \"10.0.0.0/33\"; write an address, or a range",
        "unknown unit \"fortnight\"",
    ] {
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(message.lines().count(), 5, "{message}");
}
