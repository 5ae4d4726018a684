use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::algorithm::Word;
use spillgate::{Clock, Timestamp};
use spillgate_policy::Key;
use spillgate_policy::store::Spend;

use super::Settings;
use super::account::{TRIES, Turns};
use super::acquired::Claims;
use super::last_words::LastWords;
use super::limits::Limit;
use super::nodes::Nodes;
use super::overrides::OverrideCache;
use super::refunds::Refunds;
use super::returning::Returning;
use super::unreported::Unreported;
use crate::backend::{Backend, BackendError, Exchange, Fault, Result};
use crate::effective_quota::EffectiveQuota;
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
    pub(super) turns: Turns,
    pub(super) margin: Duration,
}

/// A caller under one limit.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(super) limit: Arc<Limit>,
    pub(super) name: Name,
    /// The quota of the policy, or the one that came with the call. A call's quota keeps the terms of
    /// the limit: Redis stores a time, which means the same under the quota of the next call.
    pub(super) by_policy: EffectiveQuota,
    /// The override set at run time, as far as this node knows.
    pub(super) by_override: Option<EffectiveQuota>,
}

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
            turns: Turns::default(),
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
        Caller { limit: Arc::clone(limit), name, by_policy, by_override }
    }

    /// The caller of a spend, under the quota that came with the call if there is one.
    pub(super) fn caller_of(&self, limit: &Arc<Limit>, spend: &Spend, local: Timestamp) -> Caller {
        let Some(by_policy) = limit.quota_of_call(spend) else {
            return self.caller(limit, &spend.key, local);
        };
        let (limit, name) = (Arc::clone(limit), limit.caller(&spend.key));
        Caller { limit, name, by_policy, by_override: None }
    }

    /// Learns from a state whether the caller has an override.
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

    /// An exchange of words under the same terms.
    pub(super) fn exchange_of_words(
        &self,
        name: Name,
        effective: &EffectiveQuota,
        words: [Word; 2],
        now: Timestamp,
    ) -> Exchange {
        let [old, new] = words.map(|word| effective.state(word));
        self.exchange_of(name, Some(&old), &new, now)
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

/// The quota of a stored state.
pub(super) fn stored_quota(stored: &State) -> Result<EffectiveQuota> {
    EffectiveQuota::of(stored.terms).map_err(|why| uncountable(&why))
}

pub(super) fn uncountable(why: &spillgate::Error) -> BackendError {
    BackendError::new(Fault::Nonsense, format!("Redis stores an invalid quota: {why}"))
}

/// The stored state changed each time.
pub(super) fn unsettled(limit: &Limit) -> BackendError {
    let text = format!(
        "others changed what a caller has spent under limit {:?} {TRIES} times during one call: too \
         many calls of one caller at the same time",
        limit.name()
    );
    BackendError::new(Fault::Unready, text)
}
