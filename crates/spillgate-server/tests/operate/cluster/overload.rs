//! More is asked through one server than Redis answers. That is no outage: whoever asks too much
//! waits, and the others do not notice.

use std::process::{Child, Stdio};
use std::thread::{sleep, spawn};
use std::time::Duration;

use spillgate::{Clock, SystemClock};
use spillgate_testing::{effort, program};

use super::{config, metric};
use crate::common::redis::Redis;
use crate::common::server::{Home, Server, until};
use crate::operate::clients::Resp;

const LIMITS: &str = "\
    [[limit]]\nname = 'flooded'\nmatch = { path = '/a' }\nper = 'header:x-key'\n\
    quota = '1000/day'\n\
    [[limit]]\nname = 'closed'\nmatch = { path = '/b' }\nper = 'header:x-key'\n\
    quota = '1000000/day'\noutage = 'closed'\n\
    [[limit]]\nname = 'day'\nmatch = { path = '/c' }\nper = 'header:x-key'\n\
    quota = '1000/day'\nalgorithm = 'fixed-window'\n";

/// A server, with a time-out that a busy machine keeps.
fn start(redis: &Redis) -> (Home, Server) {
    let config = config(redis, LIMITS).replace("[store]", "[store]\ncommand-timeout = '10s'");
    let home = Home::new(&config);
    let server = home.start(&[]);
    (home, server)
}

/// For how long a server is flooded.
fn long() -> Duration {
    Duration::from_secs(if effort() > 1 { 5 } else { 2 })
}

/// Clients with 16 calls under way each, all of them about somebody else.
struct Flood(Child);

impl Flood {
    fn start(server: &Server, limit: &str, clients: u32) -> Self {
        let port = server.resp.port().to_string();
        let mut command = program("redis-benchmark");
        command.args(["-p", &port, "-c", &clients.to_string(), "-P", "16", "-r", "1000000000"]);
        command.args(["-n", "1000000000", "SG.CHECK", limit, "__rand_int__"]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What an innocent caller was answered.
#[derive(Debug, Default)]
struct Answers {
    allowed: u32,
    denied: u32,
    errors: Vec<String>,
}

/// Asks on a connection of its own, at a moderate pace, for as long as there is a flood.
fn ask(server: &Server, call: &'static str, pause: Duration) -> impl FnOnce() -> Answers + use<> {
    let address = server.resp;
    let asking = spawn(move || {
        let (mut client, begin) = (Resp::connect(address).unwrap(), SystemClock.now());
        let mut answers = Answers::default();
        while SystemClock.now().since(begin) < long() {
            match client.ask(call) {
                Ok([0, ..]) => answers.allowed += 1,
                Ok(_) => answers.denied += 1,
                Err(error) => answers.errors.push(error.to_string()),
            }
            sleep(pause);
        }
        answers
    });
    move || asking.join().unwrap()
}

fn outage(server: &Server) -> f64 {
    let decided =
        |by| metric(server, &format!("spillgate_store_decisions_total{{source=\"{by}\"}}"));
    let local = ["outage-local", "outage-open", "outage-closed"].map(decided);
    local.iter().sum::<f64>() + metric(server, "spillgate_store_outages_total")
}

#[test]
fn a_flood_through_one_server_is_no_outage_and_nobody_else_pays_for_it() {
    let redis = Redis::start();
    let (_home, server) = start(&redis);
    let flood = Flood::start(&server, "flooded", 400);
    let pause = Duration::from_millis(5);
    let closed = ask(&server, "SG.CHECK closed innocent", pause);
    // The same limit as the flood, and another one; both are used up and asked on.
    let flooded = ask(&server, "SG.CHECK flooded innocent 10", pause);
    let day = ask(&server, "SG.CHECK day innocent 10", pause);
    let (closed, flooded, day) = (closed(), flooded(), day());
    drop(flood);
    for (name, answers) in [("closed", &closed), ("flooded", &flooded), ("day", &day)] {
        assert!(answers.errors.is_empty(), "{name}: {answers:?}");
        assert!(answers.allowed > 0, "{name}: {answers:?}");
    }
    assert_eq!(closed.denied, 0);
    // A day refills less than one call in this time.
    assert!(flooded.allowed <= 100, "{flooded:?}");
    assert!(day.allowed <= 100, "{day:?}");
    assert_eq!(outage(&server), 0.0);
    let waited = metric(&server, "spillgate_store_calls_waited_total");
    assert!(waited > 0.0, "there was no flood");
    let log = server.stop();
    assert!(!log.contains("Redis is down"), "{log}");
}

#[test]
fn a_flood_that_is_too_large_to_wait_is_refused_in_words_of_its_own() {
    let redis = Redis::start();
    let (_home, server) = start(&redis);
    // More calls than may wait.
    let flood = Flood::start(&server, "flooded", 800);
    let refused = "spillgate_store_call_failures_total{kind=\"overloaded\"}";
    until("that calls are refused", || metric(&server, refused) > 0.0);
    let closed = ask(&server, "SG.CHECK closed innocent", Duration::from_millis(5))();
    drop(flood);
    assert!(closed.errors.is_empty() && closed.denied == 0, "{closed:?}");
    assert_eq!(outage(&server), 0.0);
    assert!(server.get("/readyz").contains("\"outage\":null"));
    let log = server.stop();
    assert_eq!(log.matches("Redis is overloaded: rejecting queued calls").count(), 1, "{log}");
    assert!(!log.contains("the store could not answer"), "{log}");
}
