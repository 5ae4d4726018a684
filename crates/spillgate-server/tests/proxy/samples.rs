//! What the adaptive limits of a policy learn from requests that are forwarded, and from those that are not.

use std::time::Duration;

use spillgate::{Clock, SystemClock};

use crate::common::server::until;
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok};

fn errors() -> &'static str {
    "[[limit]]\nname = 'service'\nadaptive = { controller = 'errors' }\n"
}

fn limit(proxy: &Proxy) -> f64 {
    proxy.metric("spillgate_adaptive_limit{limit=\"service\"}").unwrap()
}

fn signal(proxy: &Proxy, signal: &str) -> Option<f64> {
    let labels = format!("limit=\"service\",signal=\"{signal}\"");
    proxy.metric(&format!("spillgate_adaptive_signal{{{labels}}}"))
}

#[test]
fn an_upstream_that_is_not_asked_has_not_failed() {
    let upstream = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire);
        wire.is_over();
    });
    let bound = "max-concurrent-per-upstream = 1\n";
    let proxy = Setup::to(&[upstream.url()]).proxy(bound).policy(errors()).start();
    let mut busy = proxy.connect();
    busy.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    until("the upstream to be busy", || upstream.requests().len() == 1);
    let (begin, mut client) = (SystemClock.now(), proxy.connect());
    let mut asked = 0;
    // Longer than a window is, and more often than a step takes.
    while SystemClock.now().since(begin) < Duration::from_millis(2200) || asked < 200 {
        let refused = client.get("/", "");
        assert!(refused.problem().contains("Every upstream is busy"), "{refused:?}");
        asked += 1;
    }
    assert_eq!((limit(&proxy), signal(&proxy, "errors")), (1.0, None));
}

#[test]
fn an_upstream_that_cannot_be_reached_has_failed() {
    let gone = Upstream::answering(|_| ok("")).url();
    let proxy = Setup::to(&[gone]).policy(errors()).start();
    let mut client = proxy.connect();
    assert_eq!(client.get("/", "").status(), 502);
    until("a share", || {
        client.get("/", "");
        limit(&proxy) < 1.0
    });
}

#[test]
fn the_time_that_a_client_takes_to_send_its_body_is_no_latency() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let target = "[[limit]]\nname = 'service'\n\
                  adaptive = { controller = 'target', target = '1s', min = 1, max = 50 }\n";
    let proxy = Setup::to(&[upstream.url()]).policy(target).start();
    let slow = Duration::from_millis(500);
    until("a step is taken", || {
        let mut clients: Vec<_> = (0..8).map(|_| proxy.connect()).collect();
        let begin = SystemClock.now();
        for client in &mut clients {
            client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nsl");
        }
        until("them to take their time", || SystemClock.now().since(begin) > slow);
        for client in &mut clients {
            client.send("ow");
            assert_eq!(client.response("POST").unwrap().status(), 200);
        }
        signal(&proxy, "latency").is_some()
    });
    let latency = signal(&proxy, "latency").unwrap();
    assert!(latency < slow.as_secs_f64(), "{latency} s");
}
