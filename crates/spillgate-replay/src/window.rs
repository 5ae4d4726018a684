//! Puts requests in the order of time, in bounded memory.

use std::collections::BTreeMap;
use std::net::IpAddr;

use spillgate::Timestamp;

use crate::{Record, Skip};

const SECOND: u64 = 1_000_000_000;

/// A second that no request has.
const NEVER: u64 = u64::MAX;

/// Requests of the last seconds, by second. Logs are written when requests end, some with the time
/// of their beginning, and several logs are read side by side.
#[derive(Debug)]
pub(crate) struct Window {
    /// The most bytes that are held back: then the oldest requests go before their time.
    most_bytes: usize,
    /// The second that was last written to.
    second: u64,
    current: Bucket,
    /// All other seconds.
    others: BTreeMap<u64, Bucket>,
    /// Empty buckets, to be used again.
    spare: Vec<Bucket>,
    /// Seconds before this one are gone.
    released: u64,
    bytes: usize,
    /// True if memory did not suffice for the whole window.
    pub(crate) is_shortened: bool,
}

/// The requests of one second. Their texts are one after the other in `texts`.
#[derive(Debug, Default)]
struct Bucket {
    texts: Vec<u8>,
    entries: Vec<Entry>,
    headers: Vec<(usize, u16)>,
    whole_seconds: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    nanos: u64,
    peer: IpAddr,
    start: u32,
    header: u32,
    headers: u16,
    status: u16,
    method: u16,
    path: u16,
    host: Option<u16>,
    user: Option<u16>,
    is_whole_second: bool,
}

impl Window {
    /// A window that holds so many bytes.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            second: NEVER,
            current: Bucket::default(),
            others: BTreeMap::new(),
            spare: Vec::new(),
            released: 0,
            bytes: 0,
            is_shortened: false,
        }
    }

    /// Adds a request.
    #[inline]
    pub(crate) fn push(&mut self, record: &Record<'_>) -> Result<(), Skip> {
        let second = record.time.as_nanos() / SECOND;
        if second != self.second {
            if second < self.released {
                return Err(Skip::Late);
            }
            self.turn_to(second);
        }
        self.bytes += self.current.push(record);
        Ok(())
    }

    fn turn_to(&mut self, second: u64) {
        let next = self.others.remove(&second).or_else(|| self.spare.pop()).unwrap_or_default();
        let bucket = std::mem::replace(&mut self.current, next);
        match bucket.entries.is_empty() {
            true => self.spare.push(bucket),
            false => drop(self.others.insert(self.second, bucket)),
        }
        self.second = second;
    }

    /// True if something has to go before its time.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.most_bytes
    }

    /// Calls with the requests before a second, in the order of time.
    pub(crate) fn release<E>(
        &mut self,
        before: u64,
        each: &mut impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.second < before {
            self.turn_to(NEVER);
        }
        self.released = self.released.max(before);
        while let Some(entry) = self.others.first_entry()
            && *entry.key() < before
        {
            let (second, mut bucket) = entry.remove_entry();
            self.give(second, &mut bucket, each)?;
            self.spare.push(bucket);
        }
        // One for each second of the window would be kept for nothing.
        self.spare.truncate(4);
        Ok(())
    }

    /// Makes room: the older half of what is held goes, all of it if that is one second.
    pub(crate) fn shorten<E>(
        &mut self,
        each: &mut impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.is_shortened = true;
        while self.bytes > self.most_bytes / 2 {
            match self.oldest() {
                oldest if oldest < self.second => self.release(oldest + 1, each)?,
                _ => {
                    // More of it may come, so this second is not over.
                    let second = self.second;
                    let mut bucket = std::mem::take(&mut self.current);
                    self.turn_to(NEVER);
                    self.released = self.released.max(second.min(self.oldest()));
                    self.give(second, &mut bucket, each)?;
                    self.spare.push(bucket);
                }
            }
        }
        Ok(())
    }

    /// The oldest second that is held, but the current one.
    fn oldest(&self) -> u64 {
        self.others.first_key_value().map_or(NEVER, |(second, _)| *second)
    }

    fn give<E>(
        &mut self,
        second: u64,
        bucket: &mut Bucket,
        each: &mut impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        bucket.spread(second * SECOND);
        for entry in &bucket.entries {
            if let Some(record) = bucket.record(entry) {
                each(&record)?;
            }
        }
        self.bytes -= bucket.bytes();
        bucket.clear();
        Ok(())
    }
}

impl Bucket {
    /// Adds a request. Returns the bytes it takes.
    #[inline]
    fn push(&mut self, record: &Record<'_>) -> usize {
        let before = self.bytes();
        // Lines are short enough.
        let length = |text: &[u8]| text.len() as u16;
        let entry = Entry {
            nanos: record.time.as_nanos(),
            peer: record.peer,
            start: self.texts.len() as u32,
            header: self.headers.len() as u32,
            headers: record.headers.len() as u16,
            status: record.status,
            method: length(record.method),
            path: length(record.path.as_bytes()),
            host: record.host.map(|host| length(host.as_bytes())),
            user: record.user.map(length),
            is_whole_second: record.is_whole_second,
        };
        self.texts.extend_from_slice(record.method);
        self.texts.extend_from_slice(record.path.as_bytes());
        self.texts.extend_from_slice(record.host.unwrap_or_default().as_bytes());
        self.texts.extend_from_slice(record.user.unwrap_or_default());
        for (place, value) in &record.headers {
            self.headers.push((*place, length(value)));
            self.texts.extend_from_slice(value);
        }
        self.whole_seconds += u64::from(record.is_whole_second);
        self.entries.push(entry);
        self.bytes() - before
    }

    fn bytes(&self) -> usize {
        self.texts.len()
            + self.entries.len() * size_of::<Entry>()
            + self.headers.len() * size_of::<(usize, u16)>()
    }

    fn clear(&mut self) {
        self.texts.clear();
        self.entries.clear();
        self.headers.clear();
        self.whole_seconds = 0;
    }

    /// Spreads requests whose time is known to the second evenly over it, in the order of the log:
    /// all at one instant would be a burst that nobody sent.
    fn spread(&mut self, start: u64) {
        let whole_seconds = self.entries.iter_mut().filter(|entry| entry.is_whole_second);
        for (place, entry) in (0_u64..).zip(whole_seconds) {
            entry.nanos = start + place * SECOND / self.whole_seconds;
        }
        if !self.entries.is_sorted_by_key(|entry| entry.nanos) {
            self.entries.sort_by_key(|entry| entry.nanos);
        }
    }

    fn record(&self, entry: &Entry) -> Option<Record<'_>> {
        let mut rest = self.texts.get(entry.start as usize..)?;
        let mut next = |length: u16| rest.split_off(..usize::from(length));
        let method = next(entry.method)?;
        let path = std::str::from_utf8(next(entry.path)?).ok()?;
        let host = entry.host.and_then(&mut next).map(std::str::from_utf8);
        let user = entry.user.and_then(&mut next);
        let headers = self.headers.get(entry.header as usize..)?;
        let headers = headers.iter().take(usize::from(entry.headers));
        Some(Record {
            time: Timestamp::from_nanos(entry.nanos),
            is_whole_second: entry.is_whole_second,
            peer: entry.peer,
            method,
            path,
            host: host.transpose().ok()?,
            user,
            status: entry.status,
            headers: headers.filter_map(|(place, length)| Some((*place, next(*length)?))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    /// Pushes requests of these seconds, and returns the seconds in the order of their release.
    fn pass(window: &mut Window, seconds: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut released = Vec::new();
        let mut each = |record: &Record<'_>| -> Result<(), Skip> {
            released.push(record.time.as_nanos() / SECOND);
            Ok(())
        };
        for second in seconds {
            let time = Timestamp::from_secs(second);
            window.push(&Record { time, ..record("/a/path") }).unwrap();
            if window.is_full() {
                window.shorten(&mut each).unwrap();
            }
            assert!(window.bytes <= window.most_bytes);
        }
        window.release(u64::MAX, &mut each).unwrap();
        assert_eq!(window.bytes, 0);
        released
    }

    #[test]
    fn a_full_window_loses_nothing_and_keeps_the_order() {
        // Many in one second, also while later ones wait.
        for seconds in [vec![7; 500], [vec![9; 10], vec![7; 500]].concat(), (0..500).collect()] {
            let mut window = Window::new(2000);
            let mut expected = seconds.clone();
            expected.sort_unstable();
            let released = pass(&mut window, seconds);
            assert!(window.is_shortened);
            assert_eq!(released.len(), expected.len());
            assert_eq!(released, expected);
        }
    }

    #[test]
    fn what_was_released_is_over() {
        let mut window = Window::new(1 << 20);
        pass(&mut window, [100, 90, 95]);
        let late = Record { time: Timestamp::from_secs(200), ..record("/") };
        assert_eq!(window.push(&late), Err(Skip::Late));
    }
}
