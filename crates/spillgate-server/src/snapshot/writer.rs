use std::io::{self, Write};

use crc32fast::Hasher;
use spillgate::algorithm::Word;
use spillgate::{Fingerprint, SavedCaller, SavedTable, Seed, Timestamp};
use spillgate_policy::store::{Edit, SavedLimit};

use super::{MAGIC, Moment, ROW, VERSION, tag};

/// Writes a snapshot, record by record.
#[derive(Debug)]
pub struct SnapshotWriter<W> {
    out: W,
    checksum: Hasher,
    written: u64,
}

impl<W: Write> SnapshotWriter<W> {
    /// Begins a snapshot. Like all methods, fails if `out` cannot be written to.
    pub fn new(out: W, moment: &Moment, seed: Seed) -> io::Result<Self> {
        let mut writer = Self { out, checksum: Hasher::new(), written: 0 };
        let boot = moment.boot.map_or((0, 0), |boot| (boot.id, nanos(boot.time)));
        writer.bytes(&MAGIC)?;
        writer.bytes(&VERSION.to_le_bytes())?;
        writer.number(moment.clock.as_nanos())?;
        writer.number(nanos(moment.wall))?;
        writer.bytes(&boot.0.to_le_bytes())?;
        writer.number(boot.1)?;
        writer.bytes(&seed.to_bytes())?;
        Ok(writer)
    }

    /// Writes one change made at run time.
    pub fn edit(&mut self, edit: &Edit) -> io::Result<()> {
        self.bytes(&[tag::EDIT])?;
        self.text(&edit.key)?;
        self.bytes(&[u8::from(edit.value.is_some())])?;
        self.text(edit.value.as_deref().unwrap_or_default())?;
        self.until(edit.until)
    }

    /// Writes what was spent under one limit.
    pub fn limit(&mut self, limit: &SavedLimit) -> io::Result<()> {
        self.bytes(&[tag::LIMIT])?;
        self.text(&limit.name)?;
        self.text(&limit.per)?;
        self.text(limit.algorithm.name())?;
        self.bytes(&[u8::from(limit.removed_for.is_some())])?;
        self.number(limit.removed_for.map_or(0, nanos))?;
        self.count(limit.spent.tables.len())?;
        for table in &limit.spent.tables {
            self.table(table)?;
        }
        self.count(limit.spent.accounts.len())?;
        limit.spent.accounts.iter().try_for_each(|account| self.account(account))
    }

    /// Ends the snapshot, and returns its size in bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        self.bytes(&[tag::END])?;
        let checksum = self.checksum.clone().finalize();
        self.bytes(&checksum.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn table(&mut self, table: &SavedTable) -> io::Result<()> {
        self.tier(table.tier.as_deref())?;
        self.bytes(&[u8::from(table.is_by_call)])?;
        self.text(&table.quota.to_string())?;
        table.callers.chunks(ROW).try_for_each(|row| self.row(row))?;
        self.row(&[])
    }

    fn tier(&mut self, name: Option<&str>) -> io::Result<()> {
        self.bytes(&[u8::from(name.is_some())])?;
        self.text(name.unwrap_or_default())
    }

    fn account(
        &mut self,
        SavedCaller { caller, tier, own, account }: &SavedCaller,
    ) -> io::Result<()> {
        self.tier(tier.as_deref())?;
        self.bytes(&[u8::from(own.is_some())])?;
        self.until(own.and_then(|own| own.until))?;
        self.text(&account.quota.to_string())?;
        self.pair((*caller, account.word))?;
        self.number(account.debt.to_bits())?;
        self.number(account.at.as_nanos())?;
        self.number(account.since.as_nanos())?;
        self.count(account.piles.len())?;
        account.piles.iter().try_for_each(|pile| {
            self.text(&pile.quota.to_string())?;
            self.number(pile.word.to_bits())?;
            self.number(nanos(pile.lag))
        })
    }

    fn row(&mut self, row: &[(Fingerprint, Word)]) -> io::Result<()> {
        self.count(row.len())?;
        row.iter().try_for_each(|pair| self.pair(*pair))
    }

    fn pair(&mut self, (caller, word): (Fingerprint, Word)) -> io::Result<()> {
        self.number(caller.to_bits())?;
        self.number(word.to_bits())
    }

    fn until(&mut self, until: Option<Timestamp>) -> io::Result<()> {
        self.bytes(&[u8::from(until.is_some())])?;
        self.number(until.map_or(0, Timestamp::as_nanos))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.count(text.len())?;
        self.bytes(text.as_bytes())
    }

    fn count(&mut self, count: usize) -> io::Result<()> {
        let count = u32::try_from(count).map_err(io::Error::other)?;
        self.bytes(&count.to_le_bytes())
    }

    fn number(&mut self, number: u64) -> io::Result<()> {
        self.bytes(&number.to_le_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// 584 years are as good as for ever.
fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
