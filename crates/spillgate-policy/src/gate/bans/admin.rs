//! Setting, lifting and listing bans.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ban::{edit_key, edited_caller, parse};
use super::{Ban, BansAt, Earlier};
use crate::gate::Gate;
use crate::key::Value;
use crate::store::{Edit, Store};
use crate::{Error, Key, Mode};

/// The longest ban that an operator can set.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The most bytes of a reason.
const LONGEST_REASON: usize = 256;

/// How many bans there are, and what led to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BanUsage {
    /// Bans in force that refuse.
    pub enforced: usize,
    /// Bans in force that refuse nobody.
    pub shadow: usize,
    /// Bans that were dropped for want of room.
    pub evicted: u64,
    /// Offences that were not counted, since too many waited for the store.
    pub lost_strikes: u64,
    /// Of each limit that bans: its name, how many offences it counted, how many bans they led to.
    pub limits: Vec<(String, u64, u64)>,
}

impl<S: Store> Gate<S> {
    /// Bans a caller, or replaces its ban, and forgets its offences: an address, `key:NAME` or
    /// `user:NAME`. An IPv6 address stands for its /64, or what `ipv6-prefix` says.
    ///
    /// # Errors
    ///
    /// If the caller cannot be understood or is a range, the duration is not between 1 second and
    /// 365 days, or the reason has more than 256 bytes or control characters: then nothing has
    /// changed. If a store that is shared could not be told: then the ban is in force here, and
    /// the next [`flush_offences`](Self::flush_offences) tells it.
    pub async fn ban(
        &self,
        caller: &str,
        duration: Duration,
        reason: Option<&str>,
    ) -> Result<Ban, Error> {
        if !(Duration::from_secs(1)..=LONGEST).contains(&duration) {
            return Err(Error::unknown(format!(
                "a ban cannot last {duration:?}; use a time between 1s and 365d"
            )));
        }
        let reason = reason.map(|reason| expect_reason(reason).map(Arc::from)).transpose()?;
        let active = self.active();
        let identifier = &active.policy.identifier;
        let caller = parse(caller, identifier)?;
        let ban = Ban { reason, ..Ban::new(caller, identifier, self.store.now(), duration) };
        // Or an offence after this ban would find the one that it has replaced.
        self.offences.forgive(&Key::of_caller(Value::from(&ban.caller)));
        self.bans.set(Arc::new(ban.clone()), Earlier::Replaced, ban.since);
        self.offences.tell(ban.to_edit());
        self.tell_changes().await.map(|()| ban)
    }

    /// Ends the ban of a caller, and forgets its offences. Returns whether it was banned.
    ///
    /// # Errors
    ///
    /// If the caller cannot be understood; or if the store could not be told: then the ban has
    /// ended here.
    pub async fn lift(&self, caller: &str) -> Result<bool, Error> {
        let active = self.active();
        let caller = parse(caller, &active.policy.identifier)?;
        self.offences.forgive(&Key::of_caller(Value::from(&caller)));
        let was_banned = self.bans.lift(&caller, self.store.now());
        self.offences.tell(Edit::new(edit_key(&caller), None, None));
        self.tell_changes().await.map(|()| was_banned)
    }

    /// Tells the store whom operators have banned and lifted.
    async fn tell_changes(&self) -> Result<(), Error> {
        let forgiven = self.forgive_all().await;
        forgiven.and(self.publish_bans().await)
    }

    /// The bans in force, those that end first at the beginning. They hold secrets.
    pub fn bans(&self) -> Vec<Ban> {
        let bans = self.bans.list(self.store.now());
        bans.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// The ban of a caller, if one is in force.
    ///
    /// # Errors
    ///
    /// If the caller cannot be understood.
    pub fn ban_of(&self, caller: &str) -> Result<Option<Ban>, Error> {
        let caller = parse(caller, &self.active().policy.identifier)?;
        let bans = BansAt { bans: &self.bans, now: self.store.now() };
        Ok(bans.of(Value::from(&caller)).map(|banned| Arc::unwrap_or_clone(banned.ban)))
    }

    /// How many bans there are, and what led to them.
    pub fn ban_usage(&self) -> BanUsage {
        let bans = self.bans.list(self.store.now());
        let shadow = bans.iter().filter(|ban| ban.mode == Mode::Shadow).count();
        let active = self.active();
        let rules = active.policy.rules.iter();
        let counted = rules.filter_map(|rule| {
            let counters = &rule.ban.as_ref()?.counters;
            let [strikes, started] =
                [&counters.strikes, &counters.started].map(|count| count.load(Ordering::Relaxed));
            Some((rule.name.to_string(), strikes, started))
        });
        BanUsage {
            enforced: bans.len() - shadow,
            shadow,
            evicted: self.bans.evicted(),
            lost_strikes: self.offences.lost(),
            limits: counted.collect(),
        }
    }

    /// The bans in force as [edits](Edit), to be saved or shared.
    pub fn ban_edits(&self) -> Vec<Edit> {
        self.bans.list(self.store.now()).iter().map(|ban| ban.to_edit()).collect()
    }

    /// Sets or ends the ban that an [edit](Edit) of another node, or of a snapshot, describes.
    /// Returns false if it describes none, or one that is over, or if the others are yet to be told
    /// of a later one.
    pub fn apply_ban(&self, edit: &Edit) -> bool {
        let Some(caller) = edited_caller(edit) else { return false };
        // What is yet to be told to the others comes after it.
        if self.offences.tells(&edit.key) {
            return false;
        }
        let (active, now) = (self.active(), self.store.now());
        let identifier = &active.policy.identifier;
        match (Ban::from_edit(edit, identifier), parse(&caller, identifier)) {
            (Some(ban), _) if ban.until > now => {
                self.bans.set(Arc::new(ban), Earlier::Replaced, now)
            }
            (None, Ok(caller)) if edit.value.is_none() => {
                self.bans.lift(&caller, now);
                true
            }
            _ => false,
        }
    }
}

/// A reason that can be kept and shown.
fn expect_reason(reason: &str) -> Result<&str, Error> {
    if reason.len() > LONGEST_REASON {
        return Err(Error::unknown(format!(
            "the reason of a ban has {} bytes; write at most {LONGEST_REASON}",
            reason.len()
        )));
    }
    if reason.chars().any(char::is_control) {
        return Err(Error::unknown(
            "the reason of a ban has control characters; write one line of text",
        ));
    }
    Ok(reason)
}
