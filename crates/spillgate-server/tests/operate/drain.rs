//! SIGTERM: nothing is forgiven, and no request is dropped.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::spawn;

use crate::common::server::{Home, until};
use crate::operate::clients::{Http, Resp, Tally, connecting_load, http_load, resp_load, spent};

/// So slow that nothing is refilled during a test, so large that nobody is limited.
pub(crate) const POLICY: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n\
    snapshot = 'state'\n[[limit]]\nname = 'api'\nquota = '1/h burst 1000000'\n";
pub(crate) const THROTTLE: &str = "CL.THROTTLE hot 999999 1 3600";

#[test]
fn what_is_admitted_until_sigterm_is_spent_after_the_restart_to_the_last_call() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let (http, resp) = (server.http, server.resp);
    let load = |pipeline| spawn(move || resp_load(resp, THROTTLE, pipeline));
    let keyed: Vec<_> = [1, 16, 100].map(load).into();
    let checked: Vec<_> =
        (0..3).map(|_| spawn(move || http_load(http, "api", "203.0.113.7"))).collect();
    until("some load", || spent(resp, &format!("{THROTTLE} 0")) > 20_000);
    let log = server.stop();
    let total = |tallies: Vec<std::thread::JoinHandle<Tally>>| {
        let tallies = tallies.into_iter().map(|tally| tally.join().unwrap());
        tallies.map(|tally| tally.allowed.len()).sum::<usize>() as i64
    };
    let (keyed, checked) = (total(keyed), total(checked));
    assert!(keyed > 20_000 && checked > 0, "{keyed} {checked}\n{log}");

    let server = home.start(&[]);
    assert_eq!(spent(server.resp, &format!("{THROTTLE} 0")), keyed, "{log}");
    assert_eq!(spent(server.resp, "SG.CHECK api 203.0.113.7 0"), checked, "{log}");
    assert!(server.stop().contains("restored snapshot"));
}

#[test]
fn what_was_received_is_answered_and_a_silent_client_is_let_go() {
    let home = Home::new(POLICY);
    let server = home.start(&["--shutdown-timeout", "5s"]);
    let mut silent = TcpStream::connect(server.resp).unwrap();
    let mut idle = Http::connect(server.http).unwrap();
    assert!(idle.check("api", "203.0.113.7").unwrap());
    let mut busy = Resp::connect(server.resp).unwrap();
    busy.send(&vec![THROTTLE; 1000].join("\r\n")).unwrap();
    server.signal("TERM");
    for _ in 0..1000 {
        assert_eq!(busy.five().unwrap()[0], 0);
    }
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "hung up");
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("did not read"), "{log}");
}

#[test]
fn while_it_drains_it_says_so_and_a_second_signal_ends_it() {
    let home = Home::new(POLICY);
    let server = home.start(&["--shutdown-timeout", "1min"]);
    // Requests that have begun to arrive are waited for.
    let [mut slow, mut never] = [(), ()].map(|()| {
        let mut socket = TcpStream::connect(server.http).unwrap();
        socket.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n").unwrap();
        socket
    });
    assert!(server.get("/readyz").contains("ready"), "by now they have arrived");
    server.signal("TERM");
    until("the listener is closed", || TcpStream::connect(server.http).is_err());
    slow.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("draining"), "{answer}");
    server.signal("INT");
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("exiting at once"), "{log}");
    assert!(never.read(&mut [0]).is_err() || never.read(&mut [0]).unwrap() == 0);
}

#[test]
fn those_who_wait_to_be_accepted_are_answered_too() {
    let home = Home::new(POLICY);
    let server = home.start(&["--max-connections", "1"]);
    // They have the only places, so the system connects the others, and keeps them.
    let mut first = (Resp::connect(server.resp).unwrap(), Http::connect(server.http).unwrap());
    assert_eq!(first.0.ask(THROTTLE).unwrap()[0], 0);
    assert!(first.1.check("api", "203.0.113.7").unwrap());
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let mut resp = Resp::connect(server.resp).unwrap();
            resp.send(THROTTLE).unwrap();
            let mut http = Http::connect(server.http).unwrap();
            (resp, spawn(move || http.check("api", "203.0.113.7")))
        })
        .collect();
    server.signal("TERM");
    for (mut resp, http) in waiting {
        assert_eq!(resp.five().unwrap()[0], 0);
        assert!(http.join().unwrap().unwrap());
    }
    assert!(server.wait().0.success());
    let server = home.start(&[]);
    assert_eq!(spent(server.resp, &format!("{THROTTLE} 0")), 21);
    assert_eq!(spent(server.resp, "SG.CHECK api 203.0.113.7 0"), 21);
    server.stop();
}

#[test]
fn clients_that_connect_for_every_call_are_answered_until_they_cannot_connect() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let (http, resp) = (server.http, server.resp);
    let clients: Vec<_> = (0..4).map(|_| spawn(move || connecting_load(http))).collect();
    until("some load", || spent(resp, "SG.CHECK api 203.0.113.7 0") > 500);
    server.stop();
    let tallies: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    let answered: i64 = tallies.iter().map(|tally| tally.allowed.len() as i64).sum();
    // Each may have been connected between the last look and the end of the listener.
    let cut_off: usize = tallies.iter().map(|tally| tally.unanswered).sum();
    assert!(cut_off <= 1, "{cut_off} of {answered}");
    let server = home.start(&[]);
    let spent = spent(server.resp, "SG.CHECK api 203.0.113.7 0");
    assert_eq!(spent, answered, "who was cut off has not spent anything");
    server.stop();
}
