//! Overrides that end by themselves.
//!
//! No timer removes them. Whoever finds one that is over removes it first, as if that had
//! happened at its end: nobody has acted on the caller's word since.

use super::Limiter;
use super::overrides::Pinned;
use super::tiers::Caller;
use crate::sync::MutexGuard;
use crate::{Clock, Timestamp};

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// Removes a caller's override if it is over at `now`.
    #[cold]
    #[inline(never)]
    pub(super) fn expire(&self, caller: Caller, now: Timestamp) {
        self.expire_held(&self.overrides.hold(), caller, now);
    }

    /// The same, for calls that do not notice it themselves.
    pub(super) fn expire_if_over(&self, caller: Caller, now: Timestamp) {
        let is_over = |pinned: Option<&mut Pinned>| pinned.is_some_and(|own| own.is_over(now));
        if self.overrides.with(caller.fingerprint, is_over) {
            self.expire(caller, now);
        }
    }

    /// The same while changes of overrides are blocked.
    pub(super) fn expire_held(
        &self,
        changing: &MutexGuard<'_, ()>,
        caller: Caller,
        now: Timestamp,
    ) {
        self.overrides.remove(changing, caller.fingerprint, |pinned| {
            pinned.is_over(now).then(|| self.hand_over(caller, pinned, now))
        });
    }

    /// Removes every override that is over at `now`: before words are saved, or their rule
    /// changes.
    ///
    /// The key of a caller is not known here, so its tier is that of its last call. One that has
    /// not called since a restart counts as one without a tier.
    pub(super) fn expire_all(&self, changing: &MutexGuard<'_, ()>, now: Timestamp) {
        let mut over = Vec::new();
        self.overrides.each(|fingerprint, pinned| {
            let caller = Caller { fingerprint, tier: pinned.tier };
            over.extend(pinned.is_over(now).then_some(caller));
        });
        over.into_iter().for_each(|caller| self.expire_held(changing, caller, now));
    }

    /// Returns a caller's word to the table when its override is removed, at `now` or at its
    /// earlier end.
    pub(super) fn hand_over(&self, caller: Caller, pinned: &Pinned, now: Timestamp) {
        // Quotas do not change while an override is removed.
        let (rule, end) = (self.table.rule_of(caller.by()), pinned.end(now));
        self.table.raise_at(caller.fingerprint, |_| pinned.left(&rule, end), end);
    }
}

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Calls `read` with the caller's override, if it has one that is not over.
    pub(super) fn read_override<T>(
        &self,
        caller: Caller,
        read: impl FnOnce(&Pinned) -> T,
    ) -> Option<T> {
        let now = self.clock.now();
        self.overrides.with(caller.fingerprint, |pinned| match pinned {
            Some(pinned) if !pinned.is_over(now) => Some(read(pinned)),
            _ => None,
        })
    }
}

impl Pinned {
    /// True from its end on.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// When it ends, if it is removed at `now`: never before it was set.
    fn end(&self, now: Timestamp) -> Timestamp {
        self.until.map_or(now, |until| until.min(now).max(self.since))
    }
}

/// The same moment on two clocks.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// On the clock that words and times come from.
    pub(super) then: Timestamp,
    /// On the clock that they are moved to.
    pub(super) now: Timestamp,
}

impl Moment {
    /// A time of the one clock on the other.
    pub(super) fn moved(self, time: Timestamp) -> Timestamp {
        let Self { then, now } = self;
        if time >= then { now + time.since(then) } else { now - then.since(time) }
    }

    /// The end of an override, if that was earlier: its words have not been read since.
    pub(super) fn or_end(self, until: Option<Timestamp>) -> Self {
        match until.filter(|until| *until < self.then) {
            Some(until) => Self { then: until, now: self.moved(until) },
            None => self,
        }
    }
}
