//! Any bytes are a snapshot or an error, take no more memory than their own number
//! warrants, and what is read is written and read again the same; whatever it says can be
//! put back.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spillgate::Seed;
use spillgate_policy::{Gate, Policy};
use spillgate_server::snapshot::{Error, Moment, Piece, SnapshotReader, SnapshotWriter, restore};

const POLICY: &str = "[[limit]]\nname = 'a'\nquota = '1/s burst 5'\n[[limit]]\nname = 'w'\n\
    quota = '9/min'\nalgorithm = 'sliding-window'\nper = 'global'\n";

static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let policy = Policy::from_toml(POLICY).expect("a policy");
    Gate::new(policy).expect("a small table")
});

/// The pieces up to whatever is wrong.
fn pieces(bytes: &[u8]) -> Result<(Moment, Seed, Vec<Piece>, Option<Error>), Error> {
    let mut reader = SnapshotReader::new(Cursor::new(bytes))?;
    let (moment, seed, mut pieces) = (*reader.moment(), reader.seed(), Vec::new());
    loop {
        match reader.next_piece() {
            Ok(Some(piece)) => pieces.push(piece),
            Ok(None) => return Ok((moment, seed, pieces, None)),
            Err(error) => return Ok((moment, seed, pieces, Some(error))),
        }
    }
}

/// The same snapshot, ended as it should be: no fuzzer guesses a checksum.
fn ended(moment: &Moment, seed: Seed, pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = SnapshotWriter::new(&mut bytes, moment, seed).expect("memory takes it");
    for piece in pieces {
        let written = match piece {
            Piece::Edit(edit) => writer.edit(edit),
            Piece::Limit(limit) => writer.limit(limit),
        };
        written.expect("memory takes it");
    }
    writer.finish().expect("memory takes it");
    bytes
}

/// A file whose beginning is right: that of the other test is seldom so.
fn begun(bytes: &[u8]) -> Vec<u8> {
    const CHECKED: usize = 5;
    let moment = Moment::now(GATE.store().clock());
    let mut file = ended(&moment, GATE.store().seed(), &[]);
    file.truncate(file.len() - CHECKED);
    file.extend(bytes);
    file
}

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes, &begun(bytes)] {
        let Ok((moment, seed, first, _)) = pieces(bytes) else { continue };
        let whole = ended(&moment, seed, &first);
        let (again, _, second, error) = pieces(&whole).expect("what was written");
        assert!(error.is_none());
        assert_eq!(moment, again);
        assert_eq!(first, second);
        let mut reader = SnapshotReader::new(Cursor::new(&whole)).expect("what was written");
        // It may be refused, for an edit that cannot be understood, but not more.
        let _ = restore(&mut reader, &GATE, || moment);
    }
});
