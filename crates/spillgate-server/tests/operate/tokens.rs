//! Who has to give the token, and where it comes from.

use spillgate_testing::program;

use crate::common::server::{Home, Server, run, spillgate, until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn status(server: &Server, path: &str, token: Option<&str>) -> String {
    let mut curl = program("curl");
    curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}"]);
    if let Some(token) = token {
        curl.arg("-H").arg(format!("authorization: Bearer {token}"));
    }
    run(curl.arg(format!("http://127.0.0.1:{}{path}", server.http.port())))
}

#[test]
fn a_token_is_made_and_shown_once_if_there_is_none() {
    let home = Home::new("limit = []\n[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n");
    let (one, two) = (home.start(&[]), home.start(&[]));
    let token = one.token().to_owned();
    assert_eq!(token.len(), 64);
    assert_ne!(token, two.token());
    assert_eq!(status(&one, "/v1/policy", Some(&token)), "200");
    assert_eq!(status(&one, "/v1/policy", Some(two.token())), "401");
    assert_eq!(status(&one, "/v1/policy", None), "401");
    assert!(!one.stop().contains(&token), "the log does not know it");
}

#[test]
fn a_configured_token_is_not_shown() {
    let mut command = spillgate();
    command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    let server = Server::start({
        command.env("SPILLGATE_TOKEN", TOKEN);
        command
    });
    assert!(!server.banner.contains(TOKEN), "{}", server.banner);
    assert_eq!(status(&server, "/v1/policy", Some(TOKEN)), "200");
    assert!(!server.stop().contains(TOKEN));
}

#[test]
fn for_other_machines_everything_needs_the_token() {
    let home = Home::new(
        "limit = []\n[server]\nhttp = '0.0.0.0:0'\nresp = '0.0.0.0:0'\ntoken-file = 'token'\n",
    );
    std::fs::write(home.path("token"), format!("{TOKEN}\n")).unwrap();
    let server = home.start(&[]);
    assert_eq!(status(&server, "/metrics", None), "401");
    assert_eq!(status(&server, "/metrics", Some(TOKEN)), "200");
    assert_eq!(status(&server, "/healthz", None), "200");
    let redis = |password: &str| {
        let port = server.resp.port().to_string();
        let mut redis = program("redis-cli");
        redis.args(["-p", &port, "--no-auth-warning"]).env("REDISCLI_AUTH", password);
        let output = redis.args(["CL.THROTTLE", "k", "0", "1", "60"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(redis("").starts_with("NOAUTH"));
    assert!(redis(TOKEN).starts_with("0\n1\n"));

    // Another token in the file is taken up.
    let other = TOKEN.replace('0', "f");
    std::fs::write(home.path("token"), &other).unwrap();
    until("the other token", || status(&server, "/metrics", Some(&other)) == "200");
    assert_eq!(status(&server, "/metrics", Some(TOKEN)), "401");
    assert!(redis(&other).starts_with("1\n1\n"));
    assert!(redis(TOKEN).starts_with("NOAUTH"));
    server.stop();
}

#[test]
fn a_reload_that_names_no_token_leaves_no_public_port_without_one() {
    let home = Home::new(
        "limit = []\n[server]\nhttp = '0.0.0.0:0'\nresp = '0.0.0.0:0'\ntoken-file = 'token'\n",
    );
    std::fs::write(home.path("token"), TOKEN).unwrap();
    let server = home.start(&[]);
    // Addresses stay as they are until a restart, and so does what they need.
    home.write("limit = []\n[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n");
    server.signal("HUP");
    until("the reload", || {
        let port = server.http.port();
        let metrics = format!("http://127.0.0.1:{port}/metrics");
        let bearer = format!("authorization: Bearer {TOKEN}");
        let metrics = run(program("curl").args(["-sS", "-H", &bearer]).arg(metrics));
        let accepted = "spillgate_reloads_total{outcome=\"accepted\"}";
        metrics.lines().any(|line| line.starts_with(accepted) && !line.ends_with(" 0"))
    });
    assert_eq!(status(&server, "/metrics", None), "401");
    let throttle = ["CL.THROTTLE", "k", "0", "1", "60"];
    assert!(redis(&server, &throttle).starts_with("NOAUTH"));
    let with = |password| redis(&server, &[&["-a", password], &throttle[..]].concat());
    assert!(with("wrong-password").contains("NOAUTH"));
    assert!(with(TOKEN).starts_with("0\n1\n"));
    let needed = "changed settings need a restart settings=[server.http, server.resp]";
    assert!(server.stop().contains(needed));
}

/// What redis-cli prints for a command.
fn redis(server: &Server, arguments: &[&str]) -> String {
    let port = server.resp.port().to_string();
    let mut redis = program("redis-cli");
    let output = redis.args(["-p", &port, "--no-auth-warning"]).args(arguments).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn on_loopback_the_token_can_be_given_as_a_password_and_need_not_be() {
    let home = Home::new(
        "limit = []\n[server]\nhttp = 'off'\nresp = '127.0.0.1:0'\ntoken-file = 'token'\n",
    );
    std::fs::write(home.path("token"), TOKEN).unwrap();
    let server = home.start(&[]);
    let throttle = ["CL.THROTTLE", "k", "15", "30", "60", "0"];
    for resp in ["-2", "-3"] {
        let with =
            |password: &str| redis(&server, &[&[resp, "-a", password], &throttle[..]].concat());
        assert_eq!(with(TOKEN), "0\n16\n16\n-1\n0\n", "{resp}");
        let wrong = with("wrong-password");
        assert!(wrong.contains("WRONGPASS invalid username-password pair"), "{resp}: {wrong}");
        // As in Redis, redis-cli goes on, with what the connection may do anyway.
        assert!(wrong.starts_with("0\n16\n16\n-1\n0\n"), "{resp}: {wrong}");
    }
    assert_eq!(redis(&server, &["AUTH", TOKEN]), "OK\n");
    assert_eq!(redis(&server, &["AUTH", "default", TOKEN]), "OK\n");
    assert!(redis(&server, &["HELLO", "3", "AUTH", "default", "no"]).starts_with("WRONGPASS "));
    let hello = redis(&server, &["HELLO", "3", "AUTH", "default", TOKEN]);
    assert!(hello.contains("standalone"), "{hello}");
    // A new token is taken up, here too.
    std::fs::write(home.path("token"), TOKEN.repeat(2)).unwrap();
    until("the new token", || redis(&server, &["AUTH", &TOKEN.repeat(2)]) == "OK\n");
    assert!(redis(&server, &["AUTH", TOKEN]).starts_with("WRONGPASS "));
}

#[test]
fn without_a_configured_token_there_is_no_password_on_loopback_but_for_operators() {
    let home = Home::new("limit = []\n[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n");
    let server = home.start(&[]);
    let message = redis(&server, &["AUTH", "another"]);
    let expected = "ERR AUTH <password> called without any password configured for the default \
                    user. Are you sure your configuration is correct?";
    assert!(message.starts_with(expected), "{message}");
    // Operators authenticate with the token that was printed.
    assert!(redis(&server, &["SG.BANS"]).starts_with("NOPERM "));
    assert_eq!(redis(&server, &["AUTH", server.token()]), "OK\n");
    let bans = redis(&server, &["-a", server.token(), "SG.BANS"]);
    assert_eq!(bans, "\n");
}
