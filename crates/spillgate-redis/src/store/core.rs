use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, Word};
use spillgate::{Clock, Timestamp};
use spillgate_policy::Key;
use spillgate_policy::store::Spend;

use super::Settings;
use super::given::Given;
use super::limits::Limit;
use super::nodes::Nodes;
use super::stats::Counters;
use super::unreported::Unreported;
use super::words::Words;
use crate::counted::{Counted, Whose};
use crate::engine::{Engine, EngineError, Exchange, Fault};
use crate::{Name, State};

/// What all of a store's parts share: the engine, and what this node knows.
pub(crate) struct Core<E> {
    pub(super) engine: E,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) words: Arc<Words>,
    pub(super) unreported: Unreported,
    pub(super) given: Given,
    pub(super) nodes: Nodes,
    pub(super) counters: Counters,
    pub(super) margin: Duration,
}

/// A caller under one limit.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(super) limit: Arc<Limit>,
    pub(super) name: Name,
    /// Which tier of the limit it is in.
    pub(super) tier: Option<usize>,
    /// What the policy says it is counted by, or the quota that came with the call. That has
    /// still the terms of the limit: all that the engine has is a time, whatever the quota of
    /// the next call.
    pub(super) own: Counted,
    /// What it was given at run time, as far as this node knows.
    pub(super) given: Option<Counted>,
}

/// How often a question is asked again when terms turn out to be others.
pub(super) const TRIES: usize = 8;

/// Room for so many callers that were given quotas at run time.
const GIVEN: usize = 16_384;

impl<E: Engine> Core<E> {
    pub(super) fn new(engine: E, settings: &Settings) -> Self {
        Self {
            engine,
            clock: Arc::clone(&settings.clock),
            words: Arc::new(Words::new(settings.remembered)),
            unreported: Unreported::default(),
            given: Given::new(GIVEN, settings.margin),
            nodes: Nodes::new(settings),
            counters: Counters::default(),
            margin: settings.margin,
        }
    }

    /// This node's time.
    pub(super) fn local(&self) -> Timestamp {
        self.clock.now()
    }

    /// How many nodes there are, and one until that is known.
    pub(super) fn assumed_nodes(&self) -> NonZeroU32 {
        self.nodes.assumed()
    }

    /// Who a key stands for under a limit.
    pub(super) fn caller(&self, limit: &Arc<Limit>, key: &Key, local: Timestamp) -> Caller {
        let name = limit.caller(key);
        let (own, given) = (*limit.counted(key), self.given.of(name, local));
        Caller { limit: Arc::clone(limit), name, tier: key.tier(), own, given }
    }

    /// Who is charged under a limit, by the quota that came with the call if there is one.
    pub(super) fn charged(&self, limit: &Arc<Limit>, spend: &Spend, local: Timestamp) -> Caller {
        let Some(call) = spend.quota.as_deref() else {
            return self.caller(limit, &spend.key, local);
        };
        let (quota, algorithm) = (call.quota(), call.bucket().into());
        Caller {
            name: limit.caller(&spend.key),
            tier: None,
            own: Counted { quota, algorithm, ..limit.base },
            given: None,
            limit: Arc::clone(limit),
        }
    }

    /// Learns from a state under other terms what a caller is counted by, if it is an
    /// override. Tells if it is not: then the state is to be carried over.
    pub(super) fn learn(
        &self,
        caller: &mut Caller,
        stored: &State,
        sent: Timestamp,
    ) -> Result<(), EngineError> {
        let given = if stored.terms.is_override { Some(counted_by(stored)?) } else { None };
        if given.is_some() || caller.given.is_some() {
            self.given.learn(caller.name, given, sent);
        }
        caller.given = given;
        Ok(())
    }

    /// Learns that what a caller was given is gone.
    pub(super) fn unlearn(&self, caller: &mut Caller, sent: Timestamp) {
        self.given.learn(caller.name, None, sent);
        caller.given = None;
    }

    /// Notes that a caller is still counted by what it was given.
    pub(super) fn confirm(&self, caller: &Caller, sent: Timestamp) {
        if caller.given.is_some() {
            self.given.learn(caller.name, caller.given, sent);
        }
    }

    /// Puts what a state has [become](Caller::translated) in its place. If it has changed
    /// meanwhile, the next answer tells.
    pub(super) async fn bring_over(
        &self,
        caller: &Caller,
        stored: &State,
        new: &State,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if stored != new && self.exchange(caller.name, Some(*stored), *new, now).await? {
            self.counters.carried_over.add(1);
        }
        Ok(())
    }

    /// Puts a whole state of the same caller in place of another, and tells whether it did.
    pub(super) async fn exchange(
        &self,
        name: Name,
        old: Option<State>,
        new: State,
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        let expires = self.expires(&new, now);
        let exchange = Exchange { name, old, new: Some(new), keeps_base: false, expires };
        self.engine.exchange(&exchange).await
    }

    /// What puts a word in place of another under the same terms, whatever the caller had spent
    /// before it got a quota of its own.
    pub(super) fn exchange_of_words(
        &self,
        name: Name,
        counted: &Counted,
        words: [Word; 2],
        now: Timestamp,
    ) -> Exchange {
        let [old, new] = words.map(|word| counted.state(word));
        let expires = self.expires(&new, now);
        Exchange { name, old: Some(old), new: Some(new), keeps_base: true, expires }
    }

    /// When a state may be forgotten: once nothing is spent in any tier, so that it means the
    /// same as none, nor in the base that it has. Overrides are kept.
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
    /// What it is counted by.
    pub(super) fn counted(&self) -> &Counted {
        self.given.as_ref().unwrap_or(&self.own)
    }

    /// The word of this caller if the engine does not know it.
    pub(super) async fn fresh<E: Engine>(
        &self,
        counted: &Counted,
        engine: &E,
    ) -> Result<Word, EngineError> {
        Ok(counted.fresh(self.limit.born(engine).await?))
    }
}

impl<E> fmt::Debug for Core<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under {:?}", self.name, self.limit.name())
    }
}

/// What a stored state is counted by, if that is a quota of the caller's own.
pub(super) fn counted_by(stored: &State) -> Result<Counted, EngineError> {
    Counted::of(stored.terms, Whose::Caller).map_err(|why| uncountable(&why))
}

/// Why a stored quota cannot be counted by.
pub(super) fn uncountable(why: &spillgate::Error) -> EngineError {
    EngineError::new(Fault::Nonsense, format!("it keeps a quota that cannot be: {why}"))
}

/// Terms were others each time.
pub(super) fn unsettled(limit: &Limit) -> EngineError {
    EngineError::new(
        Fault::Unready,
        format!(
            "the quota of a caller under limit {:?} was changed by other nodes {TRIES} times \
             while it was asked for; give all nodes the same policy",
            limit.name()
        ),
    )
}
