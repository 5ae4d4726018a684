//! A client that leaves: nobody goes on working for it.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::proxy::frames;
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::Upstream;
use crate::proxy::wire::Wire;

/// What the upstream notices.
#[derive(Debug, PartialEq)]
enum Event {
    /// It has begun to work.
    Busy,
    /// The proxy has hung up.
    Alone,
}

const PATIENCE: Duration = Duration::from_secs(60);

/// When the client leaves: what it has sent by then, and what the upstream does meanwhile.
struct Case {
    name: &'static str,
    sent: &'static str,
    is_answered: bool,
    play: fn(&mut Wire),
}

const CASES: [Case; 4] = [
    Case {
        name: "while it waits for the response",
        sent: "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        is_answered: false,
        play: |wire| assert!(wire.is_over()),
    },
    Case {
        name: "while it is sent the response",
        sent: "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        is_answered: true,
        play: |wire| {
            wire.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
            while wire.send("x".repeat(10_000)) {}
        },
    },
    Case {
        name: "while it waits for more of the response",
        sent: "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        is_answered: true,
        play: |wire| {
            wire.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\nsome");
            assert!(wire.is_over());
        },
    },
    Case {
        name: "while it sends the request",
        sent: "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nsome",
        is_answered: false,
        play: |wire| assert_eq!(wire.rest(), b"some"),
    },
];

fn upstream(play: fn(&mut Wire), events: Sender<Event>) -> Upstream {
    let events = Mutex::new(events);
    Upstream::playing(move |mut wire, _| {
        wire.head().unwrap();
        let tell = |event| events.lock().unwrap().send(event).unwrap();
        tell(Event::Busy);
        play(&mut wire);
        tell(Event::Alone);
    })
}

#[test]
fn a_client_that_leaves_ends_its_request_at_the_upstream() {
    for case in CASES {
        let (tell, events) = channel();
        let upstream = upstream(case.play, tell);
        let proxy = Proxy::to(&upstream);
        let mut client = proxy.connect();
        client.send(case.sent);
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Busy);
        if case.is_answered {
            assert_eq!(client.head().unwrap().status(), 200);
        }
        drop(client);
        let event = events.recv_timeout(PATIENCE);
        assert_eq!(event, Ok(Event::Alone), "{}", case.name);
    }
}

#[test]
fn a_client_that_stays_and_does_not_read_is_not_waited_for() {
    let over_http1 = "GET / HTTP/1.1\r\nhost: a\r\n\r\n".as_bytes().to_vec();
    // The connection still carries other things, and only the response has no room.
    let over_http2 = frames::request(&frames::PLAIN, "");
    for request in [over_http1, over_http2] {
        let (tell, events) = channel();
        let upstream = upstream(
            |wire| {
                wire.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
                while wire.send("x".repeat(100_000)) {}
                // Until the proxy hangs up: nobody else does.
                wire.rest();
            },
            tell,
        );
        let setup = Setup::to(&[upstream.url()])
            .proxy("idle-timeout = '1s'\n")
            .server("io-timeout = '1s'\n");
        let proxy = setup.start();
        let mut client = proxy.connect();
        client.send(request);
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Busy);
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::Alone);
        drop(client);
    }
}
