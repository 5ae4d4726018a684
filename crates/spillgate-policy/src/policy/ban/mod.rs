//! When a caller is banned, and for how long: pure functions of a state and a time.

mod state;
mod terms;

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use spillgate::Timestamp;

pub use self::state::BanState;
pub(crate) use self::terms::BanTerms;

/// The most offences that a rule may count.
pub(crate) const MOST_STRIKES: u32 = 100;

/// Bans callers that offend repeatedly.
///
/// [`offence`](Self::offence) is the whole rule: it reads no clock and draws no random numbers.
///
/// ```
/// use std::time::Duration;
/// use spillgate::Timestamp;
/// use spillgate_policy::store::{BanRule, BanState};
///
/// let rule = BanRule::new(2);
/// let (mut caller, now) = (BanState::default(), Timestamp::from_secs(1_700_000_000));
/// assert_eq!(rule.offence(&mut caller, now, 0.0), None);
/// let ban = rule.offence(&mut caller, now + Duration::from_secs(5), 0.0);
/// assert_eq!(ban.map(|ban| ban.duration), Some(Duration::from_secs(600)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BanRule {
    /// So many offences within the window start a ban.
    pub strikes: u32,
    /// How long an offence counts.
    pub window: Duration,
    /// How long the first ban lasts.
    pub duration: Duration,
    /// By what each further ban is longer.
    pub factor: f64,
    /// The longest ban, without jitter.
    pub max: Duration,
    /// After so long without an offence since the end of the last ban, earlier bans are
    /// forgotten.
    pub decay: Duration,
    /// Up to this share of its duration, a ban lasts longer.
    pub jitter: f64,
}

/// A ban that an offence starts, or finds in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BanStart {
    /// How long the ban lasts from now.
    pub duration: Duration,
    /// How many bans of this caller there were, with this one, since it was last forgotten.
    pub count: u32,
    /// True if the offence started it. False if it was in force already: whoever does not know of
    /// it has to begin it now, since the one who started it may have died.
    pub is_new: bool,
}

impl BanStart {
    /// A ban for so long, which an offence starts.
    #[must_use]
    pub fn new(duration: Duration, count: u32) -> Self {
        Self { duration, count, is_new: true }
    }
}

impl BanRule {
    /// A rule with the defaults: offences count for 10 minutes; bans last 10 minutes, twice as long
    /// each time up to a day, and are forgotten after a day.
    #[must_use]
    pub fn new(strikes: u32) -> Self {
        let (ten_minutes, day) = (Duration::from_secs(600), Duration::from_secs(86_400));
        Self {
            strikes,
            window: ten_minutes,
            duration: ten_minutes,
            factor: 2.0,
            max: day,
            decay: day,
            jitter: 0.0,
        }
    }

    /// Counts an offence. Returns the ban that it starts, or finds in force.
    ///
    /// While a caller is banned nothing counts. `draw`, from 0 to 1, is the share of the
    /// [jitter](Self::jitter) that a ban gets: see [`draw`](Self::draw). A clock that goes
    /// backwards forgives nothing.
    pub fn offence(&self, state: &mut BanState, now: Timestamp, draw: f64) -> Option<BanStart> {
        if let Some(in_force) = state.ban_at(now) {
            return Some(in_force);
        }
        // By this time nothing seen so far is in the future.
        let latest = now.max(state.last_offence().unwrap_or(now));
        if latest.since(state.quiet_since()) >= self.decay {
            state.bans = 0;
        }
        // They are in their order, and most of the time none is over.
        let is_over = |offence: &&Timestamp| latest.since(**offence) >= self.window;
        let over = state.offences.iter().take_while(is_over).count();
        if over > 0 {
            state.offences.drain(..over);
        }
        state.offences.push(latest);
        let most = self.strikes.clamp(1, MOST_STRIKES) as usize;
        if state.offences.len() < most {
            return None;
        }
        let start = BanStart::new(self.length(state.bans, draw), state.bans.saturating_add(1));
        *state = BanState {
            offences: Default::default(),
            bans: start.count,
            until: now + start.duration,
        };
        Some(start)
    }

    /// Counts so many [offences](Self::offence) at one time: those after the one that starts a ban
    /// change nothing.
    pub fn offences(&self, state: &mut BanState, count: u32, now: Timestamp) -> Option<BanStart> {
        (0..count).find_map(|_| self.offence(state, now, self.draw()))
    }

    /// When the state says no more than that of a caller never seen: then it may be dropped.
    #[must_use]
    pub fn forgotten_at(&self, state: &BanState) -> Timestamp {
        let uncounted = state.last_offence().map_or(Timestamp::ZERO, |last| last + self.window);
        let decayed = match state.bans {
            0 => Timestamp::ZERO,
            _ => state.quiet_since() + self.decay,
        };
        uncounted.max(decayed).max(state.until)
    }

    /// A random number from 0 to 1 for [`offence`](Self::offence), if the rule needs one.
    #[must_use]
    pub fn draw(&self) -> f64 {
        if self.jitter > 0.0 {
            // Every hasher of the standard library has a key of its own.
            let bits = RandomState::new().hash_one(()) >> 11;
            return bits as f64 / (1_u64 << 53) as f64;
        }
        0.0
    }

    /// How long a ban lasts after so many others.
    fn length(&self, bans: u32, draw: f64) -> Duration {
        let power = i32::try_from(bans).unwrap_or(i32::MAX);
        // At least 1 each: neither a number that is none nor one out of range shortens a ban.
        let grown = self.duration.as_secs_f64() * self.factor.max(1.0).powi(power);
        let capped = match Duration::try_from_secs_f64(grown) {
            Ok(grown) if grown < self.max => grown,
            _ => self.max,
        };
        let longer = 1.0 + self.jitter.clamp(0.0, 1.0) * draw.clamp(0.0, 1.0);
        if longer > 1.0 {
            return Duration::try_from_secs_f64(capped.as_secs_f64() * longer).unwrap_or(capped);
        }
        capped
    }
}
