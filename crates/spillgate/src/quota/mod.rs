//! Quotas: an amount, a period and a burst.

mod parse;
#[cfg(feature = "serde")]
mod serde;

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::{Error, Timestamp};

/// How much may be spent in what time: an amount, a period and a burst.
///
/// With 10 per second and a burst of 20, an idle caller can spend 20 at once, and 10 per
/// second from then on. The burst defaults to the amount. Every `Quota` is valid:
/// [`QuotaBuilder::build`] and the parser check it.
///
/// ```
/// use spillgate::Quota;
///
/// let quota = Quota::per_second(10).burst(20).build()?;
/// assert_eq!(quota, "10/s burst 20".parse()?);
/// assert_eq!(quota.to_string(), "10/s burst 20");
///
/// assert!(Quota::per_day(0).build().is_err());
/// # Ok::<(), spillgate::Error>(())
/// ```
///
/// # Text
///
/// `AMOUNT/[N] UNIT` or `AMOUNT per [N] UNIT`, optionally followed by `burst N`; or
/// `burst N` alone for a quota that never refills. Units are `ns`, `us`, `ms`, `s`, `min`,
/// `h`, `day`, `week` and their usual long forms; digits may be grouped with `_`.
/// [`Display`](fmt::Display) writes the shortest form.
///
/// # Limits
///
/// The interval between two units, `period / amount`, is rounded up to a whole
/// nanosecond: the rate is never above the stated one, and below it by less
/// than 0.1 % up to 1,000,000 per second (by less than 1 % up to 10,000,000).
/// Rates above one per nanosecond are invalid, as are a period, or a time to refill
/// the whole burst, of 2⁶² nanoseconds (146 years) and more. To limit bytes at high
/// rates, count kilobytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    refill: Option<Refill>,
    burst: NonZeroU64,
}

/// `amount` per `period` nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Refill {
    amount: NonZeroU64,
    period: NonZeroU64,
}

/// The longest period, and the longest time to refill a whole burst.
pub(crate) const MAX_SPAN: u64 = Timestamp::MAX.as_nanos();

impl Quota {
    /// `amount` per second.
    pub const fn per_second(amount: u64) -> QuotaBuilder {
        Self::per(amount, Duration::from_secs(1))
    }

    /// `amount` per minute.
    pub const fn per_minute(amount: u64) -> QuotaBuilder {
        Self::per(amount, Duration::from_secs(60))
    }

    /// `amount` per hour.
    pub const fn per_hour(amount: u64) -> QuotaBuilder {
        Self::per(amount, Duration::from_secs(60 * 60))
    }

    /// `amount` per day of 24 hours.
    pub const fn per_day(amount: u64) -> QuotaBuilder {
        Self::per(amount, Duration::from_secs(24 * 60 * 60))
    }

    /// `amount` per `period`.
    pub const fn per(amount: u64, period: Duration) -> QuotaBuilder {
        QuotaBuilder { refill: Some((amount, period)), burst: None }
    }

    /// `burst` in total: never refilled.
    pub const fn once(burst: u64) -> QuotaBuilder {
        QuotaBuilder { refill: None, burst: Some(burst) }
    }

    /// How much refills per [`period`](Self::period); zero if the quota never refills.
    #[must_use]
    pub const fn amount(&self) -> u64 {
        match self.refill {
            Some(refill) => refill.amount.get(),
            None => 0,
        }
    }

    /// The time in which the [`amount`](Self::amount) refills; `None` if the quota never
    /// refills.
    #[must_use]
    pub const fn period(&self) -> Option<Duration> {
        match self.refill {
            Some(refill) => Some(Duration::from_nanos(refill.period.get())),
            None => None,
        }
    }

    /// How much refills per second, whatever the [`period`](Self::period): to compare quotas. Zero if
    /// the quota never refills.
    ///
    /// ```
    /// use spillgate::Quota;
    ///
    /// assert_eq!(Quota::per_minute(90).build()?.rate(), 1.5);
    /// assert_eq!(Quota::once(5).build()?.rate(), 0.0);
    /// # Ok::<(), spillgate::Error>(())
    /// ```
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.period().map_or(0.0, |period| self.amount() as f64 / period.as_secs_f64())
    }

    /// How much an idle caller can spend at once.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst.get()
    }

    /// The time in which one unit refills, rounded up to a nanosecond; `None` if the quota
    /// never refills.
    #[must_use]
    pub const fn interval(&self) -> Option<Duration> {
        match self.refill {
            Some(refill) => Some(Duration::from_nanos(refill.interval())),
            None => None,
        }
    }
}

impl Refill {
    const fn interval(self) -> u64 {
        self.period.get().div_ceil(self.amount.get())
    }

    fn new(amount: u64, period: Duration) -> Result<Self, Error> {
        let Some(amount) = NonZeroU64::new(amount) else {
            return Err(Error::quota("an amount of 0 would admit nothing; use at least 1"));
        };
        let nanos = u64::try_from(period.as_nanos()).ok().filter(|nanos| *nanos <= MAX_SPAN);
        let Some(nanos) = nanos else {
            return Err(Error::quota(format!(
                "a period of {} ns is too long; use at most {MAX_SPAN} ns (146 years)",
                period.as_nanos(),
            )));
        };
        let Some(period) = NonZeroU64::new(nanos) else {
            return Err(Error::quota("a period of 0 has no rate; use at least 1 ns"));
        };
        if amount > period {
            return Err(Error::quota(format!(
                "{amount} in {period} ns is more than one a nanosecond; \
                 use at most {period}, or count in larger units",
            )));
        }
        Ok(Self { amount, period })
    }
}

/// Builds a [`Quota`].
///
/// Every function that takes a quota also takes a `QuotaBuilder`, so `build` is rarely needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct QuotaBuilder {
    refill: Option<(u64, Duration)>,
    burst: Option<u64>,
}

impl QuotaBuilder {
    /// Sets how much an idle caller can spend at once, instead of the amount.
    pub const fn burst(mut self, burst: u64) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Checks the quota.
    ///
    /// # Errors
    ///
    /// If an amount, period or burst is zero or too large: see the
    /// [limits](Quota#limits).
    pub fn build(self) -> Result<Quota, Error> {
        let refill = self.refill.map(|(amount, period)| Refill::new(amount, period)).transpose()?;
        let burst = self.burst.unwrap_or(refill.map_or(0, |refill| refill.amount.get()));
        let Some(burst) = NonZeroU64::new(burst) else {
            return Err(Error::quota("a burst of 0 would admit nothing; use at least 1"));
        };
        let interval = refill.map_or(1, Refill::interval);
        if burst.get().checked_mul(interval).is_none_or(|span| span > MAX_SPAN) {
            return Err(Error::quota(match refill {
                Some(_) => format!(
                    "a burst of {burst} at one every {interval} ns would take more than \
                     146 years to refill; use at most {}",
                    MAX_SPAN / interval,
                ),
                None => format!("a burst of {burst} is too large; use at most {MAX_SPAN}"),
            }));
        }
        Ok(Quota { refill, burst })
    }
}

impl TryFrom<QuotaBuilder> for Quota {
    type Error = Error;

    fn try_from(builder: QuotaBuilder) -> Result<Self, Error> {
        builder.build()
    }
}

impl TryFrom<&str> for Quota {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self, Error> {
        text.parse()
    }
}

/// Units of time by their canonical names, the longest first.
const UNITS: [(u64, &str); 8] = [
    (7 * 24 * 3600 * 1_000_000_000, "week"),
    (24 * 3600 * 1_000_000_000, "day"),
    (3600 * 1_000_000_000, "h"),
    (60 * 1_000_000_000, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Refill { amount, period }) = self.refill else {
            return write!(f, "burst {}", self.burst);
        };
        let whole = UNITS.iter().find(|(nanos, _)| period.get() % nanos == 0);
        let (nanos, unit) = whole.copied().unwrap_or((1, "ns"));
        match period.get() / nanos {
            1 => write!(f, "{amount}/{unit}")?,
            n => write!(f, "{amount} per {n} {unit}")?,
        }
        if self.burst != amount {
            write!(f, " burst {}", self.burst)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quota({self})")
    }
}
