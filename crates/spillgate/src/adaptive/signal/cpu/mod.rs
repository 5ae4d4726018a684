use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use super::Signal;
use super::cgroup::{ControlGroup, Usage};
use super::proc::{machine_ticks, process_ticks, ticks_per_second};
use crate::Timestamp;

/// The load of processors, from 0 to 1.
///
/// Smoothed: what was seen 500 ms ago counts by 0.95 of what is seen now. The first reading has
/// nothing to compare with, and says nothing. Linux only: elsewhere the signal is missing, and
/// limits stay where they are.
///
/// ```
/// use spillgate::adaptive::{AdaptiveLimit, Cpu, Load};
///
/// let limit = AdaptiveLimit::concurrency(Load::new(0.8), 5..=500).signal(Cpu::detect()).build();
/// # drop(limit);
/// ```
pub struct Cpu {
    source: CpuSource,
    read: Box<Files>,
    groups: Option<Vec<ControlGroup>>,
    processors: Option<f64>,
    ticks_per_second: Option<u64>,
    last: Option<(Timestamp, Used)>,
    smoothed: Option<f64>,
}

/// Reads a file.
type Files = dyn Fn(&Path) -> Option<Vec<u8>> + Send;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuSource {
    Process,
    Machine,
    Group,
    /// The group if it has a quota, else the machine.
    Detected,
}

/// What was used so far.
#[derive(Debug)]
enum Used {
    /// Seconds, and the smallest quota of its groups.
    Process(f64, Option<f64>),
    /// Busy and all ticks.
    Machine(u64, u64),
    /// The own group first.
    Groups(Vec<Usage>),
}

/// How much of the load is left in what is smoothed, after [`SMOOTHED`].
const DECAY: f64 = 0.95;
const SMOOTHED: Duration = Duration::from_millis(500);

/// In less time than this, a load is mostly the length of a tick.
const SHORTEST: Duration = Duration::from_millis(100);
/// After more than this, the last reading is not of now.
const LONGEST: Duration = Duration::from_secs(60);

/// No file that is read here is larger; of others, the rest does not matter.
const LARGEST_FILE: u64 = 1 << 20;

/// Where the kernel does not say.
const USUAL_TICKS: u64 = 100;

impl Cpu {
    /// Of this process, as a share of the processors that it may use: those that there are, or the
    /// quota of its control group, or of one around it, if that is less.
    #[must_use]
    pub fn process() -> Self {
        Self::new(CpuSource::Process)
    }

    /// Of the whole machine. Time that a hypervisor gave to other machines counts as used.
    #[must_use]
    pub fn machine() -> Self {
        Self::new(CpuSource::Machine)
    }

    /// Of the control group that this process is in (version 1 or 2), as a share of its quota. Of
    /// nested groups it is the one nearest to its quota. Without any quota, it is a share of the
    /// processors that the process may use.
    #[must_use]
    pub fn cgroup() -> Self {
        Self::new(CpuSource::Group)
    }

    /// Of the [control group](Self::cgroup) if that has a quota, else of the
    /// [machine](Self::machine).
    #[must_use]
    pub fn detect() -> Self {
        Self::new(CpuSource::Detected)
    }

    fn new(source: CpuSource) -> Self {
        Self {
            source,
            read: Box::new(read_file),
            groups: None,
            processors: None,
            ticks_per_second: None,
            last: None,
            smoothed: None,
        }
    }

    /// The load since the last reading.
    fn load(&self, used: &Used, before: &Used, elapsed: Duration) -> Option<f64> {
        let capacity = elapsed.as_secs_f64() * self.processors.unwrap_or(1.0);
        let load = match (used, before) {
            (Used::Process(used, quota), Used::Process(before, _)) => {
                // Of half a processor, the system says that it is one.
                let quota = quota.map_or(capacity, |quota| quota * elapsed.as_secs_f64());
                (used - before) / capacity.min(quota)
            }
            (Used::Machine(busy, all), Used::Machine(busy_before, all_before)) => {
                let (busy, all) = (busy.checked_sub(*busy_before)?, all.checked_sub(*all_before)?);
                busy as f64 / all as f64
            }
            (Used::Groups(used), Used::Groups(before)) if used.len() == before.len() => {
                group_load(used, before, elapsed.as_secs_f64(), capacity)?
            }
            _ => return None,
        };
        // Counters went back, or stood still: no news.
        (load >= 0.0 && load.is_finite()).then_some(load.min(1.0))
    }

    fn used(&mut self) -> Option<Used> {
        match self.source {
            CpuSource::Process => self.process_used(),
            CpuSource::Machine => self.machine_used(),
            CpuSource::Group => self.groups_used(),
            CpuSource::Detected => {
                let groups = self.groups_used();
                let has_quota = |used: &Used| match used {
                    Used::Groups(groups) => groups.iter().any(|group| group.quota.is_some()),
                    _ => false,
                };
                groups.filter(has_quota).or_else(|| self.machine_used())
            }
        }
    }

    fn process_used(&mut self) -> Option<Used> {
        let stat = self.text("/proc/self/stat")?;
        let ticks_per_second = *self.ticks_per_second.get_or_insert_with(|| {
            let auxv = (self.read)(Path::new("/proc/self/auxv"));
            auxv.and_then(|auxv| ticks_per_second(&auxv)).unwrap_or(USUAL_TICKS)
        });
        let seconds = process_ticks(&stat)? as f64 / ticks_per_second as f64;
        let quota = match self.groups_used() {
            Some(Used::Groups(groups)) => {
                groups.iter().filter_map(|group| group.quota).min_by(f64::total_cmp)
            }
            _ => None,
        };
        Some(Used::Process(seconds, quota))
    }

    fn machine_used(&self) -> Option<Used> {
        let (busy, all) = machine_ticks(&self.text("/proc/stat")?)?;
        Some(Used::Machine(busy, all))
    }

    fn groups_used(&mut self) -> Option<Used> {
        if self.groups.is_none() {
            let (own, mounts) = ("/proc/self/cgroup", "/proc/self/mountinfo");
            self.groups = ControlGroup::find(&self.text(own)?, &self.text(mounts)?);
        }
        let read = |path: &Path| text_of((self.read)(path)?);
        let groups = self.groups.as_ref()?;
        let used: Vec<Usage> = groups.iter().map_while(|group| group.usage(&read)).collect();
        if used.is_empty() {
            // Gone, or never there: it may have been moved.
            self.groups = None;
            return None;
        }
        Some(Used::Groups(used))
    }

    fn text(&self, path: &str) -> Option<String> {
        text_of((self.read)(Path::new(path))?)
    }
}

impl Signal for Cpu {
    fn read(&mut self, now: Timestamp) -> Option<f64> {
        let elapsed = self.last.as_ref().filter(|(at, _)| *at <= now).map(|(at, _)| now.since(*at));
        if elapsed.is_some_and(|elapsed| elapsed < SHORTEST) {
            return self.smoothed;
        }
        let Some(used) = self.used() else {
            (self.last, self.smoothed) = (None, None);
            return None;
        };
        let before = self.last.replace((now, used));
        let elapsed = elapsed.filter(|elapsed| *elapsed <= LONGEST);
        let (Some(elapsed), Some((_, before)), Some((_, used))) = (elapsed, before, &self.last)
        else {
            // Asked for seldom: it reads files too.
            self.processors = std::thread::available_parallelism().ok().map(|n| n.get() as f64);
            self.smoothed = None;
            return None;
        };
        if let Some(load) = self.load(used, &before, elapsed) {
            let decay = DECAY.powf(elapsed.as_secs_f64() / SMOOTHED.as_secs_f64());
            let smoothed = self.smoothed.map_or(load, |old| load + decay * (old - load));
            self.smoothed = Some(smoothed);
        }
        self.smoothed
    }
}

/// The load of the group that is nearest to its quota; of the own group, if none has one.
fn group_load(used: &[Usage], before: &[Usage], seconds: f64, capacity: f64) -> Option<f64> {
    let pairs = || used.iter().zip(before);
    let seconds_of = |(now, before): (&Usage, &Usage)| {
        now.used.checked_sub(before.used).map(|nanos| nanos as f64 / 1e9)
    };
    let of_quota = |pair: (&Usage, &Usage)| Some(seconds_of(pair)? / (seconds * pair.0.quota?));
    let nearest = pairs().filter_map(of_quota).max_by(f64::total_cmp);
    match used.iter().any(|group| group.quota.is_some()) {
        true => nearest,
        false => pairs().next().and_then(seconds_of).map(|used| used / capacity),
    }
}

fn read_file(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LARGEST_FILE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Text, in which what is none is marked.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cpu")
            .field("source", &self.source)
            .field("load", &self.smoothed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
