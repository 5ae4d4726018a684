//! What is said at the start, and what is needed for it.

use std::sync::Arc;
use std::time::Duration;

use spillgate::Timestamp;
use spillgate_redis::backend::{
    Alive, Announcement, Backend, BackendError, Exchange, Fault, Lasts, Member, PermitCall,
    PermitOp, SealedEdit, Swap, Wanted,
};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{Fingerprint, Name};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::common::{Proxy, Server};
use crate::connections::asking::{ask, entry, options, until_down, until_up};

async fn refusal(options: Options) -> BackendError {
    Client::connect(options).await.map(|_| ()).unwrap_err()
}

pub(crate) async fn assert_refused(options: Options, fault: Fault, why: &str) {
    let error = refusal(options).await;
    assert!(error.to_string().contains(why), "{error}");
    assert_eq!(error.fault(), fault, "{error}");
}

/// Makes every kind of call.
pub(crate) async fn use_all(client: &Client) {
    ask(client, 1).await.unwrap();
    let name = Name::from_bytes([7; 16]);
    let terms = entry(1).terms;
    let state = spillgate_redis::State::new(terms, entry(1).fresh);
    let expires = Some(Duration::from_secs(9));
    let put = Exchange { name, old: None, new: Some(state.clone()), expires };
    assert!(client.exchange(&put).await.unwrap());
    assert!(!client.exchange(&put).await.unwrap());
    assert!(client.exchange(&Exchange { old: Some(state), new: None, ..put }).await.unwrap());
    let fingerprint = Some(Fingerprint { secret: 1, policy: 2 });
    let own = Some(Member { node: Name::from_bytes([8; 16]), fingerprint });
    let lifetime = Duration::from_secs(5);
    let join = Announcement { joins: own, leaves: None, lifetime, lists: true };
    let alone = Alive { count: 1, others: Some(Vec::new()), other_prefixes: 0 };
    assert_eq!(client.announce(&join).await.unwrap(), alone);
    let look = Announcement { joins: None, ..join };
    let one = Alive { count: 1, others: Some(vec![(fingerprint, 1)]), other_prefixes: 0 };
    assert_eq!(client.announce(&look).await.unwrap(), one);
    let leave = Announcement { leaves: own, ..look };
    assert_eq!(client.announce(&leave).await.unwrap().count, 0);
    let born = client.born(name).await.unwrap();
    assert!(born > Timestamp::ZERO);
    assert_eq!(client.born(name).await.unwrap(), born);
    client.forget(name).await.unwrap();
    client.deposit(name, b"kept", Duration::from_secs(60)).await.unwrap();
    assert_eq!(client.withdraw(name).await.unwrap().as_deref(), Some(&b"kept"[..]));
    let edits = [Lasts::Forever, Lasts::For(Duration::from_secs(9)), Lasts::Ended]
        .map(|lasts| SealedEdit { name, lasts, sealed: b"sealed".to_vec() });
    assert!(client.publish(&edits).await.unwrap());
    assert_eq!(client.edits_since(0).await.unwrap().edits, edits[2..]);
    let (alive, page) = client.pulse(&join, 0).await;
    assert_eq!(alive.unwrap(), alone);
    assert_eq!(page.unwrap(), client.edits_since(0).await.unwrap());
    let ttl = Duration::from_secs(9);
    let hold = PermitOp::Hold(Wanted::exactly(3, 5, ttl));
    for op in [hold, PermitOp::Renew { ttl }, PermitOp::Release] {
        let call = PermitCall { name, holder: entry(2).name, op };
        assert!(client.permits(&call).await.unwrap().is_done);
    }
    for [old, new] in [["", "1"], ["1", "2"], ["2", ""]] {
        let swap = Swap { old: old.into(), new: new.into(), ttl };
        assert!(client.swap_strikes(name, Some(&swap)).await.unwrap().is_swapped);
    }
}

#[tokio::test]
async fn redis_and_valkey_answer_every_kind_of_call() {
    for server in [
        Server::redis(),
        Server::valkey(),
        #[cfg(target_arch = "x86_64")]
        Server::redis_6_2(),
    ] {
        let client = Client::connect(options(&server.url()).connections(2)).await.unwrap();
        use_all(&client).await;
        let health = client.health();
        assert_eq!((health.outage, health.connects, health.in_flight), (None, 1, 0));
        assert_eq!(health.round_trips.counts.iter().sum::<u64>(), health.calls);
    }
}

#[tokio::test]
async fn calls_that_come_together_are_sent_together() {
    let server = Server::redis();
    let client = Arc::new(Client::connect(options(&server.url())).await.unwrap());
    let reads = || {
        let stats = server.command("INFO stats");
        let reads = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        reads.unwrap().parse::<u32>().unwrap()
    };
    let before = reads();
    let calls = (0..100).map(|name| {
        let client = client.clone();
        tokio::spawn(async move { ask(&client, name).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    let reads = reads() - before;
    assert!(reads < 20, "a server had to read {reads} times for a hundred calls");
}

#[tokio::test]
async fn a_socket_in_the_file_system_will_do() {
    let server = Server::redis_with(&["--unixsocket", "redis.sock"]);
    let path = server.folder().join("redis.sock");
    let client = Client::connect(options(&format!("unix://{}", path.display()))).await.unwrap();
    use_all(&client).await;
    let missing = options(&format!("unix://{}.not", path.display()));
    assert_refused(missing, Fault::Unreachable, "redis.sock.not cannot be reached").await;
}

#[tokio::test]
async fn where_nobody_listens_is_said() {
    let mut server = Server::redis();
    server.kill();
    let text = format!("127.0.0.1:{} cannot be reached", server.port);
    assert_refused(options(&server.url()), Fault::Unreachable, &text).await;
    let unknown = options("redis://nobody.invalid").connect_time_out(Duration::from_secs(10));
    assert_refused(unknown, Fault::Unreachable, "nobody.invalid:6379 cannot be reached").await;
    let server = Server::redis();
    let proxy = Proxy::to(server.port).await;
    proxy.silence_all(true);
    assert_refused(options(&proxy.url()), Fault::Unreachable, "did not answer in 500 ms").await;
}

#[tokio::test]
async fn credentials_are_checked_and_never_told() {
    let server = Server::redis_with(&["--requirepass", "hunter2"]);
    let url = server.url();
    assert_refused(options(&url), Fault::Refused, "requires a password").await;
    for wrong in [options(&url).password("hunter3"), options(&url.replace("//", "//x:hunter2@"))] {
        let error = refusal(wrong).await;
        assert_eq!(error.fault(), Fault::Refused, "{error}");
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
    let client = Client::connect(options(&url).password("hunter2")).await.unwrap();
    use_all(&client).await;
    assert!(!format!("{client:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_server_that_repeats_what_it_was_sent_is_told_of_without_the_password() {
    let server = Server::redis_with(&["--rename-command", "AUTH", ""]);
    let error = refusal(options(&server.url()).password("hunter2")).await.to_string();
    assert!(error.ends_with("answered ERR unknown command 'AUTH'"), "{error}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_the_end() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", socket.local_addr().unwrap());
    let sending = tokio::spawn(async move {
        let (mut client, _) = socket.accept().await.unwrap();
        client.write_all(b"$9000000000000\r\n").await.unwrap();
        let (bytes, mut sent) = (vec![b'x'; 1 << 16], 0);
        while let Ok(()) = client.write_all(&bytes).await {
            sent += bytes.len();
        }
        sent
    });
    // Long enough for gigabytes.
    let patient = options(&url).connect_time_out(Duration::from_secs(3));
    assert_refused(patient, Fault::Unreachable, "the connection was lost").await;
    // What is on its way besides is up to the system.
    let sent = sending.await.unwrap();
    assert!(sent < 128 << 20, "{sent} bytes");
}

#[tokio::test]
async fn redis_that_may_drop_keys_is_refused() {
    let server = Server::redis_with(&["--maxmemory", "50mb"]);
    Client::connect(options(&server.url())).await.unwrap();
    server.command("CONFIG SET maxmemory-policy volatile-lru");
    let why = "has `maxmemory-policy volatile-lru`";
    assert_refused(options(&server.url()), Fault::Misconfigured, why).await;
    server.command("CONFIG SET maxmemory 0");
    Client::connect(options(&server.url())).await.unwrap();
}

#[tokio::test]
async fn a_server_that_accepts_no_writes_is_refused() {
    let server = Server::redis();
    let of = server.port.to_string();
    let replica = Server::redis_with(&["--replicaof", "127.0.0.1", &of]);
    assert_refused(options(&replica.url()), Fault::Unready, "read-only replica").await;
    server.command("CONFIG SET min-replicas-to-write 3");
    assert_refused(options(&server.url()), Fault::Unready, "`min-replicas-to-write`").await;
    server.command("CONFIG SET min-replicas-to-write 0");
    server.command("CONFIG SET maxmemory 1");
    assert_refused(options(&server.url()), Fault::Unready, "out of memory").await;
}

#[tokio::test]
async fn a_start_may_be_in_an_outage() {
    let mut server = Server::redis();
    server.kill();
    let client = Client::connect_later(options(&server.url())).unwrap();
    until_down(&client, Fault::Unreachable).await;
    server.start_again();
    until_up(&client).await;
    use_all(&client).await;
}

#[tokio::test]
async fn a_start_in_an_outage_refuses_what_any_start_does() {
    let server = Server::redis_with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let client = Client::connect_later(options(&server.url())).unwrap();
    until_down(&client, Fault::Misconfigured).await;
    let error = ask(&client, 1).await.unwrap_err();
    assert!(error.to_string().contains("set it to `noeviction` (down for "), "{error}");
    server.command("CONFIG SET maxmemory-policy noeviction");
    until_up(&client).await;
}
