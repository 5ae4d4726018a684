use rustix::time::{ClockId, clock_gettime};

/// The real time in nanoseconds. A server on the same machine tells the same.
pub(crate) fn real_time() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
