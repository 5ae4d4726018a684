//! `SG.ACQUIRE`, `SG.RENEW`, `SG.RELEASE`, `SG.STRIKE`, `SG.BANS`, `SG.BAN` and `SG.LIFT`.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use spillgate::ManualClock;
use spillgate_enforce::Enforcer;
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};

use super::{Talk, Tested};
use crate::Access;
use crate::protocol::resp::{Endpoint, Password};

const POLICY: &str = "
    limit = [
        { name = 'jobs', concurrent = 3, per = 'user', by-name = true },
        { name = 'all-jobs', concurrent = 1, per = 'global', by-name = true },
        { name = 'login', quota = '1/h burst 100', per = 'ip', by-name = true,
          ban = { strikes = 2, window = '1m', duration = '90s' } },
        { name = 'plain', quota = '1/h', per = 'ip', by-name = true },
    ]";

fn endpoint() -> (Arc<Tested>, ManualClock) {
    let clock = ManualClock::default();
    clock.advance(Duration::from_secs(1_000_000));
    let policy = Policy::from_toml(POLICY).unwrap();
    let gate = Gate::with_store(policy, Memory::new(clock.clone())).unwrap();
    let access = Access::loopback(Password::new("token"));
    let endpoint = Endpoint::new(Arc::new(Enforcer::new(gate)));
    (Arc::new(endpoint.access(Arc::new(ArcSwap::from_pointee(access)))), clock)
}

/// Acquires permits, and returns their id.
async fn acquire(talk: &mut Talk, line: &str, left: u64, millis: u64) -> String {
    talk.send(format!("{line}\r\n")).await;
    talk.expect("*4\r\n$64\r\n").await;
    let id = talk.take(64).await;
    assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    talk.expect("\r\n").await;
    talk.skip_line().await;
    talk.expect(&format!(":{left}\r\n:{millis}\r\n")).await;
    id
}

#[tokio::test]
async fn permits_are_acquired_renewed_and_released_once() {
    let (endpoint, clock) = endpoint();
    let mut talk = Talk::with(&endpoint);
    let one = acquire(&mut talk, "SG.ACQUIRE jobs 42", 2, 30_000).await;
    let two = acquire(&mut talk, "sg.acquire jobs 42 count 2 px 1500", 0, 1_500).await;
    talk.ask("SG.ACQUIRE jobs 42", "*4\r\n$-1\r\n:3\r\n:0\r\n:1000\r\n").await;
    acquire(&mut talk, "SG.ACQUIRE jobs 43 EX 7", 2, 7_000).await;

    clock.advance(Duration::from_millis(1_499));
    talk.ask(&format!("SG.RENEW {two} EX 10"), ":1\r\n").await;
    clock.advance(Duration::from_secs(5));
    talk.ask("SG.ACQUIRE jobs 42", "*4\r\n$-1\r\n:3\r\n:0\r\n:1000\r\n").await;
    talk.ask(&format!("SG.RELEASE {two}"), ":1\r\n").await;
    talk.ask(&format!("SG.RELEASE {two}"), ":0\r\n").await;
    talk.ask(&format!("SG.RENEW {two} EX 10"), ":0\r\n").await;
    acquire(&mut talk, "SG.ACQUIRE jobs 42 COUNT 2", 0, 30_000).await;

    // The first expires, and is neither renewed nor returned a second time.
    clock.advance(Duration::from_secs(24));
    talk.ask(&format!("SG.RENEW {one} EX 10"), ":0\r\n").await;
    talk.ask(&format!("SG.RELEASE {one}"), ":0\r\n").await;
    acquire(&mut talk, "SG.ACQUIRE jobs 42", 0, 30_000).await;
    talk.ask("SG.ACQUIRE jobs 42", "*4\r\n$-1\r\n:3\r\n:0\r\n:1000\r\n").await;
    acquire(&mut talk, "SG.ACQUIRE all-jobs PARTS 0", 0, 30_000).await;
}

#[tokio::test]
async fn what_is_no_permit_or_no_option_is_refused() {
    let (endpoint, _) = endpoint();
    let mut talk = Talk::with(&endpoint);
    for nobody in ["x", "00", &"0".repeat(64), &"g".repeat(64)] {
        talk.ask(&format!("SG.RELEASE {nobody}"), ":0\r\n").await;
        talk.ask(&format!("SG.RENEW {nobody} EX 5"), ":0\r\n").await;
    }
    for (line, reply) in [
        ("SG.ACQUIRE jobs 42 TTL 5", "-ERR syntax error\r\n"),
        ("SG.ACQUIRE jobs 42 EX", "-ERR syntax error\r\n"),
        ("SG.ACQUIRE jobs 42 EX 5 PX 5", "-ERR syntax error\r\n"),
        ("SG.RENEW x COUNT 5", "-ERR syntax error\r\n"),
        ("SG.RENEW x", "-ERR wrong number of arguments for 'sg.renew' command\r\n"),
        ("SG.ACQUIRE jobs", "-ERR wrong number of arguments for 'sg.acquire' command\r\n"),
    ] {
        talk.ask(line, reply).await;
    }
    for line in [
        "SG.ACQUIRE jobs 42 EX 0",
        "SG.ACQUIRE jobs 42 EX 86401",
        "SG.ACQUIRE jobs 42 PX 999",
        "SG.ACQUIRE jobs 42 COUNT 0",
        "SG.ACQUIRE plain 192.0.2.1",
        "SG.ACQUIRE none 42",
        "SG.STRIKE plain 192.0.2.1",
        "SG.STRIKE login 192.0.2.1 3",
    ] {
        talk.send(format!("{line}\r\n")).await;
        talk.expect("-ERR ").await;
        talk.skip_line().await;
    }
}

#[tokio::test]
async fn strikes_lead_to_a_ban_that_checks_see() {
    let (endpoint, clock) = endpoint();
    let mut talk = Talk::with(&endpoint);
    talk.ask("SG.STRIKE login 192.0.2.1", ":0\r\n").await;
    talk.ask("SG.STRIKE login 192.0.2.1", ":90\r\n").await;
    talk.ask("SG.CHECK login 192.0.2.1", "*5\r\n:1\r\n:0\r\n:0\r\n:90\r\n:0\r\n").await;
    talk.ask("SG.CHECK plain 192.0.2.1", "*5\r\n:1\r\n:0\r\n:0\r\n:90\r\n:0\r\n").await;
    clock.advance(Duration::from_millis(89_999));
    talk.ask("SG.CHECK login 192.0.2.1", "*5\r\n:1\r\n:0\r\n:0\r\n:1\r\n:0\r\n").await;
    clock.advance(Duration::from_millis(1));
    talk.send("SG.CHECK login 192.0.2.1\r\n").await;
    talk.expect("*5\r\n:0\r\n").await;
}

#[tokio::test]
async fn bans_are_for_operators() {
    let (endpoint, _) = endpoint();
    let mut talk = Talk::with(&endpoint);
    let no = "-NOPERM only operators may call this; authenticate with the server's token: AUTH \
              TOKEN\r\n";
    for line in ["SG.BANS", "SG.BAN 192.0.2.1 60", "SG.LIFT 192.0.2.1"] {
        talk.ask(line, no).await;
    }
    talk.send("AUTH wrong\r\n").await;
    talk.expect("-ERR AUTH").await;
    talk.skip_line().await;
    talk.ask("AUTH token", "+OK\r\n").await;
    talk.ask("SG.BANS", "*0\r\n").await;
    talk.ask("SG.BAN 192.0.2.1 60 scanner", "+OK\r\n").await;
    talk.ask("SG.BAN user:7 3600", "+OK\r\n").await;
    talk.send("SG.BANS\r\n").await;
    talk.expect("*2\r\n*4\r\n$9\r\n192.0.2.1\r\n:60\r\n:1\r\n$7\r\nscanner\r\n").await;
    talk.expect("*4\r\n$6\r\nuser:7\r\n:3600\r\n").await;
    talk.skip_line().await;
    talk.skip_line().await;
    talk.skip_line().await;
    talk.ask("SG.BAN 192.0.2.1 120", "+OK\r\n").await;
    talk.ask("SG.CHECK plain 192.0.2.1", "*5\r\n:1\r\n:0\r\n:0\r\n:120\r\n:0\r\n").await;
    talk.ask("SG.LIFT 192.0.2.1", ":1\r\n").await;
    talk.ask("SG.LIFT 192.0.2.1", ":0\r\n").await;
    talk.send("SG.CHECK plain 192.0.2.1\r\n").await;
    talk.expect("*5\r\n:0\r\n").await;
    for _ in 0..4 {
        talk.skip_line().await;
    }
    for line in ["SG.BAN nobody 60", "SG.BAN 192.0.2.1 0", "SG.BAN 192.0.2.0/24 60"] {
        talk.send(format!("{line}\r\n")).await;
        talk.expect("-ERR ").await;
        talk.skip_line().await;
    }
    talk.ask("RESET", "+RESET\r\n").await;
    talk.ask("SG.BANS", no).await;
}
