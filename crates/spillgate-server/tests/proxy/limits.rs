//! Limits in front of a service: what passes, what is told, what is given back.

use std::sync::{Arc, Barrier};
use std::thread::spawn;

use crate::proxy::setup::Setup;
use crate::proxy::upstream::{Upstream, ok, respond};
use crate::proxy::wire::Wire;

#[test]
fn exactly_the_burst_passes_of_many_connections_at_once() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let policy = "[[limit]]\nname = 'api'\nquota = '1/h burst 100'\n";
    let proxy = Setup::to(&[upstream.url()]).policy(policy).start();
    let (address, start) = (proxy.address, Arc::new(Barrier::new(64)));
    let clients: Vec<_> = (0..64)
        .map(|_| {
            let start = Arc::clone(&start);
            spawn(move || {
                let mut client = Wire::connect(address);
                start.wait();
                [(); 5].map(|()| client.get("/", "").status())
            })
        })
        .collect();
    let statuses: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((count(200), count(429)), (100, 220));
    assert_eq!(upstream.requests().len(), 100);
}

#[test]
fn a_refused_request_is_told_why_and_is_counted_and_logged() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let policy = "[[limit]]\nname = 'api'\nquota = '2/h'\n";
    let proxy = Setup::to(&[upstream.url()]).policy(policy).start();
    let mut client = proxy.connect();
    for remaining in [1, 0] {
        let response = client.get("/", "");
        let message = response.header("ratelimit").unwrap();
        assert!(message.starts_with(&format!("\"api\";r={remaining};")), "{message}");
        assert!(response.header("ratelimit-policy").unwrap().starts_with("\"api\";q=2;"));
    }
    let response = client.get("/", "");
    assert_eq!(response.status(), 429);
    response.problem();
    assert!(response.header("retry-after").unwrap().parse::<u64>().unwrap() > 1000);
    // The connection is kept, also with a body that nobody has read.
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello");
    assert_eq!(client.response("POST").unwrap().status(), 429);
    assert_eq!(client.get("/", "").status(), 429);
    let denied = "spillgate_requests_total{limit=\"api\",outcome=\"denied\"}";
    let metrics = proxy.server.get("/metrics");
    assert_eq!(proxy.metric(denied), Some(3.0), "{metrics}");
    assert_eq!(upstream.requests().len(), 2);
    let log = proxy.server.stop();
    assert!(log.contains("denied") && log.contains("api"), "{log}");
}

#[test]
fn costs_are_settled_by_what_the_upstream_answers() {
    let upstream = Upstream::answering(|request| match request.path() {
        "/complete" => respond("200 OK", "x-tokens-used: 30\r\n", "some words"),
        "/fails" => respond("500 Internal Server Error", "", "sorry"),
        _ => respond("401 Unauthorized", "", "no"),
    });
    let policy = "[[limit]]\nname = 'tokens'\nmatch = { path = '/complete' }\nquota = '100/h'\n\
        cost = 10\nsettle = { header = 'x-tokens-used' }\n\
        [[limit]]\nname = 'work'\nmatch = { path = '/fails' }\nquota = '2/h'\n\
        settle = { status = ['2xx', '4xx'] }\n\
        [[limit]]\nname = 'login'\nmatch = { path = '/login' }\nquota = '2/h'\n\
        settle = { status = 401 }\n";
    let proxy = Setup::to(&[upstream.url()]).policy(policy).start();
    let mut client = proxy.connect();
    let mut statuses =
        |path, times| -> Vec<_> { (0..times).map(|_| client.get(path, "").status()).collect() };
    // After three of 30 there are 10 left, which the fourth may take beforehand.
    assert_eq!(statuses("/complete", 5), [200, 200, 200, 200, 429]);
    assert_eq!(statuses("/fails", 5), [500; 5], "what fails costs nothing");
    assert_eq!(statuses("/login", 3), [401, 401, 429], "what is wrong does");
}

#[test]
fn who_is_blocked_is_told_403_and_the_upstream_does_not_hear_of_it() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[upstream.url()]).top("block = ['127.0.0.1']\n").start();
    let response = proxy.get("/");
    assert_eq!(response.status(), 403, "{response:?}");
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn callers_behind_a_trusted_proxy_are_told_apart_and_strangers_cannot_invent_one() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let limit = "[[limit]]\nname = 'api'\nquota = '1/h'\n";
    let trusting = format!("[identity]\ntrusted-proxies = ['127.0.0.1']\n{limit}");
    for (policy, expected) in [(trusting.as_str(), 200), (limit, 429)] {
        let proxy = Setup::to(&[upstream.url()]).policy(policy).start();
        let mut client = proxy.connect();
        assert_eq!(client.get("/", "x-forwarded-for: 203.0.113.1\r\n").status(), 200);
        let second = client.get("/", "x-forwarded-for: 203.0.113.2\r\n").status();
        assert_eq!(second, expected, "{policy}");
    }
}

#[test]
fn a_limit_on_a_path_is_not_escaped_by_another_spelling() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let policy = "[[limit]]\nname = 'login'\nmatch = { path = '/login' }\nquota = '1/h'\n";
    let proxy = Setup::to(&[upstream.url()]).policy(policy).start();
    let mut client = proxy.connect();
    assert_eq!(client.get("/login", "").status(), 200);
    for path in ["/login", "/login/", "//login", "/x/../login", "/%6cogin", "/login?a", "/./login"]
    {
        assert_eq!(client.get(path, "").status(), 429, "{path}");
    }
    client.send("GET http://example.test/login HTTP/1.1\r\nhost: example.test\r\n\r\n");
    assert_eq!(client.response("GET").unwrap().status(), 429);
}
