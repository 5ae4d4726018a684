//! How much memory the process takes, by the operating system's word.

use crate::acts::{FLOOD_BEGINS, FLOOD_ENDS};
use crate::moment::Moment;

/// Resident bytes, where the operating system tells them in a file.
pub(crate) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The resident bytes before the flood, and the most during it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Footprint {
    pub(crate) before: Option<u64>,
    pub(crate) most: Option<u64>,
}

impl Footprint {
    pub(crate) fn note(&mut self, moment: &Moment) {
        if moment.elapsed < FLOOD_BEGINS {
            self.before = moment.resident;
        } else if moment.elapsed < FLOOD_ENDS {
            self.most = self.most.max(moment.resident);
        }
    }
}
