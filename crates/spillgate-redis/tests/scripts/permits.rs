//! The scripts hold permits and swap values as the model does.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spillgate::Timestamp;
use spillgate_redis::Name;
use spillgate_redis::backend::{Backend, Fault, Model, PermitCall, PermitOp, Swap, Wanted};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::script::Keys;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::common::{Server, real_time};

const HOUR: Duration = Duration::from_secs(3600);
const ANN: Name = Name::from_bytes([1; 16]);

/// Longer than a test machine ever stands still.
const PATIENCE: Duration = Duration::from_secs(20);

fn calls() -> impl Strategy<Value = Vec<PermitCall>> {
    let counts = (0..8_u32, 0..12_u32, 0..12_u32, 0..10_u32, 1..4_u32);
    let hold = (counts, 0..6_u64, any::<bool>()).prop_map(
        |((least, needed, usable, limit, nodes), number, is_beyond)| {
            let wanted = Wanted { number, least, needed, usable, nodes, is_beyond, ..fixed(limit) };
            PermitOp::Hold(wanted)
        },
    );
    let op = prop_oneof![
        6 => hold,
        1 => Just(PermitOp::Renew { ttl: HOUR }),
        1 => Just(PermitOp::Release),
        1 => Just(PermitOp::Revoke { late: HOUR }),
    ];
    let call = (0..4_u8, op).prop_map(|(holder, op)| PermitCall {
        name: ANN,
        holder: Name::from_bytes([holder; 16]),
        op,
    });
    proptest::collection::vec(call, 1..40)
}

fn fixed(limit: u32) -> Wanted {
    Wanted::exactly(0, limit, HOUR)
}

fn hold(holder: u8, count: u32, ttl: Duration) -> PermitCall {
    let op = PermitOp::Hold(Wanted::exactly(count, 10, ttl));
    PermitCall { name: ANN, holder: Name::from_bytes([holder; 16]), op }
}

async fn connect(server: &Server) -> Client {
    Client::connect(Options::new(&server.url()).unwrap()).await.unwrap()
}

#[test]
fn the_script_holds_permits_as_the_model_does() {
    for (server, cases) in [
        (Server::redis(), 200),
        (Server::valkey(), 50),
        #[cfg(target_arch = "x86_64")]
        (Server::redis_6_2(), 50),
    ] {
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(connect(&server));
        let mut runner = TestRunner::new(Config { cases, ..Config::default() });
        let played = runner.run(&calls(), |calls| {
            server.command("FLUSHDB");
            let model = Model::new(Timestamp::from_nanos(real_time()));
            runtime.block_on(async {
                for call in &calls {
                    let real = client.permits(call).await.unwrap();
                    assert_eq!(real, model.permits_now(call), "{call:?}");
                }
            });
            Ok(())
        });
        played.unwrap();
    }
}

#[tokio::test]
async fn permits_expire_by_the_clock_of_redis_and_so_do_the_keys() {
    let server = Server::redis();
    let client = connect(&server).await;
    let short = Duration::from_millis(30);
    assert!(client.permits(&hold(1, 4, short)).await.unwrap().is_done);
    assert!(client.permits(&hold(2, 3, HOUR)).await.unwrap().is_done);
    let look = PermitCall { holder: Name::from_bytes([9; 16]), ..hold(9, 0, HOUR) };
    let begin = Instant::now();
    let mut expired = 0;
    while expired == 0 {
        assert!(begin.elapsed() < PATIENCE, "they do not expire");
        sleep(Duration::from_millis(5)).await;
        let reply = client.permits(&look).await.unwrap();
        expired = reply.expired;
        assert_eq!(reply.total, if expired == 0 { 7 } else { 3 });
    }
    assert_eq!(expired, 4);
    let release = PermitCall { op: PermitOp::Release, ..hold(1, 0, HOUR) };
    assert!(!client.permits(&release).await.unwrap().is_done, "they had expired");
    let renew = PermitCall { op: PermitOp::Renew { ttl: HOUR }, ..release };
    assert!(!client.permits(&renew).await.unwrap().is_done);
    let key = Keys::default().permits(&ANN);
    let ttl: i64 = redis::cmd("PTTL").arg(&key[..]).query(&mut server.admin()).unwrap();
    assert!((3_500_000..=3_601_000).contains(&ttl), "{ttl}");
    let release = PermitCall { op: PermitOp::Release, ..hold(2, 0, HOUR) };
    assert!(client.permits(&release).await.unwrap().is_done);
    assert!(!client.permits(&release).await.unwrap().is_done, "once");
    assert_eq!(server.command("DBSIZE"), "0");
}

/// Nobody else gets them before.
#[tokio::test]
async fn permits_last_no_less_than_their_time_to_live() {
    let server = Server::redis();
    let client = connect(&server).await;
    let ttl = Duration::from_millis(5);
    let only = |holder: u8| {
        let op = PermitOp::Hold(Wanted::exactly(1, 1, ttl));
        PermitCall { name: ANN, holder: Name::from_bytes([holder; 16]), op }
    };
    for round in 0..100 {
        let sent = Instant::now();
        assert!(client.permits(&only(1)).await.unwrap().is_done);
        while !client.permits(&only(2)).await.unwrap().is_done {}
        assert!(sent.elapsed() >= ttl, "in round {round} after {:?}", sent.elapsed());
        // On a busy machine they may have expired already.
        let release = PermitCall { op: PermitOp::Release, ..only(2) };
        let _ = client.permits(&release).await.unwrap();
    }
}

#[tokio::test]
async fn permits_that_are_revoked_are_not_held_by_a_late_call() {
    let server = Server::redis();
    let client = connect(&server).await;
    let late = Duration::from_millis(200);
    let revoke = |holder| PermitCall { op: PermitOp::Revoke { late }, ..hold(holder, 0, HOUR) };
    assert!(client.permits(&hold(1, 4, HOUR)).await.unwrap().is_done);
    assert!(client.permits(&revoke(1)).await.unwrap().is_done);
    assert!(!client.permits(&revoke(2)).await.unwrap().is_done, "it had arrived nowhere");
    for holder in [1, 2] {
        let reply = client.permits(&hold(holder, 4, HOUR)).await.unwrap();
        assert_eq!((reply.is_done, reply.held, reply.total), (false, 0, 0));
    }
    // What is remembered of them does not outlive that.
    let key = Keys::default().permits(&ANN);
    let ttl: i64 = redis::cmd("PTTL").arg(&key[..]).query(&mut server.admin()).unwrap();
    assert!((0..=1200).contains(&ttl), "{ttl}");
}

#[tokio::test]
async fn permits_of_an_earlier_version_are_refused_with_what_to_do() {
    let server = Server::redis();
    let client = connect(&server).await;
    let key = Keys::default().permits(&ANN);
    let mut older = redis::cmd("HSET");
    older.arg(&key[..]).arg("total").arg(3).exec(&mut server.admin()).unwrap();
    let error = client.permits(&hold(1, 4, HOUR)).await.unwrap_err();
    let told = format!("delete the key (redis-cli DEL '{}')", String::from_utf8_lossy(&key));
    assert_eq!(error.fault(), Fault::Corrupt);
    assert!(error.to_string().contains(&told), "{error}");
}

/// A thousand are purged per call; the rest is not resurrected.
#[tokio::test]
async fn of_many_expired_permits_none_is_released_or_renewed() {
    let server = Server::redis();
    let client = connect(&server).await;
    let names: Vec<_> = (0..1500_u128).map(|i| Name::from_bytes((i + 1).to_be_bytes())).collect();
    let call = |holder: &Name, op| PermitCall { name: ANN, holder: *holder, op };
    let one = PermitOp::Hold(Wanted::exactly(1, 2000, Duration::from_millis(400)));
    let calls: Vec<_> = names.iter().map(|name| call(name, one)).collect();
    for reply in futures_util::future::join_all(calls.iter().map(|it| client.permits(it))).await {
        reply.unwrap();
    }
    // Until also the last has expired, by the clock that Redis has.
    sleep(Duration::from_millis(450)).await;
    let last = names.last().unwrap();
    let renewed = client.permits(&call(last, PermitOp::Renew { ttl: HOUR })).await.unwrap();
    assert!(!renewed.is_done && renewed.held == 0, "{renewed:?}");
    let again = client.permits(&call(last, PermitOp::Release)).await.unwrap();
    assert!(!again.is_done);
    assert_eq!(renewed.expired + again.expired, 1500);
    assert_eq!(again.total, 0);
}

#[derive(Clone, Debug)]
struct SwapStep {
    expects_present: bool,
    new: Vec<u8>,
}

#[test]
fn the_script_swaps_values_as_the_model_does() {
    let steps = proptest::collection::vec(
        (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..6))
            .prop_map(|(expects_present, new)| SwapStep { expects_present, new }),
        1..20,
    );
    let server = Server::redis();
    let runtime = Runtime::new().unwrap();
    let client = runtime.block_on(connect(&server));
    let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
    let played = runner.run(&steps, |steps| {
        server.command("FLUSHDB");
        let model = Model::new(Timestamp::from_nanos(real_time()));
        runtime.block_on(async {
            for step in steps {
                let present = client.swap_strikes(ANN, None).await.unwrap().value;
                assert_eq!(model.swap_strikes(ANN, None).await.unwrap().value, present);
                let old = if step.expects_present { present } else { b"other".to_vec() };
                let swap = Swap { old, new: step.new, ttl: HOUR };
                let (before, real) = (real_time(), client.swap_strikes(ANN, Some(&swap)).await);
                let (real, after) = (real.unwrap(), real_time());
                let modelled = model.swap_strikes(ANN, Some(&swap)).await.unwrap();
                assert_eq!((real.is_swapped, real.value), (modelled.is_swapped, modelled.value));
                // Redis tells whole microseconds.
                assert!((before / 1000 * 1000..=after).contains(&real.now.as_nanos()));
            }
        });
        Ok(())
    });
    played.unwrap();
}
