//! Reads several logs as one, in the order of time.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use spillgate::Timestamp;

use crate::format::{Parser, fitting, shown};
use crate::lines::Line;
use crate::log::{FIRST_LINES, Log, damage, named};
use crate::source::Source;
use crate::window::Window;
use crate::{LogFormat, Record, Skip, Wanted, Zone};

const SECOND: u64 = 1_000_000_000;

/// Logs before 2000 do not exist: such times are mistakes.
const EARLIEST: u64 = 946_684_800;

/// The most bytes of requests that wait for their turn.
const MAX_WINDOW_BYTES: usize = 128 << 20;

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
    /// The format of each log; several if it changes.
    pub formats: Vec<(String, &'static str)>,
    /// Compressed logs that end before their end, or are damaged, and how.
    pub damaged: Vec<String>,
    /// True if there were too many requests within the window to put all of them in order.
    pub is_window_shortened: bool,
}

/// Logs that are read as one.
#[derive(Debug)]
pub struct Input {
    logs: Vec<Log>,
    window: Window,
    options: InputOptions,
    wanted: Wanted,
    summary: InputSummary,
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
        let (window, wanted) = (Window::new(MAX_WINDOW_BYTES), wanted.clone());
        Ok(Self { logs, window, options, wanted, summary })
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
            let has_begun = |log: &Log| log.clock.newest() > 0 || log.is_at_end;
            while !has_begun(&self.logs[place]) && !self.window.is_full() {
                self.step(place)?;
            }
        }
        loop {
            let open = || self.logs.iter().enumerate().filter(|(_, log)| !log.is_at_end);
            let Some((place, _)) = open().min_by_key(|(_, log)| log.clock.newest()) else { break };
            // As long as no other log is behind.
            let others =
                open().filter(|(other, _)| *other != place).map(|(_, log)| log.clock.newest());
            let until = others.min().unwrap_or(u64::MAX);
            let mut left = 1 << 16;
            while left > 0
                && !self.logs[place].is_at_end
                && self.logs[place].clock.newest() <= until
            {
                left -= 1;
                let newest = self.logs[place].clock.newest();
                self.step(place)?;
                if self.window.is_full() {
                    self.window.shorten(&mut each)?;
                }
                if self.logs[place].clock.newest() != newest {
                    let newest = self.logs[place].clock.newest().min(until);
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
        let Log { name, first, failure, lines, parser, progress, clock, strange, is_at_end } =
            &mut self.logs[place];
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
            None => match failure.take().map_or_else(|| lines.next(), Err) {
                // Of a compressed file that is still written, was copied in part, or is damaged.
                Err(error) if !progress.has_failed.get() => {
                    self.summary.damaged.push(damage(name, &error));
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
            Some(mut record) => {
                let mut second = record.time.as_nanos() / SECOND;
                // Clocks were set back: the times of an hour are in the log twice.
                if second + self.options.window < clock.newest()
                    && let Some(again) = self.options.zone.again(second)
                {
                    record.time = record.time + Duration::from_secs(again - second);
                    second = again;
                }
                if second < EARLIEST || record.time > self.options.latest {
                    return Err(Skip::Time);
                }
                self.window.push(&record)?;
                clock.note(second, self.options.window);
                Ok(())
            }
        });
        let Err(skip) = pushed else {
            strange.clear();
            return Ok(());
        };
        if skip != Skip::Malformed {
            strange.clear();
        } else if strange.len() < FIRST_LINES {
            strange.push(line.to_vec());
        }
        let is_last = skip == Skip::Malformed && strange.len() == FIRST_LINES;
        let (count, samples) = self.summary.skipped.entry(skip).or_default();
        *count += 1;
        if samples.len() < SAMPLES {
            samples.push(shown(line));
        }
        if is_last && self.options.format.is_none() {
            self.try_another_format(place);
        }
        Ok(())
    }

    /// Reads lines that are not in the format again, if they are in another one: the format of a
    /// log may have been changed, or logs may have been joined.
    fn try_another_format(&mut self, place: usize) {
        let log = &mut self.logs[place];
        let Some(format) = fitting(&log.strange).filter(|it| *it != log.parser.format()) else {
            // Not until there was a line in the format: that would be slow. One more than that.
            log.strange.push(Vec::new());
            return;
        };
        let strange = std::mem::take(&mut log.strange);
        if let Some((count, samples)) = self.summary.skipped.get_mut(&Skip::Malformed) {
            *count -= strange.len() as u64;
            samples.retain(|sample| !strange.iter().any(|line| shown(line) == *sample));
        }
        self.summary.skipped.retain(|_, (count, _)| *count > 0);
        self.summary.lines -= strange.len() as u64;
        self.summary.formats.push((log.name.clone(), format.name()));
        log.parser = Parser::new(format, &self.wanted, self.options.zone.clone());
        let rest = std::mem::take(&mut log.first);
        log.first = strange.into_iter().chain(rest).collect::<Vec<_>>().into_iter();
    }
}
