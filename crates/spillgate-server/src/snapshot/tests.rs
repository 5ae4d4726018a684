use std::io::{Cursor, Write};
use std::time::Duration;

use proptest::collection::{hash_set, vec};
use proptest::prelude::*;
use spillgate::account::{SavedAccount, SavedPile};
use spillgate::algorithm::Word;
use spillgate::{
    AlgorithmKind, Clock, Fingerprint, ManualClock, Quota, Saved, SavedCaller, SavedOwn,
    SavedTable, Seed, Timestamp,
};
use spillgate_policy::store::{Edit, SavedLimit};

use super::*;

fn pairs() -> impl Strategy<Value = Vec<(Fingerprint, Word)>> {
    vec((1..u64::MAX, 0..u64::MAX), 0..40).prop_map(|pairs| {
        let pair = |(caller, word)| (Fingerprint::from_bits(caller), Word::from_bits(word));
        pairs.into_iter().map(pair).collect()
    })
}

fn quota() -> impl Strategy<Value = Quota> {
    (1..1_000_u64, 1..100_000_u64, 1..10_000_u64).prop_map(|(amount, seconds, burst)| {
        Quota::per(amount, Duration::from_secs(seconds)).burst(burst).build().unwrap()
    })
}

fn limit() -> impl Strategy<Value = SavedLimit> {
    let table = (prop::option::of(".{0,5}"), any::<bool>(), quota(), pairs()).prop_map(
        |(tier, is_by_call, quota, callers)| SavedTable { tier, is_by_call, quota, callers },
    );
    let overrides = (hash_set(1..u64::MAX, 0..5), quota(), any::<bool>());
    let kind = proptest::sample::select(&AlgorithmKind::ALL[..]);
    (".{0,12}", ".{0,12}", kind, vec(table, 0..3), overrides).prop_map(
        |(name, per, kind, tables, (callers, quota, is_removed))| {
            let mut spent = Saved::default();
            spent.tables = tables;
            spent.accounts = callers.iter().map(|caller| account(*caller, quota)).collect();
            let mut limit = SavedLimit::new(name, per, kind, spent);
            limit.removed_for = is_removed.then(|| Duration::from_nanos(callers.len() as u64));
            limit
        },
    )
}

fn account(caller: u64, quota: Quota) -> SavedCaller {
    let word = |divisor| Word::from_bits(caller / divisor);
    let until = caller.is_multiple_of(3).then(|| Timestamp::from_nanos(caller / 5));
    let pile = |number: u64| {
        let lag = Duration::from_nanos(number);
        SavedPile { quota, word: Word::from_bits(caller / 3 + number), lag }
    };
    SavedCaller {
        caller: Fingerprint::from_bits(caller),
        tier: caller.is_multiple_of(5).then(|| "gold".to_owned()),
        own: caller.is_multiple_of(2).then_some(SavedOwn { until }),
        account: SavedAccount {
            quota,
            word: word(2),
            debt: word(4),
            at: Timestamp::from_nanos(caller / 7),
            since: Timestamp::from_nanos(caller / 9),
            piles: (0..caller % 4).map(pile).collect(),
        },
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    let until = prop::option::of(0..1_u64 << 62);
    let edit = (".{0,20}", prop::option::of(".{0,20}"), until).prop_map(|(key, value, until)| {
        Piece::Edit(Edit::new(key, value, until.map(Timestamp::from_nanos)))
    });
    prop_oneof![edit, limit().prop_map(Piece::Limit)]
}

fn blocked() -> Edit {
    let key = "[\"list\",\"block\",\"192.0.2.0/24\"]".to_owned();
    Edit::new(key, Some("{}".to_owned()), Some(Timestamp::from_secs(9)))
}

fn moment() -> Moment {
    let boot = Some(Boot { id: 7, time: Duration::from_nanos(11) });
    Moment { clock: Timestamp::from_nanos(3), wall: Duration::from_nanos(5), boot }
}

fn written(pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = SnapshotWriter::new(&mut bytes, &moment(), Seed::from_bytes([9; 16])).unwrap();
    for piece in pieces {
        match piece {
            Piece::Edit(edit) => writer.edit(edit).unwrap(),
            Piece::Limit(limit) => writer.limit(limit).unwrap(),
        }
    }
    let length = writer.finish().unwrap();
    assert_eq!(length, bytes.len() as u64);
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<Piece>, Error> {
    let mut reader = SnapshotReader::new(Cursor::new(bytes))?;
    let mut pieces = Vec::new();
    while let Some(piece) = reader.next_piece()? {
        pieces.push(piece);
    }
    Ok(pieces)
}

proptest! {
    #![proptest_config(spillgate_testing::strategy::cases(128))]

    #[test]
    fn what_is_written_is_read(pieces in vec(piece(), 0..6)) {
        let bytes = written(&pieces);
        prop_assert_eq!(read(&bytes).unwrap(), pieces);
        let reader = SnapshotReader::new(Cursor::new(&bytes)).unwrap();
        prop_assert_eq!(*reader.moment(), moment());
        prop_assert_eq!(reader.seed().to_bytes(), [9; 16]);
    }

    #[test]
    fn a_flipped_bit_or_a_cut_is_noticed(
        pieces in vec(piece(), 0..3),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let bytes = written(&pieces);
        let place = place.index(bytes.len());
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << bit;
        prop_assert!(read(&flipped).is_err());
        prop_assert!(read(&bytes[..place]).is_err());
    }
}

#[test]
fn many_callers_are_read_in_rows() {
    let caller = |number| (Fingerprint::from_bits(number), Word::from_bits(number));
    let callers: Vec<_> = (1..10_000).map(caller).collect();
    let quota = "10/s burst 20".parse().unwrap();
    let mut spent = Saved::default();
    spent.tables.push(SavedTable { tier: None, is_by_call: false, quota, callers });
    let (name, per) = ("api".to_owned(), "caller".to_owned());
    let limit = SavedLimit::new(name, per, AlgorithmKind::TokenBucket, spent);
    let pieces = [Piece::Limit(limit)];
    let bytes = written(&pieces);
    assert_eq!(read(&bytes).unwrap(), pieces);
}

#[test]
fn what_is_wrong_is_said() {
    let whole = written(&[]);
    let mut newer = whole.clone();
    newer[MAGIC.len()] = 4;
    let mut longer = whole.clone();
    longer.push(0);
    let mut endless = whole[..69].to_vec();
    endless.extend([1, 0, 1, 255, 255, 255, 255]);
    for (bytes, expected) in [
        (&b""[..], "it is not a snapshot of Spillgate"),
        (b"REDIS0011", "it is not a snapshot of Spillgate"),
        (
            &newer,
            "it is of version 4, and this server reads version 3; use the server that wrote it, or go on \
             without it",
        ),
        (&whole[..40], "it ends too early"),
        (&longer, "it is damaged: it goes on after its end"),
        (&endless, "it ends too early"),
    ] {
        assert_eq!(read(bytes).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all_and_has_one_server() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let file = SnapshotFile::claim(&path).unwrap();
    assert!(file.open().unwrap().is_none());
    file.write(|out| out.write_all(&written(&[]))).unwrap();
    assert!(file.open().unwrap().is_some());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let failed = file.write(|out| {
        out.write_all(b"half")?;
        Err::<(), _>(std::io::Error::other("disk full"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "disk full");
    assert!(file.open().unwrap().is_some(), "the old one stays");
    assert!(!folder.path().join("state.tmp").exists());

    let second = SnapshotFile::claim(&path).unwrap_err().to_string();
    assert!(second.starts_with("another server keeps its snapshots at "), "{second}");
    drop(file);
    assert!(SnapshotFile::claim(&path).unwrap().open().unwrap().is_some());
}

#[test]
fn what_cannot_be_used_is_set_aside_under_a_name_that_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = SnapshotFile::claim(folder.path().join("state")).unwrap();
    let mut newer = written(&[]);
    newer[MAGIC.len()] = 4;
    let cases: [(&[u8], &str); 4] = [
        (b"nonsense", "state.corrupt-1"),
        (&newer, "state.other-version-1"),
        (b"nonsense", "state.corrupt-2"),
        (&newer, "state.other-version-2"),
    ];
    for (bytes, aside) in cases {
        file.write(|out| out.write_all(bytes)).unwrap();
        let why = file.open().unwrap_err();
        assert_eq!(file.set_aside(&why).unwrap(), folder.path().join(aside));
    }
}

#[test]
fn a_link_in_the_way_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("state"), folder.path().join("victim"));
    std::fs::write(&victim, "precious").unwrap();
    let plant = || std::os::unix::fs::symlink(&victim, folder.path().join("state.tmp")).unwrap();
    plant();
    let file = SnapshotFile::claim(&path).unwrap();
    plant();
    file.write(|out| out.write_all(&written(&[]))).unwrap();
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "precious");
    assert!(path.symlink_metadata().unwrap().is_file());
}

/// As a disk that goes bad does it.
struct Failing<'a>(&'a [u8]);

impl std::io::Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::other("bad sector")),
            count => Ok(count),
        }
    }
}

#[test]
fn a_disk_that_fails_is_no_damaged_snapshot_wherever_it_fails() {
    let whole = written(&[Piece::Edit(blocked())]);
    for length in 0..=whole.len() {
        let mut reader = SnapshotReader::new(Failing(&whole[..length]));
        let failed = match &mut reader {
            Ok(reader) => std::iter::repeat_with(|| reader.next_piece()).find_map(Result::err),
            Err(_) => reader.err(),
        };
        assert!(failed.unwrap().is_io(), "after {length} bytes");
    }
}

#[test]
fn a_place_that_cannot_be_written_to_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let missing = SnapshotFile::claim(folder.path().join("no/state")).unwrap_err().to_string();
    assert!(missing.ends_with("make the folder first"), "{missing}");
    assert!(SnapshotFile::claim(folder.path()).is_err());
}

/// Spends, saves, and looks at what is left after so much time in another process.
#[tokio::test]
async fn words_move_by_the_time_that_has_passed() {
    use spillgate::WhenFull;
    use spillgate_policy::store::{CallQuota, Memory};
    use spillgate_policy::{Gate, Limit, LimitCheck, ListKind, Policy, Terms, Throttle};

    let policy = || {
        let policy = Policy::builder().limit(Limit::new("api", "1/min burst 10")).build().unwrap();
        policy.with_throttle(100, WhenFull::Evict)
    };
    let quota = CallQuota::new("1/min burst 10".parse().unwrap()).unwrap();
    let throttle = |cost| Throttle { key: b"key", quota, cost };
    let clock = ManualClock::default();
    let gate = Gate::with_store(policy(), Memory::new(clock.clone())).unwrap();
    let spent = gate.decide(&LimitCheck::new("api", &["203.0.113.7"], 8)).await.unwrap();
    assert!(spent.is_allowed());
    let until = clock.now() + 30 * Duration::from_secs(60);
    gate.list(ListKind::Block, "198.51.100.0/24", Terms::until(until)).await.unwrap();
    gate.list(ListKind::Allow, "key:friend", Terms::permanent()).await.unwrap();
    let own = "1/min burst 30".parse().unwrap();
    gate.set_override("api", &["203.0.113.8"], own, Terms::until(until)).await.unwrap();
    let spent = gate.decide(&LimitCheck::new("api", &["203.0.113.8"], 8)).await.unwrap();
    assert!(spent.is_allowed());
    assert!(gate.decide(&throttle(8)).await.unwrap().is_allowed());
    let minute = Duration::from_secs(60);
    let mut bytes = Vec::new();
    save(&gate, &clock, gate.store().seed(), &mut bytes).unwrap();

    for (minutes, left) in [(0, 2), (3, 5), (60, 10)] {
        let mut reader = SnapshotReader::new(Cursor::new(&bytes)).unwrap();
        let mut now = *reader.moment();
        now.boot = now.boot.map(|boot| Boot { time: boot.time + minutes * minute, ..boot });
        // The wall clock was set back, and the new process has a clock of its own.
        now.wall = Duration::ZERO;
        let clock = ManualClock::new(Timestamp::from_secs(9_999));
        let gate = Gate::with_store(policy(), Memory::new(clock.clone()).with_seed(reader.seed()));
        let gate = gate.unwrap();
        assert!(restore(&mut reader, &gate, || now).unwrap().is_empty());
        let decision = gate.peek_limit("api", &["203.0.113.7"], 0).await.unwrap();
        assert_eq!(decision.remaining(), left, "after {minutes} minutes");
        let look = gate.decide(&throttle(0)).await.unwrap();
        let owed = look.decision().unwrap().reset_after().unwrap();
        assert_eq!(owed, 8_u32.saturating_sub(minutes) * minute, "after {minutes} minutes");
        // What was to end in half an hour ends half an hour after it was set.
        let rest = 30_u32.saturating_sub(minutes);
        assert_eq!(gate.edits().len(), if rest > 0 { 3 } else { 1 });
        assert_eq!(gate.listed(ListKind::Allow).len(), 1);
        let until = gate.listed(ListKind::Block).first().and_then(|entry| entry.until);
        assert_eq!(until, (rest > 0).then(|| clock.now() + rest * minute));
        let special = gate.peek_limit("api", &["203.0.113.8"], 0).await.unwrap();
        let (limit, left) = if rest > 0 { (30, 22 + u64::from(minutes)) } else { (10, 10) };
        assert_eq!((special.limit(), special.remaining()), (limit, left), "{minutes}");
        clock.advance(rest * minute);
        assert_eq!(gate.edits().len(), 1);
        let special = gate.peek_limit("api", &["203.0.113.8"], 0).await.unwrap();
        assert_eq!(special.limit(), 10);
    }
}

#[tokio::test]
async fn a_change_that_cannot_be_restored_is_told_and_all_else_is_restored() {
    use spillgate_policy::store::Memory;
    use spillgate_policy::{Gate, Limit, LimitCheck, ListKind, Policy};

    let policy = || Policy::builder().limit(Limit::new("api", "1/min burst 10")).build().unwrap();
    let clock = ManualClock::default();
    let gate = Gate::with_store(policy(), Memory::new(clock.clone())).unwrap();
    let spent = gate.decide(&LimitCheck::new("api", &["203.0.113.7"], 8)).await.unwrap();
    assert!(spent.is_allowed());
    let mut bytes = Vec::new();
    let mut writer =
        SnapshotWriter::new(&mut bytes, &Moment::now(&clock), gate.store().seed()).unwrap();
    let list = |entry: &str| format!("[\"list\",\"block\",\"{entry}\"]");
    for entry in ["192.0.2.0/24", "as:64496", "198.51.100.0/24"] {
        writer.edit(&Edit::new(list(entry), Some("{}".to_owned()), None)).unwrap();
    }
    writer.limit(&gate.save_limit("api").unwrap()).unwrap();
    writer.finish().unwrap();

    let mut reader = SnapshotReader::new(Cursor::new(&bytes)).unwrap();
    let now = *reader.moment();
    let gate = Gate::with_store(policy(), Memory::new(clock).with_seed(reader.seed())).unwrap();
    let refused = restore(&mut reader, &gate, || now).unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(gate.listed(ListKind::Block).len(), 2);
    let left = gate.peek_limit("api", &["203.0.113.7"], 0).await.unwrap();
    assert_eq!(left.remaining(), 2);
}
