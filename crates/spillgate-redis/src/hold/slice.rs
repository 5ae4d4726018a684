use std::num::NonZeroU32;
use std::time::Duration;

use spillgate::Timestamp;

use crate::backend::{PermitReply, Wanted};
use crate::pending_call::PendingCall;

/// What this node holds of one caller's permits. It reads no clock and makes no calls.
#[derive(Debug, Default)]
pub(super) struct Slice {
    /// How many may be in flight here.
    granted: u32,
    /// Until when, by this node's clock.
    until: Timestamp,
    /// The most that Redis may hold for this node, and for how long.
    claimed: u32,
    claimed_until: Timestamp,
    /// Held by all others, by the last reply.
    others: u32,
    pub(super) pending: Option<PendingCall>,
    /// When the slice is to be renewed, and when a call that failed may be made again.
    renew_at: Timestamp,
    retry_at: Timestamp,
    /// When it is to be looked at again.
    pub(super) look_at: Timestamp,
    /// A call for so many more was denied; until when that is remembered.
    denied: (u32, Timestamp),
    /// What requests have waited for since the call in flight was sent.
    waiting: u32,
    /// What they still need after it.
    unserved: u32,
    /// The most in flight in this period and in the one before, and when this one began.
    peaks: [u32; 2],
    period: Timestamp,
    limit: u32,
    is_shadow: bool,
}

/// What a call is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTerms {
    /// Grows from call to call of this node.
    pub(super) number: u64,
    pub(super) ttl: Duration,
    pub(super) nodes: NonZeroU32,
    /// The present time of this node.
    pub(super) local: Timestamp,
}

/// A call about a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceCall {
    pub(super) wanted: Wanted,
    /// When it was sent, by this node's clock.
    pub(super) sent: Timestamp,
    /// How many more a request waits for; `None` if it only keeps or gives back.
    pub(super) count: Option<u32>,
}

/// How long a denial is remembered.
const DENIED: Duration = Duration::from_millis(50);

/// How long the part of a slice that is not needed is kept.
pub(super) const IDLE: Duration = Duration::from_millis(250);

/// When a call that failed is made again.
const RETRY: Duration = Duration::from_millis(250);

/// How often small slices are looked at.
pub(super) const PERIOD: Duration = Duration::from_millis(50);

/// Smaller shares keep nothing that is not in flight.
const SMALL: u32 = 8;

/// The Redis clock may gain a fifth on this node's: chrony slews clocks by up to a twelfth, and may
/// slew both, in opposite directions.
const DRIFT: u32 = 6;

/// How long permits with this time to live can be relied on from when the call was sent. They are
/// renewed long before.
pub(super) fn lasts(ttl: Duration) -> Duration {
    ttl - ttl / DRIFT
}

impl Slice {
    /// How many may be in flight here now.
    pub(super) fn granted(&self, local: Timestamp) -> u32 {
        if local < self.until { self.granted.min(self.limit) } else { 0 }
    }

    /// Learns how many permits there are, from a request.
    pub(super) fn set_limit(&mut self, limit: u32, is_shadow: bool) {
        if limit > self.limit {
            self.denied = (0, Timestamp::ZERO);
        }
        (self.limit, self.is_shadow) = (limit, is_shadow);
    }

    /// Held by others, as far as known.
    pub(super) fn others(&self) -> u32 {
        self.others
    }

    /// True if so many more were denied a moment ago.
    pub(super) fn is_denied(&self, count: u32, local: Timestamp) -> bool {
        local < self.denied.1 && count >= self.denied.0
    }

    /// Notes that a request waits for the call in flight.
    pub(super) fn wait(&mut self, count: u32) {
        self.waiting = self.waiting.saturating_add(count);
    }

    /// Notes how many are in flight after a request got its permits.
    pub(super) fn note(&mut self, in_flight: u32, local: Timestamp) {
        self.roll(local);
        self.peaks[0] = self.peaks[0].max(in_flight);
    }

    fn roll(&mut self, local: Timestamp) {
        let age = local.since(self.period);
        if age >= IDLE {
            self.peaks = [0, if age < 2 * IDLE { self.peaks[0] } else { 0 }];
            self.period = local;
        }
    }

    /// The call for `count` more than are in flight.
    pub(super) fn take(&mut self, in_flight: u32, count: u32, terms: CallTerms) -> SliceCall {
        let CallTerms { ttl, nodes, local, .. } = terms;
        self.roll(local);
        let least = in_flight.saturating_add(count);
        let needed = in_flight.saturating_add(count.max(std::mem::take(&mut self.unserved)));
        let lately = self.peaks[0].max(self.peaks[1]).saturating_mul(2);
        let usable = if self.is_small(nodes) { needed } else { needed.max(lately) };
        let usable = usable.max(self.granted(local));
        self.begin(SliceCall {
            wanted: Wanted {
                least,
                needed,
                usable,
                nodes: nodes.get(),
                is_beyond: self.is_shadow,
                number: terms.number,
                ..Wanted::exactly(0, self.limit, ttl)
            },
            sent: local,
            count: Some(count),
        })
    }

    /// The call that renews the slice or gives part of it back, if it is time for one.
    pub(super) fn keep(&mut self, in_flight: u32, terms: CallTerms) -> Option<SliceCall> {
        let CallTerms { ttl, nodes, local, .. } = terms;
        self.roll(local);
        if local >= self.claimed_until {
            self.claimed = 0;
        }
        let is_small = self.is_small(nodes);
        // Often enough to renew it in time, however short that is.
        self.look_at = local + if is_small { PERIOD } else { IDLE.min(ttl / 6) };
        let lately = if is_small { 0 } else { self.peaks[0].max(self.peaks[1]) };
        let target = self.granted(local).min(lately).max(in_flight);
        let is_due = target > 0 && local >= self.renew_at;
        let is_uncovered = in_flight > self.claimed;
        if local < self.retry_at || !(is_due || is_uncovered || self.claimed > target) {
            return None;
        }
        // No longer handed out, before anybody else may get them.
        self.granted = self.granted.min(target);
        let wanted = Wanted {
            least: if self.is_shadow { target } else { 0 },
            is_beyond: self.is_shadow,
            nodes: nodes.get(),
            number: terms.number,
            ..Wanted::exactly(target, self.limit, ttl)
        };
        Some(self.begin(SliceCall { wanted, sent: local, count: None }))
    }

    fn begin(&mut self, call: SliceCall) -> SliceCall {
        self.claimed = self.claimed.max(call.wanted.usable);
        self.claimed_until = call.sent + 2 * call.wanted.ttl;
        self.waiting = 0;
        self.retry_at = call.sent + RETRY;
        call
    }

    /// Takes the reply in. Returns how many permits in flight turned out to have expired.
    pub(super) fn answered(
        &mut self,
        call: &SliceCall,
        reply: &PermitReply,
        in_flight: u32,
        local: Timestamp,
    ) -> u32 {
        let covered = self.granted.min(in_flight);
        self.others = reply.total.saturating_sub(reply.held);
        // In shadow mode Redis holds more than there are.
        let free = if self.is_shadow { self.limit.saturating_sub(self.others) } else { u32::MAX };
        (self.granted, self.claimed) = (reply.held.min(free), reply.held);
        self.until = call.sent + lasts(call.wanted.ttl);
        self.renew_at = call.sent + call.wanted.ttl / 3;
        self.retry_at = Timestamp::ZERO;
        let free = reply.held.saturating_sub(in_flight);
        self.unserved = std::mem::take(&mut self.waiting).saturating_sub(free);
        if let Some(count) = call.count.filter(|_| !reply.is_done) {
            self.denied = (count, local + DENIED);
            self.unserved = 0;
        }
        covered.saturating_sub(reply.held)
    }

    /// Stops handing out once the slice may have expired. Returns how many permits in flight have
    /// expired with it.
    pub(super) fn lapse(&mut self, in_flight: impl FnOnce() -> u32, local: Timestamp) -> u32 {
        if local < self.until || self.granted == 0 {
            return 0;
        }
        std::mem::take(&mut self.granted).min(in_flight())
    }

    /// Has all that is not in flight given back with the next [call](Self::keep).
    pub(super) fn give_up(&mut self) {
        (self.peaks, self.retry_at) = ([0; 2], Timestamp::ZERO);
    }

    /// True if nothing is lost with it.
    pub(super) fn is_idle(&self, in_flight: u32, local: Timestamp) -> bool {
        let is_calling = self.pending.as_ref().is_some_and(PendingCall::is_under_way);
        in_flight == 0 && self.claimed == 0 && !is_calling && local >= self.denied.1
    }

    fn is_small(&self, nodes: NonZeroU32) -> bool {
        self.limit / nodes.get().saturating_mul(2) < SMALL
    }
}
