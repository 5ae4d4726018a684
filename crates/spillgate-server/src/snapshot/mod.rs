//! What survives a restart, in a file.
//!
//! ```text
//! file    "SPILLGAT"  version  moment  seed  record…  0  checksum
//! record  1  list, added, entry                     one change of a list
//!         2  name, per, algorithm, is removed, for how long, tables, overrides  one limit
//!         3  pairs                                  some keys of CL.THROTTLE
//! table   tiered  quota  pairs…  no pairs
//! override  at run time  quota  pair  has a base  base
//! pair    fingerprint  word
//! ```
//!
//! Version 1 had a table for each tier, with its name, and overrides without what was spent
//! before them. Version 2 had no limits that are removed.
//!
//! Numbers are little-endian, texts and pairs are preceded by how many there are, quotas
//! and algorithms are texts as in the policy file. The checksum is a CRC-32 of all that
//! stands before it: it tells a file that was damaged, not one that was forged, which the
//! file's mode prevents.
//!
//! Both ways it is a stream: in memory there is one limit at a time, and what is read
//! never takes more than the file has shown to hold.

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
pub use self::reader::{Piece, Reader};
pub use self::state::{restore, save};
pub use self::writer::Writer;

const MAGIC: [u8; 8] = *b"SPILLGAT";

/// Raised by whoever changes the format, so that an older server does not misread it. Those
/// before it are read for ever.
const VERSION: u32 = 3;

/// How many pairs stand in one row. As many as fit a buffer.
const ROW: usize = 4096;

/// What a record is.
mod tag {
    pub(super) const END: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const LIMIT: u8 = 2;
    pub(super) const KEYS: u8 = 3;
}
