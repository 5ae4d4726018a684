//! `SG.TOP`

use std::sync::Arc;

use arc_swap::ArcSwap;
use spillgate::{ManualClock, WhenFull};
use spillgate_enforce::{Enforcer, Metrics};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};

use super::{Talk, Tested};
use crate::Access;
use crate::protocol::resp::{Endpoint, Password};

const POLICY: &str = "limit = [{ name = 'login', quota = '1/h', per = 'ip', by-name = true }]";

fn endpoint() -> Arc<Tested> {
    let policy = Policy::from_toml(POLICY).unwrap().with_throttle(100, WhenFull::Evict);
    let gate = Gate::with_store(policy, Memory::new(ManualClock::default())).unwrap();
    let enforcer = Enforcer::new(gate).metrics(Metrics::new());
    let access = Access::loopback(Password::new("token"));
    Arc::new(Endpoint::new(Arc::new(enforcer)).access(Arc::new(ArcSwap::from_pointee(access))))
}

#[tokio::test]
async fn whoever_is_denied_is_listed_most_denied_first() {
    let endpoint = endpoint();
    let mut talk = Talk::with(&endpoint);
    talk.ask("SG.TOP", "*0\r\n").await;
    for (line, calls) in [("SG.CHECK login 192.0.2.1", 3), ("SG.CHECK login 192.0.2.2", 4)] {
        for _ in 0..calls {
            talk.send(format!("{line}\r\n")).await;
            talk.expect("*5\r\n").await;
            for _ in 0..5 {
                talk.skip_line().await;
            }
        }
    }
    let row = |address: &str, denied: u32| {
        format!("*4\r\n$5\r\nlogin\r\n$12\r\nip={address}\r\n:{denied}\r\n:0\r\n")
    };
    let both = format!("*2\r\n{}{}", row("192.0.2.2", 3), row("192.0.2.1", 2));
    talk.ask("SG.TOP", &both).await;
    talk.ask("sg.top login count 5", &both).await;
    talk.ask("SG.TOP COUNT 1", &format!("*1\r\n{}", row("192.0.2.2", 3))).await;
    talk.ask("SG.TOP cl.throttle", "*0\r\n").await;
    talk.ask("SG.TOP nope", "-ERR there is no limit \"nope\"\r\n").await;
    talk.ask("SG.TOP login COUNT", "-ERR syntax error\r\n").await;
    let refused = "-ERR count must be an integer from 1 to 1024\r\n";
    talk.ask("SG.TOP login COUNT 1025", refused).await;
    talk.ask("SG.TOP login login", "-ERR syntax error\r\n").await;
}

#[tokio::test]
async fn keys_are_in_clear_for_operators_alone() {
    let endpoint = endpoint();
    let mut talk = Talk::with(&endpoint);
    for _ in 0..2 {
        talk.send("CL.THROTTLE secret-key 0 1 3600\r\n".to_owned()).await;
        for _ in 0..6 {
            talk.skip_line().await;
        }
    }
    talk.send("SG.TOP\r\n".to_owned()).await;
    talk.expect("*1\r\n*4\r\n$11\r\ncl.throttle\r\n$13\r\nkey=#").await;
    for _ in 0..3 {
        talk.skip_line().await;
    }
    let refused = "-NOPERM only operators may see callers in clear; authenticate with the server's \
                   token: AUTH TOKEN\r\n";
    talk.ask("SG.TOP REVEAL", refused).await;
    talk.ask("AUTH token", "+OK\r\n").await;
    let row = "*1\r\n*4\r\n$11\r\ncl.throttle\r\n$14\r\nkey=secret-key\r\n:1\r\n:0\r\n";
    talk.ask("SG.TOP REVEAL COUNT 9", row).await;
}
