use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, Word};
use spillgate::{Clock, Timestamp};
use spillgate_policy::Key;
use spillgate_policy::store::Spend;

use super::Settings;
use super::acquired::Claims;
use super::last_words::LastWords;
use super::limits::Limit;
use super::nodes::Nodes;
use super::overrides::OverrideCache;
use super::refunds::Refunds;
use super::returning::Returning;
use super::unreported::Unreported;
use crate::backend::{Backend, BackendError, Exchange, Fault, Result};
use crate::effective_quota::{EffectiveQuota, QuotaOwner};
use crate::stats::StoreCounters;
use crate::{Name, State};

/// What all parts of a store use: the backend, and what this node knows.
pub(crate) struct StoreCore<B> {
    pub(crate) backend: B,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) words: Arc<LastWords>,
    pub(super) unreported: Unreported,
    pub(super) refunds: Refunds,
    pub(super) returning: Returning,
    pub(super) overrides: OverrideCache,
    pub(super) nodes: Nodes,
    pub(super) claims: Claims,
    pub(super) counters: StoreCounters,
    pub(super) margin: Duration,
}

/// A caller under one limit.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(super) limit: Arc<Limit>,
    pub(super) name: Name,
    pub(super) tier: Option<usize>,
    /// The quota of the policy, or the one that came with the call. A call's quota keeps the terms of
    /// the limit: Redis stores a time, which means the same under the quota of the next call.
    pub(super) by_policy: EffectiveQuota,
    /// The override set at run time, as far as this node knows.
    pub(super) by_override: Option<EffectiveQuota>,
}

/// Attempts before giving up because the stored terms keep changing.
pub(super) const TRIES: usize = 8;

/// Callers with an override that a node remembers.
const OVERRIDES: usize = 16_384;

impl<B: Backend> StoreCore<B> {
    pub(super) fn new(backend: B, settings: &Settings) -> Self {
        Self {
            backend,
            clock: Arc::clone(&settings.clock),
            words: Arc::new(LastWords::new(settings.remembered)),
            unreported: Unreported::default(),
            refunds: Refunds::default(),
            returning: Returning::default(),
            overrides: OverrideCache::new(OVERRIDES, settings.margin),
            nodes: Nodes::new(settings),
            claims: Claims::default(),
            counters: StoreCounters::default(),
            margin: settings.margin,
        }
    }

    /// The random name of this node.
    pub(crate) fn node(&self) -> Name {
        self.nodes.own()
    }

    /// The number of nodes, and one until it is known.
    pub(crate) fn nodes(&self) -> NonZeroU32 {
        self.nodes.assumed()
    }

    /// True if other nodes may not have charged yet what they have admitted to this caller in an
    /// outage.
    pub(super) fn is_returning(&self, caller: &Caller, local: Timestamp) -> bool {
        self.returning.is_any(local)
            && self.nodes().get() > 1
            && self.returning.has(self.backend.slot(&caller.name), local)
    }

    /// This node's time.
    pub(crate) fn local(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn caller(&self, limit: &Arc<Limit>, key: &Key, local: Timestamp) -> Caller {
        let name = limit.caller(key);
        let (by_policy, by_override) = (*limit.quota_for(key), self.overrides.get(name, local));
        Caller { limit: Arc::clone(limit), name, tier: key.tier(), by_policy, by_override }
    }

    /// The caller of a spend, under the quota that came with the call if there is one.
    pub(super) fn caller_of(&self, limit: &Arc<Limit>, spend: &Spend, local: Timestamp) -> Caller {
        let Some(by_policy) = limit.quota_of_call(spend) else {
            return self.caller(limit, &spend.key, local);
        };
        let (limit, name) = (Arc::clone(limit), limit.caller(&spend.key));
        Caller { limit, name, tier: None, by_policy, by_override: None }
    }

    /// Learns from a state under other terms whether the caller has an override. If it has none, the
    /// state is to be converted.
    pub(super) fn learn_override(
        &self,
        caller: &mut Caller,
        stored: &State,
        sent: Timestamp,
    ) -> Result<()> {
        let found = if stored.terms.is_override { Some(stored_quota(stored)?) } else { None };
        if found.is_some() || caller.by_override.is_some() {
            self.overrides.set(caller.name, found, sent);
        }
        caller.by_override = found;
        Ok(())
    }

    /// Learns that an override is gone.
    pub(super) fn forget_override(&self, caller: &mut Caller, sent: Timestamp) {
        self.overrides.set(caller.name, None, sent);
        caller.by_override = None;
    }

    /// Extends the lifetime of an override that still applies.
    pub(super) fn confirm_override(&self, caller: &Caller, sent: Timestamp) {
        if caller.by_override.is_some() {
            self.overrides.set(caller.name, caller.by_override, sent);
        }
    }

    /// Replaces a stored state by its [conversion](Caller::translated). If it has changed meanwhile,
    /// the next reply shows it.
    pub(super) async fn convert_stored(
        &self,
        caller: &Caller,
        stored: &State,
        new: &State,
        now: Timestamp,
    ) -> Result<()> {
        if stored != new && self.exchange(caller.name, Some(*stored), *new, now).await? {
            self.counters.carried_over.add(1);
        }
        Ok(())
    }

    /// Replaces a whole state, and returns whether the old one was still there.
    pub(super) async fn exchange(
        &self,
        name: Name,
        old: Option<State>,
        new: State,
        now: Timestamp,
    ) -> Result<bool> {
        let expires = self.expires(&new, now);
        let exchange = Exchange { name, old, new: Some(new), keeps_base: false, expires };
        self.backend.exchange(&exchange).await
    }

    /// An exchange of words under the same terms, whatever the base.
    pub(super) fn exchange_of_words(
        &self,
        name: Name,
        effective: &EffectiveQuota,
        words: [Word; 2],
        now: Timestamp,
    ) -> Exchange {
        let [old, new] = words.map(|word| effective.state(word));
        let expires = self.expires(&new, now);
        Exchange { name, old: Some(old), new: Some(new), keeps_base: true, expires }
    }

    /// The TTL of a state: until nothing is spent in any tier, nor in its base, so that it means the
    /// same as an absent one. Overrides do not expire.
    fn expires(&self, state: &State, now: Timestamp) -> Option<Duration> {
        if state.terms.is_override {
            return None;
        }
        let idle_after = state.terms.algorithm().ok()?.reset_after(state.word, now)?;
        let base_after = match state.base.map(|base| base.idle_at) {
            None => Duration::ZERO,
            Some(0) => return None,
            Some(millis) => {
                Duration::from_millis(millis).saturating_sub(Duration::from_nanos(now.as_nanos()))
            }
        };
        Some(idle_after.max(base_after) + self.margin)
    }
}

impl Caller {
    /// The quota that applies.
    pub(super) fn effective(&self) -> &EffectiveQuota {
        self.by_override.as_ref().unwrap_or(&self.by_policy)
    }

    /// The word of this caller if Redis does not know it.
    pub(super) async fn fresh<B: Backend>(
        &self,
        effective: &EffectiveQuota,
        backend: &B,
    ) -> Result<Word> {
        Ok(effective.fresh(self.limit.born(backend).await?))
    }
}

impl<B> fmt::Debug for StoreCore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreCore").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under {:?}", self.name, self.limit.name())
    }
}

/// The quota of a stored state, as one of the caller's own.
pub(super) fn stored_quota(stored: &State) -> Result<EffectiveQuota> {
    EffectiveQuota::of(stored.terms, QuotaOwner::Caller).map_err(|why| uncountable(&why))
}

pub(super) fn uncountable(why: &spillgate::Error) -> BackendError {
    BackendError::new(Fault::Nonsense, format!("Redis stores an invalid quota: {why}"))
}

/// The stored terms changed each time.
pub(super) fn unsettled(limit: &Limit) -> BackendError {
    let text = format!(
        "other nodes changed the quota of a caller under limit {:?} {TRIES} times during one call; \
         give all nodes the same policy",
        limit.name()
    );
    BackendError::new(Fault::Unready, text)
}
