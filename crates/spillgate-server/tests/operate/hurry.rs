//! A server that is told to stop does not finish reading a snapshot, and one that is told
//! so twice does not finish writing it.

use std::sync::LazyLock;

use spillgate::algorithm::Word;
use spillgate::{AlgorithmKind, Fingerprint, Saved, SavedTable, Seed, SystemClock};
use spillgate_policy::store::SavedLimit;
use spillgate_server::snapshot::{Moment, SnapshotWriter};

use crate::common::server::{Home, Server, spillgate, until};

const CONFIG: &str = "[[limit]]\nname = 'api'\nquota = '1/h burst 1000'\ncapacity = 4_000_000\n\
    [server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\nsnapshot = 'state'\n";

/// A snapshot that takes a while to read and to write.
static LARGE: LazyLock<Vec<u8>> = LazyLock::new(large);

/// Two million callers that have spent all they have.
fn large() -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer =
        SnapshotWriter::new(&mut out, &Moment::now(&SystemClock), Seed::from_bytes([7; 16]))
            .unwrap();
    // Spread as a hash would.
    let keys = (1..=2_000_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let spent = Word::from_bits(u64::MAX / 2);
    let callers = keys.map(|key| (Fingerprint::from_bits(key), spent)).collect();
    let quota = "1/h burst 1000".parse().unwrap();
    let mut saved = Saved::default();
    saved.tables.push(SavedTable { tier: None, is_by_call: false, quota, callers });
    let (name, per) = ("api".to_owned(), "caller".to_owned());
    let kind = AlgorithmKind::TokenBucket;
    writer.limit(&SavedLimit::new(name, per, kind, saved)).unwrap();
    writer.finish().unwrap();
    out
}

#[test]
fn a_signal_ends_a_server_that_still_reads_its_snapshot() {
    let home = Home::new(CONFIG);
    std::fs::write(home.path("state"), &*LARGE).unwrap();
    let mut command = spillgate();
    command.arg("serve").arg("--config").arg(home.path("spillgate.toml"));
    let server = Server::begin(command);
    until("it is about to read", || home.path("state.lock").exists());
    server.signal("TERM");
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("shutdown requested during startup"), "{log}");
    assert_eq!(std::fs::read(home.path("state")).unwrap(), *LARGE, "as it was");
}

#[test]
fn a_second_signal_ends_a_server_that_writes_its_last_snapshot() {
    let home = Home::new(CONFIG);
    std::fs::write(home.path("state"), &*LARGE).unwrap();
    let server = home.start(&[]);
    server.signal("TERM");
    until("it writes", || home.path("state.tmp").exists());
    server.signal("TERM");
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("exiting at once, without a snapshot"), "{log}");
    assert_eq!(std::fs::read(home.path("state")).unwrap(), *LARGE, "the one before stays");
}
