use std::ffi::{CStr, c_char, c_void};
use std::slice;
use std::time::Duration;

use spillgate_bindings::{Settings, TierOf};

use crate::arguments::{required, text};
use crate::clock::sg_clock;
use crate::error::{Result, invalid};

/// As `max_debt`: no debt at all.
pub const SG_NO_DEBT: u64 = u64::MAX;

/// A quota for some callers: those for which `tier_of` returns this name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sg_tier {
    /// The name of the tier.
    pub name: *const c_char,
    /// Its quota, as text.
    pub quota: *const c_char,
}

/// Returns the name of a caller's tier, or NULL for the limiter's own quota.
///
/// Called on every check, in the thread that checks, with `tier_context`. It must return (no
/// `longjmp`, no C++ exception) and must not call the same limiter.
pub type sg_tier_of = Option<
    unsafe extern "C" fn(
        key: *const c_char,
        key_length: usize,
        tier_context: *mut c_void,
    ) -> *const c_char,
>;

/// What a limiter is made from. Whatever is 0 or NULL has its default, and a NULL configuration
/// has all of them: initialise it with `{0}` or designated initialisers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sg_config {
    /// The quota as text, such as "10/s burst 20", "100 per 15 min" or "burst 5", which never
    /// refills. By default it is made from the three numbers below or, if all are 0, is
    /// `SG_DEFAULT_QUOTA`.
    pub quota: *const c_char,
    /// The capacity of a caller's bucket: the most that can be spent at once. By default `refill`.
    pub burst: u64,
    /// How much refills per window.
    pub refill: u64,
    /// The time in which that much refills. By default one second.
    pub window_ns: u64,
    /// "token-bucket" by default, "leaky-bucket", "leaky-shaper", "interval-bucket",
    /// "fixed-window", "first-hit-window" or "sliding-window".
    pub algorithm: *const c_char,
    /// What happens to a new caller when the table is full: "evict" by default, "protect" or
    /// "deny".
    pub when_full: *const c_char,
    /// What a new caller may spend: "full" by default, or "empty". For buckets of tokens.
    pub start: *const c_char,
    /// How many callers can have something spent at the same time: 100,000 by default. About 26
    /// bytes each, allocated at once.
    pub max_callers: usize,
    /// How much debits may spend beyond the burst: by default the refill of a day or ten bursts,
    /// whichever is more. `SG_NO_DEBT` for none.
    pub max_debt: u64,
    /// Quotas for some callers, which share the table.
    pub tiers: *const sg_tier,
    /// How many tiers there are.
    pub tier_count: usize,
    /// The function that assigns tiers.
    pub tier_of: sg_tier_of,
    /// What it is called with. Must be usable from every thread that checks, as long as the
    /// limiter or a reservation of it exists.
    pub tier_context: *mut c_void,
    /// A clock that the program moves, for tests. By default the system's.
    pub clock: *const sg_clock,
    /// For later versions: 0.
    pub reserved: [u64; 4],
}

/// The most tiers: more are more likely a mistake.
const MAX_TIERS: usize = 1024;

impl sg_config {
    /// The settings of a configuration.
    ///
    /// # Safety
    ///
    /// Pointers are as the fields say, and what they point to outlives the result.
    pub(crate) unsafe fn settings<'s>(&self) -> Result<Settings<'s>> {
        let some = |number: u64| (number != 0).then_some(number);
        if self.reserved != [0; 4] {
            return Err(invalid("reserved fields of sg_config are not 0; initialise it with {0}"));
        }
        // SAFETY: texts end with NUL, and a clock is NULL or a handle.
        unsafe {
            Ok(Settings {
                quota: text("quota", self.quota)?,
                refill: some(self.refill),
                window: some(self.window_ns).map(Duration::from_nanos),
                burst: some(self.burst),
                algorithm: text("algorithm", self.algorithm)?,
                when_full: text("when_full", self.when_full)?,
                start: text("start", self.start)?,
                max_callers: (self.max_callers != 0).then_some(self.max_callers),
                max_debt: match self.max_debt {
                    SG_NO_DEBT => Some(0),
                    tokens => some(tokens),
                },
                tiers: self.tiers()?,
                tier_of: self.tier_of(),
                clock: sg_clock::of(self.clock)?,
            })
        }
    }

    /// Names and quotas of tiers.
    ///
    /// # Safety
    ///
    /// There are as many as the count says.
    unsafe fn tiers<'s>(&self) -> Result<Vec<(&'s str, &'s str)>> {
        let tiers = match self.tier_count {
            0 => &[],
            count if self.tiers.is_null() => {
                return Err(invalid(&format!("tiers is NULL, but tier_count is {count}")));
            }
            // SAFETY: there are so many.
            count @ 1..=MAX_TIERS => unsafe { slice::from_raw_parts(self.tiers, count) },
            count => {
                return Err(invalid(&format!("tier_count is {count}; use at most {MAX_TIERS}")));
            }
        };
        // SAFETY: texts end with NUL.
        let read = |tier: &sg_tier| unsafe {
            Ok((required("name of a tier", tier.name)?, required("quota of a tier", tier.quota)?))
        };
        tiers.iter().map(read).collect()
    }

    fn tier_of(&self) -> Option<TierOf> {
        let (function, context) = (self.tier_of?, Context(self.tier_context));
        Some(Box::new(move |key, names| {
            // SAFETY: the program says that function and context are usable from every thread.
            let name = unsafe { function(key.as_ptr().cast(), key.len(), context.get()) };
            if name.is_null() {
                return None;
            }
            // SAFETY: a string that ends with NUL.
            let name = unsafe { CStr::from_ptr(name) }.to_bytes();
            names.iter().position(|known| known.as_bytes() == name)
        }))
    }
}

/// What the program wants its function to be called with.
struct Context(*mut c_void);

impl Context {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

// SAFETY: only the program's function uses it, and may from every thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
