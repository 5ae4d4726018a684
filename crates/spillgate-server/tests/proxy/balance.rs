//! Several upstreams, and connections that are kept.

use std::thread::spawn;

use crate::common::server::until;
use crate::proxy::setup::{Proxy, Setup, threads};
use crate::proxy::upstream::{Upstream, nobody, ok};

#[test]
fn requests_are_spread_evenly() {
    let upstreams = [(); 3].map(|()| Upstream::answering(|_| ok("hello")));
    let proxy = Setup::to(&upstreams.each_ref().map(Upstream::url)).start();
    let mut client = proxy.connect();
    for _ in 0..30 {
        assert_eq!(client.get("/", "").status(), 200);
    }
    for upstream in &upstreams {
        assert_eq!(upstream.requests().len(), 10);
    }
}

#[test]
fn whoever_is_busy_gets_fewer_requests() {
    let slow = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire);
        wire.is_over();
    });
    let quick = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[slow.url(), quick.url()]).start();
    // One request stays with the slow one.
    let mut waiting = proxy.connect();
    let mut other = proxy.connect();
    for wire in [&mut waiting, &mut other] {
        wire.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    }
    until("one is stuck", || slow.requests().len() == 1 && quick.requests().len() == 1);
    for _ in 0..20 {
        assert_eq!(proxy.get("/").text(), "hello");
    }
    assert_eq!((slow.requests().len(), quick.requests().len()), (1, 21));
}

#[test]
fn a_dead_one_among_several_is_not_noticed() {
    let upstream = Upstream::answering(|request| ok(&request.text()));
    let dead = [nobody(), nobody()];
    let [first, last] = dead.each_ref().map(|it| format!("http://{it}"));
    let proxy = Setup::to(&[first, upstream.url(), last]).start();
    let mut client = proxy.connect();
    for _ in 0..20 {
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello");
        assert_eq!(client.response("POST").unwrap().text(), "hello");
    }
    assert_eq!(upstream.requests().len(), 20);
}

#[test]
fn one_that_ends_under_load_costs_no_request_that_may_be_sent_twice() {
    let upstreams = [(); 2].map(|()| {
        // Hangs up after some requests without saying so, as one does that is being restarted.
        Upstream::playing(|mut wire, seen| {
            for _ in 0..7 {
                let Some(_) = seen.next(&mut wire) else { return };
                wire.send(ok("hello"));
            }
        })
    });
    let proxy = Setup::to(&upstreams.each_ref().map(Upstream::url)).start();
    let address = proxy.address;
    let clients: Vec<_> = (0..4)
        .map(|_| {
            spawn(move || {
                let mut client = crate::proxy::wire::Wire::connect(address);
                let statuses = (0..100).map(|_| client.get("/", "").status());
                statuses.filter(|status| *status == 200).count()
            })
        })
        .collect();
    let answered: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert_eq!(answered, 400);
}

#[test]
fn connections_are_kept_and_used_again() {
    let upstream = Upstream::answering(|request| ok(&request.text()));
    let proxy = Proxy::to(&upstream);
    for _ in 0..50 {
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello");
        assert_eq!(client.response("POST").unwrap().text(), "hello");
    }
    assert!(upstream.connections() <= 1 + threads(), "{} connections", upstream.connections());
}

#[test]
fn an_upstream_that_says_it_hangs_up_is_not_sent_more_on_that_connection() {
    let upstream = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire).unwrap();
        wire.send(crate::proxy::upstream::respond("200 OK", "connection: close\r\n", "hello"));
        // Whatever is sent now would be lost.
        assert!(wire.is_over());
    });
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.connect();
    for _ in 0..10 {
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello");
        let response = client.response("POST").unwrap();
        assert_eq!(response.status(), 200, "{response:?}");
        assert_eq!(
            response.header("connection"),
            None,
            "that is between the proxy and the upstream"
        );
    }
    assert_eq!(upstream.connections(), 10);
}
