//! Which processor does what: a server has one for itself, and its client another.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// This thread, for the calls below.
const SELF: Pid = Pid::from_raw(0);

/// The processors of the two. They are the same one if there is no other.
#[derive(Clone, Copy)]
pub struct Cpus {
    pub server: usize,
    pub client: usize,
}

impl Cpus {
    /// Must be asked before anything is pinned.
    pub fn available() -> nix::Result<Self> {
        let set = sched_getaffinity(SELF)?;
        let is_ours = |cpu: &usize| set.is_set(*cpu).unwrap_or(false);
        let mut ours = (0..CpuSet::count()).filter(is_ours);
        let server = ours.next().unwrap_or(0);
        Ok(Self { server, client: ours.next_back().unwrap_or(server) })
    }
}

/// Keeps this thread on a processor, and the processes that it starts from now on.
pub fn pin(cpu: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(SELF, &set)
}
