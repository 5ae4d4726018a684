use std::sync::Arc;
use std::time::Duration;

use spillgate::{AlgorithmKind, ManualClock, Quota, Start, WhenFull};

use crate::tiers::Resolver;
use crate::{AnyClock, Error, ErrorCode, Limiter, TierOf, fork};

/// The quota of a limiter without one.
pub const DEFAULT_QUOTA: &str = "10/s burst 20";

/// What a limiter is built from. Everything is optional.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "a closure cannot be shown")]
pub struct Settings<'s> {
    /// The quota as text, "10/s burst 20". Not together with the three numbers below.
    pub quota: Option<&'s str>,
    /// How much refills per window.
    pub refill: Option<u64>,
    /// The time in which that much refills: a second by default.
    pub window: Option<Duration>,
    /// How much can be spent at once: what refills per window by default.
    pub burst: Option<u64>,
    /// The name of an [`AlgorithmKind`]: `token-bucket` by default.
    pub algorithm: Option<&'s str>,
    /// What happens to a new caller when the table is full: `evict` by default, `protect` or
    /// `deny`. See [`WhenFull`].
    pub when_full: Option<&'s str>,
    /// What a new caller may spend: `full` by default, or `empty`. See [`Start`].
    pub start: Option<&'s str>,
    /// How many callers can have something spent at the same time: 100,000 by default.
    pub max_callers: Option<usize>,
    /// How deep debt beyond the burst can be: see
    /// [`max_debt`](spillgate::LimiterBuilder::max_debt).
    pub max_debt: Option<u64>,
    /// Names and quotas of tiers.
    pub tiers: Vec<(&'s str, &'s str)>,
    /// The function that assigns them.
    pub tier_of: Option<TierOf>,
    /// A clock that the program moves, instead of the system's.
    pub clock: Option<ManualClock>,
}

impl Settings<'_> {
    /// Builds the limiter, and keeps it usable in the child of a `fork`.
    ///
    /// # Errors
    ///
    /// If a value is invalid, or there is no memory.
    pub fn build(self) -> Result<Arc<Limiter>, Error> {
        let algorithm = self.algorithm.map(str::parse::<AlgorithmKind>).transpose()?;
        let mut builder = spillgate::Limiter::builder(self.quota()?)
            .algorithm(algorithm.unwrap_or_default())
            .when_full(one_of("when_full", self.when_full, WHEN_FULL)?)
            .start(one_of("start", self.start, START)?)
            .clock(self.clock.map_or(AnyClock::System, AnyClock::Manual));
        if let Some(callers) = self.max_callers {
            builder = builder.capacity(callers);
        }
        if let Some(tokens) = self.max_debt {
            builder = builder.max_debt(tokens);
        }
        for (name, quota) in &self.tiers {
            builder = builder.tier(*name, *quota);
        }
        if let Some(tier_of) = self.tier_of {
            let names = self.tiers.iter().map(|(name, _)| (*name).to_owned()).collect();
            builder = builder.tier_of(Resolver { names, tier_of });
        }
        fork::registered(|| Ok(builder.build()?))
    }

    fn quota(&self) -> Result<Quota, Error> {
        let Self { refill, window, burst, .. } = *self;
        let has_numbers = refill.is_some() || window.is_some() || burst.is_some();
        match (self.quota, refill) {
            (Some(text), _) if has_numbers => Err(Error::new(
                ErrorCode::Quota,
                format!(
                    "a quota is text or numbers; remove \"{text}\", or refill, window and burst"
                ),
            )),
            (Some(text), _) => Ok(text.parse()?),
            (None, Some(refill)) => {
                let quota = Quota::per(refill, window.unwrap_or(Duration::from_secs(1)));
                Ok(burst.map_or(quota, |burst| quota.burst(burst)).build()?)
            }
            (None, None) if has_numbers => Err(Error::new(
                ErrorCode::Quota,
                "a window or a burst without a refill; say how much refills per window, or use a \
                 quota such as \"burst 5\", which never refills",
            )),
            (None, None) => Ok(DEFAULT_QUOTA.parse()?),
        }
    }
}

const WHEN_FULL: &[(&str, WhenFull)] =
    &[("evict", WhenFull::Evict), ("protect", WhenFull::Protect), ("deny", WhenFull::Deny)];

const START: &[(&str, Start)] = &[("full", Start::Full), ("empty", Start::Empty)];

/// The value of that name, or the default without one.
fn one_of<T: Copy + Default>(
    setting: &str,
    name: Option<&str>,
    known: &[(&str, T)],
) -> Result<T, Error> {
    let Some(name) = name else { return Ok(T::default()) };
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        let message = format!("unknown {setting} {name:?}; use one of {}", known.join(", "));
        Error::new(ErrorCode::Argument, message)
    })
}
