//! Reads several logs as one, in the order of time.

use std::collections::BTreeMap;
use std::io;

use spillgate::Timestamp;

use crate::format::{Parser, detect, shown};
use crate::lines::{Line, Lines};
use crate::source::{Progress, Source};
use crate::window::Window;
use crate::{LogFormat, Record, Skip, Wanted, Zone};

/// Logs before 2000 do not exist: such times are mistakes.
const EARLIEST: u64 = 946_684_800;

/// The most bytes of requests that wait for their turn.
const MAX_WINDOW_BYTES: usize = 128 << 20;

/// How many lines show a format.
const FIRST_LINES: usize = 16;

/// How many lines that were skipped are kept, for each reason.
const SAMPLES: usize = 3;

/// How logs are read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputOptions {
    /// The format; `None` to detect it.
    pub format: Option<LogFormat>,
    /// The zone of times that have none.
    pub zone: Zone,
    /// By how many seconds lines may be out of order.
    pub window: u64,
    /// Later times are mistakes.
    pub latest: Timestamp,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self { format: None, zone: Zone::default(), window: 60, latest: Timestamp::MAX }
    }
}

/// What was read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InputSummary {
    /// All lines.
    pub lines: u64,
    /// Bytes of files, before they are decompressed.
    pub bytes: u64,
    /// Size of all files; `None` if one of them has none.
    pub total_bytes: Option<u64>,
    /// Lines that were skipped, and the first of them, by reason.
    pub skipped: BTreeMap<Skip, (u64, Vec<String>)>,
    /// The format of each log.
    pub formats: Vec<(String, &'static str)>,
    /// Compressed logs that end before their end.
    pub truncated: Vec<String>,
    /// True if there were too many requests within the window to put all of them in order.
    pub is_window_shortened: bool,
}

/// Logs that are read as one.
#[derive(Debug)]
pub struct Input {
    logs: Vec<Log>,
    window: Window,
    options: InputOptions,
    summary: InputSummary,
}

struct Log {
    name: String,
    first: std::vec::IntoIter<Vec<u8>>,
    lines: Lines<Box<dyn io::Read>>,
    parser: Parser,
    progress: Progress,
    /// The second of its latest line.
    newest: u64,
    is_at_end: bool,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Input {
    /// Logs that keep the wanted headers.
    ///
    /// # Errors
    ///
    /// If one cannot be read, or its format is unknown.
    pub fn new(sources: Vec<Source>, wanted: &Wanted, options: InputOptions) -> io::Result<Self> {
        let open = |source| Log::open(source, wanted, &options);
        let logs = sources.into_iter().map(open).collect::<io::Result<Vec<_>>>()?;
        let summary = InputSummary {
            formats: logs
                .iter()
                .map(|log| (log.name.clone(), log.parser.format().name()))
                .collect(),
            total_bytes: logs.iter().map(|log| log.progress.total).sum(),
            ..InputSummary::default()
        };
        Ok(Self { logs, window: Window::new(MAX_WINDOW_BYTES), options, summary })
    }

    /// Calls `each` with every request, in the order of time, and `progress` now and then.
    ///
    /// # Errors
    ///
    /// If a log cannot be read, or `each` fails.
    pub fn read<E: From<io::Error>>(
        mut self,
        mut each: impl FnMut(&Record<'_>) -> Result<(), E>,
        mut progress: impl FnMut(&InputSummary),
    ) -> Result<InputSummary, E> {
        // To know where each log begins.
        for place in 0..self.logs.len() {
            while self.logs[place].newest == 0 && !self.logs[place].is_at_end {
                self.step(place)?;
            }
        }
        loop {
            let open = || self.logs.iter().enumerate().filter(|(_, log)| !log.is_at_end);
            let Some((place, _)) = open().min_by_key(|(_, log)| log.newest) else { break };
            // As long as no other log is behind.
            let others = open().filter(|(other, _)| *other != place).map(|(_, log)| log.newest);
            let until = others.min().unwrap_or(u64::MAX);
            let mut left = 1 << 16;
            while left > 0 && !self.logs[place].is_at_end && self.logs[place].newest <= until {
                left -= 1;
                let newest = self.logs[place].newest;
                self.step(place)?;
                if self.window.is_full() {
                    self.window.shorten(&mut each)?;
                }
                if self.logs[place].newest != newest {
                    let newest = self.logs[place].newest.min(until);
                    self.window.release(newest.saturating_sub(self.options.window), &mut each)?;
                }
            }
            self.summary.bytes = self.logs.iter().map(|log| log.progress.read.get()).sum();
            progress(&self.summary);
        }
        self.window.release(u64::MAX, &mut each)?;
        self.summary.is_window_shortened = self.window.is_shortened;
        Ok(self.summary)
    }

    /// Reads one line of a log.
    #[inline]
    fn step(&mut self, place: usize) -> io::Result<()> {
        let Log { name, first, lines, parser, newest, is_at_end, .. } = &mut self.logs[place];
        let stored;
        let line = match first.next() {
            Some(line) => {
                stored = line;
                Some(if stored.len() > crate::MAX_LINE {
                    Line::TooLong(&stored)
                } else {
                    Line::Whole(&stored)
                })
            }
            None => match lines.next() {
                // Of a compressed file that is still written, or was copied in part.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.summary.truncated.push(name.clone());
                    None
                }
                line => line.map_err(|error| named(name, &error))?,
            },
        };
        let (line, result) = match line {
            None => {
                *is_at_end = true;
                return Ok(());
            }
            Some(Line::Whole(b"")) => return Ok(()),
            Some(Line::TooLong(line)) => (line, Err(Skip::TooLong)),
            Some(Line::Whole(line)) => (line, parser.parse(line)),
        };
        self.summary.lines += 1;
        let pushed = result.and_then(|record| match record {
            None => Ok(()),
            Some(record) => {
                let second = record.time.as_nanos() / 1_000_000_000;
                if second < EARLIEST || record.time > self.options.latest {
                    return Err(Skip::Time);
                }
                self.window.push(&record)?;
                *newest = second.max(*newest);
                Ok(())
            }
        });
        if let Err(skip) = pushed {
            let (count, samples) = self.summary.skipped.entry(skip).or_default();
            *count += 1;
            if samples.len() < SAMPLES {
                samples.push(shown(line));
            }
        }
        Ok(())
    }
}

impl Log {
    fn open(source: Source, wanted: &Wanted, options: &InputOptions) -> io::Result<Self> {
        let Source { name, reader, progress } = source;
        let mut lines = Lines::new(reader);
        let mut first = Vec::new();
        while first.len() < FIRST_LINES {
            match lines.next() {
                Ok(None) => break,
                Ok(Some(Line::Whole(line) | Line::TooLong(line))) => first.push(line.to_vec()),
                // The next line says so again.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(named(&name, &error)),
            }
        }
        let format = match options.format {
            Some(format) => format,
            None => detect(&first).map_err(|why| io::Error::other(format!("{name}: {why}")))?,
        };
        let parser = Parser::new(format, wanted, options.zone);
        let first = first.into_iter();
        Ok(Self { name, first, lines, parser, progress, newest: 0, is_at_end: false })
    }
}

fn named(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name} cannot be read: {error}"))
}
