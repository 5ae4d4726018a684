//! Adaptive limits of upstreams: what moves them, and who is passed over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;
use std::time::Duration;

use futures_util::StreamExt;
use spillgate::{Clock, SystemClock};
use tokio::net::TcpListener;
use tokio_tungstenite::{accept_async, connect_async};

use crate::common::server::{spillgate, until};
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok, respond};
use crate::proxy::wire::Wire;

/// Where a limit begins whose minimum is 1.
const START: usize = 10;

fn metric(proxy: &Proxy, name: &str, url: &str) -> Option<f64> {
    proxy.metric(&format!("spillgate_proxy_upstream_{name}{{upstream=\"{url}\"}}"))
}

fn limit(proxy: &Proxy, url: &str) -> f64 {
    metric(proxy, "limit", url).unwrap()
}

fn in_flight(proxy: &Proxy, url: &str) -> usize {
    metric(proxy, "requests", url).unwrap() as usize
}

/// A service that never answers `/stuck`, and anything else at once.
fn service() -> Upstream {
    Upstream::playing(|mut wire, seen| {
        while let Some(request) = seen.next(&mut wire) {
            if request.path() == "/stuck" {
                wire.is_over();
                return;
            }
            wire.send(ok("hello"));
        }
    })
}

fn stuck(proxy: &Proxy, count: usize) -> Vec<Wire> {
    let ask = |_| {
        let mut wire = proxy.connect();
        wire.send("GET /stuck HTTP/1.1\r\nhost: a\r\n\r\n");
        wire
    };
    (0..count).map(ask).collect()
}

fn reload(proxy: &Proxy, setup: &Setup, count: f64) {
    proxy.home.write(&setup.file());
    proxy.server.signal("HUP");
    let accepted = "spillgate_reloads_total{outcome=\"accepted\"}";
    until("the reload", || proxy.metric(accepted) == Some(count));
}

#[test]
fn an_upstream_at_its_limit_gets_no_more_and_another_takes_over() {
    let upstreams = [service(), service()];
    let urls = upstreams.each_ref().map(Upstream::url);
    let auto = "upstream-controller = 'auto'\n";
    let proxy = Setup::to(&urls[..1]).proxy(auto).start();
    let busy = stuck(&proxy, START);
    until("the limit to be reached", || in_flight(&proxy, &urls[0]) == START);
    let refused = proxy.get("/");
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    assert!(refused.problem().contains("busy"), "{refused:?}");
    assert_eq!(metric(&proxy, "shed_total", &urls[0]), Some(1.0));
    assert_eq!(proxy.metric("spillgate_proxy_failures_total{kind=\"busy\"}"), Some(1.0));
    // New connections, the same limit and the same requests in flight.
    reload(&proxy, &Setup::to(&urls).proxy(auto).proxy("connect-timeout = '4s'\n"), 1.0);
    for _ in 0..20 {
        assert_eq!(proxy.get("/").status(), 200);
    }
    assert_eq!(upstreams.each_ref().map(|one| one.requests().len()), [START, 20]);
    drop(busy);
    until("the first to be free", || in_flight(&proxy, &urls[0]) == 0);
    until("the first to be asked again", || {
        assert_eq!(proxy.get("/").status(), 200);
        upstreams[0].requests().len() > START
    });
    let log = proxy.server.stop();
    assert!(log.contains("every upstream has as many requests as it may have"), "{log}");
}

/// A service that fails while it is told so.
fn fragile() -> (Upstream, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(true));
    let told = Arc::clone(&fails);
    let upstream = Upstream::answering(move |_| match told.load(Ordering::Relaxed) {
        true => respond("500 Internal Server Error", "", ""),
        false => ok("hello"),
    });
    (upstream, fails)
}

/// Asks from several connections at once until it is over.
fn load(proxy: &Proxy, is_over: &Arc<AtomicBool>) -> Vec<std::thread::JoinHandle<()>> {
    let client = |_| {
        let (address, is_over) = (proxy.address, Arc::clone(is_over));
        spawn(move || {
            let mut client = Wire::connect(address);
            while !is_over.load(Ordering::Relaxed) {
                client.get("/", "");
            }
        })
    };
    (0..START).map(client).collect()
}

#[test]
fn failures_lower_a_limit_and_it_recovers() {
    let (upstream, fails) = fragile();
    let setup = |max: u32| {
        let bound = format!("max-concurrent-per-upstream = {max}\n");
        Setup::to(&[upstream.url()]).proxy("upstream-controller = 'aimd'\n").proxy(&bound)
    };
    let proxy = setup(50).start();
    let url = upstream.url();
    assert_eq!(limit(&proxy, &url), START as f64);
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = load(&proxy, &is_over);
    until("a lower limit", || limit(&proxy, &url) < 9.5);
    let reason = |reason: &str| {
        let labels = format!("upstream=\"{url}\",reason=\"{reason}\"");
        proxy.metric(&format!("spillgate_proxy_upstream_limit_reason{{{labels}}}"))
    };
    until("the reason", || reason("failures") == Some(1.0));
    // Another maximum keeps what was learnt.
    let lowered = limit(&proxy, &url);
    reload(&proxy, &setup(40), 1.0);
    assert!(limit(&proxy, &url) <= lowered, "{} after {lowered}", limit(&proxy, &url));
    fails.store(false, Ordering::Relaxed);
    let lowest = limit(&proxy, &url);
    until("a higher limit", || limit(&proxy, &url) > lowest + 0.5);
    is_over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert!(metric(&proxy, "limit_changes_total", &url).unwrap() >= 2.0);
}

#[test]
fn an_upstream_that_fails_gets_a_share_of_its_requests() {
    let (upstream, _fails) = fragile();
    let setup = Setup::to(&[upstream.url()]).proxy("upstream-controller = 'errors'\n");
    let proxy = setup.start();
    assert_eq!(limit(&proxy, &upstream.url()), 1.0, "all pass at first");
    let mut client = proxy.connect();
    until("a share", || client.get("/", "").status() == 503);
    let share = limit(&proxy, &upstream.url());
    assert!((0.2..1.0).contains(&share), "{share}");
    let statuses: Vec<_> = (0..100).map(|_| client.get("/", "").status()).collect();
    assert!(statuses.contains(&500), "some still pass: {statuses:?}");
}

#[test]
fn clients_that_leave_do_not_move_a_limit() {
    let upstream = service();
    let setup = Setup::to(&[upstream.url()]).proxy("upstream-controller = 'aimd'\n");
    let (proxy, url) = (setup.start(), upstream.url());
    until("a step is taken", || {
        let leaving = stuck(&proxy, START / 2);
        until("them to wait", || in_flight(&proxy, &url) == START / 2);
        drop(leaving);
        until("them to be gone", || in_flight(&proxy, &url) == 0);
        // Samples there are, but of few requests at once.
        assert_eq!(proxy.get("/").status(), 200);
        metric(&proxy, "limit_signal", &url).is_some()
    });
    assert!(limit(&proxy, &url) >= START as f64, "{}", limit(&proxy, &url));
}

#[test]
fn a_client_that_sends_slowly_does_not_make_an_upstream_slow() {
    let upstream = service();
    let target = "upstream-controller = 'target'\nupstream-latency-target = '1s'\n";
    let (proxy, url) = (Setup::to(&[upstream.url()]).proxy(target).start(), upstream.url());
    let slow = Duration::from_millis(500);
    until("a step is taken", || {
        let mut clients: Vec<_> = (0..START).map(|_| proxy.connect()).collect();
        let begin = SystemClock.now();
        for client in &mut clients {
            client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nsl");
        }
        until("them to take their time", || SystemClock.now().since(begin) > slow);
        for client in &mut clients {
            client.send("ow");
            assert_eq!(client.response("POST").unwrap().status(), 200);
        }
        metric(&proxy, "limit_signal", &url).is_some()
    });
    let latency = metric(&proxy, "limit_signal", &url).unwrap();
    assert!(latency < slow.as_secs_f64(), "{latency} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websockets_do_not_use_up_a_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut socket) = accept_async(socket).await else { return };
                while let Some(Ok(_)) = socket.next().await {}
            });
        }
    });
    let bounds = "upstream-controller = 'auto'\nmax-concurrent-per-upstream = 12\n";
    let proxy = Setup::to(std::slice::from_ref(&url)).proxy(bounds).start();
    let mut open = Vec::new();
    for _ in 0..12 {
        open.push(connect_async(format!("ws://{}/chat", proxy.address)).await.unwrap());
    }
    assert_eq!(in_flight(&proxy, &url), 12);
    let refused = connect_async(format!("ws://{}/chat", proxy.address)).await.unwrap_err();
    assert!(refused.to_string().contains("503"), "the maximum still counts them: {refused}");
}

#[test]
fn limits_that_mean_nothing_are_refused_with_a_remedy() {
    for (arguments, expected) in [
        (&["--upstream-controller", "target"][..], "add upstream-latency-target"),
        (
            &["--upstream-controller", "auto", "--upstream-latency-target", "40ms"],
            "upstream-latency-target: only the controller \"target\" has one",
        ),
        (&["--upstream-latency-target", "40ms"], "add upstream-controller = \"target\""),
        (&["--min-concurrent-per-upstream", "5"], "add upstream-controller = \"auto\""),
        (
            &["--upstream-controller", "errors", "--min-concurrent-per-upstream", "5"],
            "limits the share of requests",
        ),
        (
            &["--upstream-controller", "auto", "--min-concurrent-per-upstream", "2000"],
            "2000 is above max-concurrent-per-upstream, which is 1000 if not set",
        ),
        (
            &[
                "--upstream-controller=auto",
                "--min-concurrent-per-upstream=9",
                "--max-concurrent-per-upstream=8",
            ],
            "9 is above max-concurrent-per-upstream, which is 8",
        ),
        (&["--upstream-controller", "auto", "--min-concurrent-per-upstream", "0"], "at least 1"),
        (&["--upstream-controller", "vegas"], "\"auto\", \"target\", \"aimd\" or \"errors\""),
        (&["--upstream-controller=target", "--upstream-latency-target=1us"], "at least 100us"),
    ] {
        let mut command = spillgate();
        command.args(["proxy", "--to", "http://127.0.0.1:9", "--limit", "10/s"]);
        command.args(arguments).args(["--listen", "127.0.0.1:0", "--http", "off"]);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(expected), "{arguments:?}: {error}");
    }
}
