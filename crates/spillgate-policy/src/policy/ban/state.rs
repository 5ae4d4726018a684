//! What is remembered of a caller that has offended.

use smallvec::SmallVec;
use spillgate::Timestamp;

use super::{BanStart, MOST_STRIKES};

/// The first byte of a state as bytes.
const VERSION: u8 = 1;

/// The bytes before the offences: version, bans, end of the last ban.
const HEAD: usize = 1 + 4 + 8;

/// The offences of a caller that still count, and its bans.
///
/// ```
/// use spillgate::Timestamp;
/// use spillgate_policy::store::{BanRule, BanState};
///
/// let mut state = BanState::default();
/// BanRule::new(3).offence(&mut state, Timestamp::from_secs(7), 0.0);
/// assert_eq!(BanState::from_bytes(&state.to_bytes()), Some(state));
/// assert_eq!(BanState::from_bytes(b"garbage"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BanState {
    /// Since the last ban, in their order. Fewer than the rule allows.
    pub(super) offences: SmallVec<[Timestamp; 4]>,
    /// How many bans there were since they were last forgotten.
    pub(super) bans: u32,
    /// When the last ban ends or ended.
    pub(super) until: Timestamp,
}

impl BanState {
    /// How many offences there are since the last ban, as far as they were counted when the last of
    /// them was made.
    #[must_use]
    pub fn strikes(&self) -> usize {
        self.offences.len()
    }

    /// How many bans there were since they were last forgotten.
    #[must_use]
    pub fn bans(&self) -> u32 {
        self.bans
    }

    /// When the last ban ends, or ended.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// The ban in force at a time.
    #[must_use]
    pub fn ban_at(&self, now: Timestamp) -> Option<BanStart> {
        let ban = BanStart { is_new: false, ..BanStart::new(self.until.since(now), self.bans) };
        (now < self.until).then_some(ban)
    }

    pub(super) fn last_offence(&self) -> Option<Timestamp> {
        self.offences.last().copied()
    }

    /// Since when there was neither an offence nor a ban.
    pub(super) fn quiet_since(&self) -> Timestamp {
        self.last_offence().unwrap_or_default().max(self.until)
    }

    /// The state as bytes: at most 813.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + 8 * self.offences.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.bans.to_le_bytes());
        for time in [self.until].iter().chain(&self.offences) {
            bytes.extend_from_slice(&time.as_nanos().to_le_bytes());
        }
        bytes
    }

    /// The state that was [made into bytes](Self::to_bytes); `None` if it was not.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, bytes) = bytes.split_first()?;
        let (bans, bytes) = bytes.split_first_chunk()?;
        let times = bytes.chunks_exact(8);
        if *version != VERSION || !times.remainder().is_empty() {
            return None;
        }
        let mut times = times.map(|bytes| {
            let nanos = u64::from_le_bytes(bytes.try_into().ok()?);
            (nanos <= Timestamp::MAX.as_nanos()).then_some(Timestamp::from_nanos(nanos))
        });
        let until = times.next()??;
        if times.len() > MOST_STRIKES as usize {
            return None;
        }
        let offences: SmallVec<_> = times.collect::<Option<_>>()?;
        let is_ordered =
            offences.is_sorted() && offences.first().is_none_or(|first| *first >= until);
        is_ordered.then_some(Self { offences, bans: u32::from_le_bytes(*bans), until })
    }
}
