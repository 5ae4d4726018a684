//! Another policy, and the end, while requests pass.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use crate::common::server::{run, until};
use crate::proxy::message::Message;
use crate::proxy::setup::{Setup, threads};
use crate::proxy::upstream::{Upstream, nobody, ok};
use crate::proxy::wire::Wire;

fn policy(burst: usize) -> String {
    format!("[[limit]]\nname = 'api'\nquota = '1/h burst {burst}'\n")
}

fn remaining(response: &Message) -> usize {
    let output = response.header("ratelimit").unwrap();
    let number = output.split("r=").nth(1).and_then(|rest| rest.split(';').next());
    number.unwrap().parse().unwrap()
}

/// Asks until told to stop; tells how many requests were answered with 200, and fails on others.
fn load(address: SocketAddr, is_over: &Arc<AtomicBool>) -> Vec<JoinHandle<usize>> {
    let client = |_| {
        let is_over = Arc::clone(is_over);
        spawn(move || {
            let (mut client, mut answered) = (Wire::connect(address), 0);
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(client.get("/", "").status(), 200);
                answered += 1;
            }
            answered
        })
    };
    (0..4).map(client).collect()
}

#[test]
fn a_policy_that_changes_under_load_loses_no_request_and_forgives_nothing() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let setup = |burst| Setup::to(&[upstream.url()]).policy(&policy(burst));
    let proxy = setup(1_000_000).start();
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = load(proxy.address, &is_over);
    let mut looks = 0;
    for burst in [900_000, 1_100_000, 800_000] {
        let before = upstream.requests().len();
        proxy.home.write(&setup(burst).file());
        proxy.server.signal("HUP");
        until("the new policy", || {
            looks += 1;
            let policy = proxy.get("/").header("ratelimit-policy").unwrap().to_owned();
            policy.contains(&format!("q={burst}"))
        });
        until("more load", || upstream.requests().len() > before + 100);
    }
    is_over.store(true, Ordering::Relaxed);
    let answered: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let last = proxy.get("/");
    assert_eq!(800_000 - remaining(&last), answered + looks + 1);
}

#[test]
fn a_change_after_processors_have_gone_is_taken_up_by_all_who_serve() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let setup = |burst, time| {
        let proxy = format!("idle-timeout = '{time}'\n");
        Setup::to(&[upstream.url()]).policy(&policy(burst)).proxy(&proxy)
    };
    let proxy = setup(1000, "60s").start();
    let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed.split_once("Cpus_allowed_list:").unwrap().1.trim_start();
    let first = allowed.split(|digit: char| !digit.is_ascii_digit()).next().unwrap();
    let pid = proxy.server.pid().to_string();
    run(Command::new("taskset").args(["--all-tasks", "--cpu-list", "--pid", first, &pid]));
    // With other time-outs, connections are kept anew.
    proxy.home.write(&setup(2000, "61s").file());
    proxy.server.signal("HUP");
    until("the change", || proxy.get("/").header("ratelimit-policy").unwrap().contains("q=2000"));
    for _ in 0..2 * threads() {
        assert_eq!(proxy.get("/").text(), "hello");
    }
}

/// Asks on one connection after the other until nobody listens; tells how many had no answer at
/// all. That one ends between two requests is what a client must expect.
fn persistent(address: SocketAddr, answered: &AtomicUsize) -> usize {
    let mut silent = 0;
    while let Ok(socket) = std::net::TcpStream::connect(address) {
        let (mut wire, mut is_kept, mut is_first) = (Wire::new(socket), true, true);
        while is_kept {
            wire.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
            let Some(response) = wire.response("GET") else {
                silent += usize::from(is_first);
                break;
            };
            assert!(response.is_whole && response.status() == 200, "{response:?}");
            answered.fetch_add(1, Ordering::Relaxed);
            is_kept = response.header("connection") != Some("close");
            is_first = false;
        }
    }
    silent
}

#[test]
fn whatever_reached_the_upstream_is_answered_before_the_end() {
    let served = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&served);
    let upstream = Upstream::answering(move |_| {
        sleep(Duration::from_millis(5));
        count.fetch_add(1, Ordering::Relaxed);
        ok("hello")
    });
    let proxy = Setup::to(&[upstream.url()]).policy(&policy(1_000_000)).start();
    let (address, answered) = (proxy.address, Arc::<AtomicUsize>::default());
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let answered = Arc::clone(&answered);
            spawn(move || persistent(address, &answered))
        })
        .collect();
    until("some load", || answered.load(Ordering::Relaxed) > 300);
    let log = proxy.server.stop();
    let silent: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    // One may have been connected between the last look and the end of the listener.
    assert!(silent <= 1, "{silent} connections\n{log}");
    assert_eq!(answered.load(Ordering::Relaxed), served.load(Ordering::Relaxed), "{log}");
}

#[test]
fn a_slow_response_is_waited_for_at_the_end_and_nobody_else_is_let_in() {
    let upstream = Upstream::playing(|mut wire, seen| {
        while seen.next(&mut wire).is_some() {
            wire.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n");
            for _ in 0..10 {
                sleep(Duration::from_millis(100));
                wire.send("x");
            }
        }
    });
    let proxy = Setup::to(&[upstream.url()]).server("shutdown-timeout = '1min'\n").start();
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), 200);
    proxy.server.signal("TERM");
    until("the listener is closed", || std::net::TcpStream::connect(proxy.address).is_err());
    assert_eq!(client.take(10), b"xxxxxxxxxx");
    let (status, log) = proxy.server.wait();
    assert!(status.success(), "{log}");
}

#[test]
fn other_upstreams_are_taken_up_without_a_restart_and_what_is_under_way_goes_on() {
    let (finish, may_finish) = std::sync::mpsc::channel::<()>();
    let may_finish = std::sync::Mutex::new(may_finish);
    let old = Upstream::playing(move |mut wire, seen| {
        seen.next(&mut wire).unwrap();
        wire.send("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n");
        let _ = may_finish.lock().unwrap().recv();
        wire.send("old");
    });
    let new = Upstream::answering(|_| ok("new"));
    let proxy = Setup::to(&[old.url()]).start();
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), 200);
    proxy.home.write(&Setup::to(&[new.url()]).file());
    proxy.server.signal("HUP");
    until("the reload", || {
        proxy.metric("spillgate_reloads_total{outcome=\"accepted\"}") == Some(1.0)
    });
    assert_eq!(proxy.get("/").text(), "new");
    finish.send(()).unwrap();
    assert_eq!(client.take(3), b"old");
    assert_eq!(client.get("/", "").text(), "new");
}

#[test]
fn what_passes_and_what_fails_is_counted() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let dead = nobody();
    let well = format!("http://{}", upstream.address);
    let proxy = Setup::to(std::slice::from_ref(&well)).start();
    for _ in 0..3 {
        proxy.get("/");
    }
    assert_eq!(proxy.metric("spillgate_proxy_requests_total{status=\"2xx\"}"), Some(3.0));
    let healthy = |url: &str| {
        proxy.metric(&format!("spillgate_proxy_upstream_healthy{{upstream=\"{url}\"}}"))
    };
    assert_eq!(healthy(&well), Some(1.0));

    let proxy = Setup::to(&[format!("http://{dead}")]).start();
    proxy.get("/");
    assert_eq!(proxy.metric("spillgate_proxy_requests_total{status=\"5xx\"}"), Some(1.0));
    assert_eq!(proxy.metric("spillgate_proxy_failures_total{kind=\"connect\"}"), Some(1.0));
    let name = format!("spillgate_proxy_upstream_healthy{{upstream=\"http://{dead}\"}}");
    assert_eq!(proxy.metric(&name), Some(0.0));
}
