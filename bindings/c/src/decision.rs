use std::time::Duration;

use spillgate::Decision;

/// For times: never.
pub const SG_NEVER_NS: u64 = u64::MAX;

/// What a check decided.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sg_verdict {
    /// Denied: the same call would be allowed after `retry_after_ns`.
    SG_DENIED = 0,
    /// The call may proceed, after `wait_ns` if a shaper decided.
    SG_ALLOWED = 1,
    /// Denied, and waiting does not help: the cost exceeds the limit, or a quota that never
    /// refills is used up.
    SG_NEVER = 2,
}

/// A decision: allowed or not, what remains, and when to try again.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sg_decision {
    /// Allowed, denied or never.
    pub verdict: sg_verdict,
    /// Denied only because the table has no slot for a new caller.
    pub table_full: bool,
    /// The most that can be spent at once: the burst.
    pub limit: u64,
    /// How much can be spent now.
    pub remaining: u64,
    /// The exact time until the same call would be allowed: 0 if it was, `SG_NEVER_NS` if never.
    pub retry_after_ns: u64,
    /// The time until the whole limit is available again, as the quota states it: for headers.
    /// `SG_NEVER_NS` if the quota never refills.
    pub reset_after_ns: u64,
    /// The same to the nanosecond, which may be later since buckets keep whole nanoseconds.
    pub idle_after_ns: u64,
    /// How long an allowed call should wait before it proceeds: 0 unless the algorithm is
    /// "leaky-shaper".
    pub wait_ns: u64,
    /// The time in which the whole limit refills, or the length of the window. `SG_NEVER_NS` if the
    /// quota never refills.
    pub window_ns: u64,
}

impl From<&Decision> for sg_decision {
    #[inline(always)]
    fn from(decision: &Decision) -> Self {
        let retry_after = decision.retry_after();
        Self {
            verdict: match retry_after {
                _ if decision.is_allowed() => sg_verdict::SG_ALLOWED,
                Some(_) => sg_verdict::SG_DENIED,
                None => sg_verdict::SG_NEVER,
            },
            table_full: decision.is_table_full(),
            limit: decision.limit(),
            remaining: decision.remaining(),
            retry_after_ns: nanos(retry_after),
            reset_after_ns: nanos(decision.reset_after()),
            idle_after_ns: nanos(decision.idle_after()),
            wait_ns: nanos(Some(decision.wait())),
            window_ns: nanos(decision.window()),
        }
    }
}

/// A time in nanoseconds, which the library counts in 64 bits too.
#[inline(always)]
fn nanos(time: Option<Duration>) -> u64 {
    time.map_or(SG_NEVER_NS, |time| time.as_nanos() as u64)
}

/// `retry_after_ns` in seconds, rounded up, for a `Retry-After` header. `UINT64_MAX` if there is no
/// use in trying again, or the decision is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sg_retry_after_seconds(decision: *const sg_decision) -> u64 {
    // SAFETY: NULL, or a decision.
    match unsafe { decision.as_ref() }.map(|decision| decision.retry_after_ns) {
        None | Some(SG_NEVER_NS) => u64::MAX,
        Some(nanos) => nanos.div_ceil(1_000_000_000),
    }
}
