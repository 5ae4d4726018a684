use std::io::Read;
use std::time::Duration;

use crc32fast::Hasher;
use spillgate::account::{SavedAccount, SavedPile};
use spillgate::algorithm::Word;
use spillgate::{Fingerprint, Saved, SavedCaller, SavedOwn, SavedTable, Seed, Timestamp};
use spillgate_policy::store::{Edit, SavedLimit};

use super::{Boot, Error, MAGIC, Moment, ROW, VERSION, tag};

/// Reads a snapshot, record by record.
#[derive(Debug)]
pub struct SnapshotReader<R> {
    input: R,
    checksum: Hasher,
    moment: Moment,
    seed: Seed,
    is_over: bool,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// One change made at run time.
    Edit(Edit),
    /// What was spent under one limit.
    Limit(SavedLimit),
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the header. Fails if it is no snapshot, of another version, or cannot be read.
    pub fn new(input: R) -> Result<Self, Error> {
        let moment = Moment { clock: Timestamp::ZERO, wall: Duration::ZERO, boot: None };
        let (checksum, seed) = (Hasher::new(), Seed::from_bytes([0; 16]));
        let mut reader = Self { input, checksum, moment, seed, is_over: false };
        match reader.array() {
            Ok(MAGIC) => {}
            // It may be one: a failing disk must not reset all counters.
            Err(error) if error.is_io() => return Err(error),
            _ => return Err(Error::FOREIGN),
        }
        match u32::from_le_bytes(reader.array()?) {
            VERSION => {}
            other => return Err(Error::other_version(other)),
        }
        let clock = Timestamp::from_nanos(reader.number()?);
        let wall = Duration::from_nanos(reader.number()?);
        let id = u128::from_le_bytes(reader.array()?);
        let time = Duration::from_nanos(reader.number()?);
        let boot = (id != 0).then_some(Boot { id, time });
        reader.moment = Moment { clock, wall, boot };
        reader.seed = Seed::from_bytes(reader.array()?);
        Ok(reader)
    }

    /// When the snapshot was taken.
    pub fn moment(&self) -> &Moment {
        &self.moment
    }

    /// The seed of the fingerprints.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The next record; `None` after the last, once the checksum is verified. Fails if the snapshot
    /// is damaged, or cannot be read.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        if self.is_over {
            return Ok(None);
        }
        Ok(Some(match self.byte()? {
            tag::END => return self.end().map(|()| None),
            tag::EDIT => Piece::Edit(self.edit()?),
            tag::LIMIT => Piece::Limit(self.limit()?),
            other => return Err(Error::damaged(format!("there is no record of kind {other}"))),
        }))
    }

    fn end(&mut self) -> Result<(), Error> {
        let computed = self.checksum.clone().finalize();
        if u32::from_le_bytes(self.array()?) != computed {
            return Err(Error::damaged("the checksum is wrong"));
        }
        if self.input.read(&mut [0])? != 0 {
            return Err(Error::damaged("it goes on after its end"));
        }
        self.is_over = true;
        Ok(())
    }

    fn edit(&mut self) -> Result<Edit, Error> {
        let key = self.text()?;
        let (has_value, value) = (self.flag("value")?, self.text()?);
        let until = self.until()?;
        Ok(Edit::new(key, has_value.then_some(value), until))
    }

    fn until(&mut self) -> Result<Option<Timestamp>, Error> {
        let has_end = self.flag("end")?;
        let end = Timestamp::from_nanos(self.number()?);
        Ok(has_end.then_some(end))
    }

    fn limit(&mut self) -> Result<SavedLimit, Error> {
        let (name, per, algorithm) = (self.text()?, self.text()?, self.parsed()?);
        let removed_for = self.removed_for()?;
        let mut spent = Saved::default();
        for _ in 0..self.count()? {
            spent.tables.push(self.table()?);
        }
        for _ in 0..self.count()? {
            spent.accounts.push(self.account()?);
        }
        let mut limit = SavedLimit::new(name, per, algorithm, spent);
        limit.removed_for = removed_for;
        Ok(limit)
    }

    fn removed_for(&mut self) -> Result<Option<Duration>, Error> {
        let is_removed = self.flag("limit")?;
        let nanos = self.number()?;
        Ok(is_removed.then_some(Duration::from_nanos(nanos)))
    }

    fn account(&mut self) -> Result<SavedCaller, Error> {
        let (tier, is_own, until) = (self.tier()?, self.flag("quota")?, self.until()?);
        let own = is_own.then_some(SavedOwn { until });
        let quota = self.parsed()?;
        let (caller, word) = self.pair()?;
        let debt = Word::from_bits(self.number()?);
        let at = Timestamp::from_nanos(self.number()?);
        let since = Timestamp::from_nanos(self.number()?);
        let mut piles = Vec::new();
        for _ in 0..self.count()? {
            let (quota, word) = (self.parsed()?, Word::from_bits(self.number()?));
            piles.push(SavedPile { quota, word, lag: Duration::from_nanos(self.number()?) });
        }
        let account = SavedAccount { quota, word, debt, at, since, piles };
        Ok(SavedCaller { caller, tier, own, account })
    }

    fn tier(&mut self) -> Result<Option<String>, Error> {
        let (is_in_one, name) = (self.flag("tier")?, self.text()?);
        Ok(is_in_one.then_some(name))
    }

    fn table(&mut self) -> Result<SavedTable, Error> {
        let (tier, is_by_call, quota) = (self.tier()?, self.flag("quota")?, self.parsed()?);
        let mut callers = Vec::new();
        loop {
            let row = self.row()?;
            if row.is_empty() {
                return Ok(SavedTable { tier, is_by_call, quota, callers });
            }
            callers.extend(row);
        }
    }

    fn row(&mut self) -> Result<Vec<(Fingerprint, Word)>, Error> {
        match self.count()? as usize {
            count if count > ROW => {
                Err(Error::damaged(format!("a row of {count} is longer than {ROW}")))
            }
            count => (0..count).map(|_| self.pair()).collect(),
        }
    }

    fn pair(&mut self) -> Result<(Fingerprint, Word), Error> {
        Ok((Fingerprint::from_bits(self.number()?), Word::from_bits(self.number()?)))
    }

    fn parsed<T: std::str::FromStr<Err = spillgate::Error>>(&mut self) -> Result<T, Error> {
        self.text()?.parse().map_err(|error: spillgate::Error| Error::damaged(error.to_string()))
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = self.count()?;
        let mut bytes = Vec::new();
        // Grows as it reads, whatever the length claims to be.
        (&mut self.input).take(length.into()).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != u64::from(length) {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        self.checksum.update(&bytes);
        String::from_utf8(bytes).map_err(|_| Error::damaged("a text is not UTF-8"))
    }

    fn flag(&mut self, what: &str) -> Result<bool, Error> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::damaged(format!("a {what} of kind {other}"))),
        }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn count(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.checksum.update(&bytes);
        Ok(bytes)
    }
}
