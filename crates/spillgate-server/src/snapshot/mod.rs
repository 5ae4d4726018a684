//! State that survives a restart, in a file.
//!
//! ```text
//! file    "SPILLGATE"  version  moment  seed  record…  0  checksum
//! record  1  key, has a value, value, has an end, end     one change made at run time
//!         2  name, per, algorithm, is removed, for how long, tables, accounts  one limit
//! table   tier  quota  pairs…  no pairs
//! account tier  quota  pair  debt  is the caller's own  has an end  end  time  piles
//! pile    quota  word  lag
//! tier    is one  name
//! pair    fingerprint  word
//! ```
//!
//! Numbers are little-endian; texts and pairs have a length prefix; quotas and algorithms are
//! texts as in the policy file. The checksum is a CRC-32 of everything before it. It detects a
//! damaged file; the file's mode protects against forged ones.
//!
//! A snapshot is streamed: memory holds one limit at a time, and no length in the file is trusted.

mod error;
mod file;
mod moment;
mod reader;
mod state;
#[cfg(test)]
mod tests;
mod writer;

pub use self::error::Error;
pub use self::file::SnapshotFile;
pub use self::moment::{Boot, Moment};
pub use self::reader::{Piece, SnapshotReader};
pub use self::state::{restore, save};
pub use self::writer::SnapshotWriter;

const MAGIC: [u8; 9] = *b"SPILLGATE";

/// Raised with every change of the format. Other versions are refused.
const VERSION: u32 = 3;

/// Maximum number of pairs per row: as many as fit a buffer.
const ROW: usize = 4096;

mod tag {
    pub(super) const END: u8 = 0;
    pub(super) const EDIT: u8 = 1;
    pub(super) const LIMIT: u8 = 2;
}
