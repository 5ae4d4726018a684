//! The whole decision about a request.

mod adaptive;
mod admin;
mod ask;
mod bans;
mod by_store;
mod changes;
mod counted_key;
mod decide;
mod descriptors;
mod edits;
mod explain;
mod follow;
mod limit_state;
mod list_edits;
mod offences;
mod outcome;
mod override_edits;
mod permits;
mod question;
mod rare;
mod reserve;
mod saved_state;
mod settle;
mod summary;

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use arc_swap::{ArcSwapOption, Guard};

use self::adaptive::LiveLimits;
pub use self::adaptive::{
    AdaptiveExplanation, AdaptiveState, CallReport, PriorityExplanation, RequestPermits,
};
pub use self::ask::Decided;
use self::bans::Bans;
pub use self::bans::{Ban, BanExplanation, BanUsage};
pub use self::changes::{
    AffectedLimit, Changes, Effect, EntryChange, EntryChangeKind, LimitChange, ListChange,
    PolicyChange,
};
pub use self::counted_key::CountedKey;
pub use self::descriptors::{
    DescriptorExplanation, DescriptorKind, DescriptorLimitExplanation, DescriptorOutcome,
    DescriptorState, DescriptorsExplanation,
};
use self::edits::Edits;
pub use self::edits::Origin;
pub use self::explain::{Explanation, LimitExplanation, StateExplanation};
pub use self::limit_state::LimitState;
pub use self::list_edits::ListEntry;
use self::offences::Offences;
pub use self::offences::StartedBans;
pub(crate) use self::outcome::Spends;
pub use self::outcome::{Answer, Outcome};
pub use self::override_edits::OverrideEntry;
pub use self::permits::Acquired;
pub use self::question::{Descriptors, LimitCheck, Limits, Question, Subject, Throttle};
pub use self::reserve::Receipt;
pub use self::saved_state::SavedState;
pub use self::settle::{SettledResponse, Uncharged};
pub use self::summary::LimitSummary;
use crate::policy::lists::Lists;
use crate::store::{Memory, Store};
use crate::{Error, Key, Policy};

/// Decides about requests: a policy, and a store that keeps what callers have spent.
///
/// [`decide`](Self::decide) is what middleware calls. Everything else can be changed while
/// questions are being decided: the [policy](Self::replace), the [lists](Self::list),
/// [overrides](Self::set_override).
///
/// ```
/// use spillgate_policy::{Gate, Limit, Policy, RequestView};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::builder().limit(Limit::new("api", "1/s burst 2")).build()?;
/// let gate = Gate::new(policy)?;
///
/// let (parts, ()) = http::Request::get("/users/7").body(())?.into_parts();
/// let request = RequestView::from_parts(&parts, Some([203, 0, 113, 7].into()));
/// assert!(gate.decide(&request).await?.is_allowed());
/// assert!(gate.decide(&request).await?.is_allowed());
/// assert_eq!(gate.decide(&request).await?.denied_by(), Some("api"));
/// # Ok(())
/// # }
/// ```
///
/// # Several limits
///
/// A request meets every limit that matches it, and spends on all of them or, if any
/// denies, on none. Limits in shadow spend only if the request passes, and never change
/// the answer.
pub struct Gate<S: Store = Memory> {
    store: S,
    /// `None` for the moment in which a new policy takes over.
    active: ArcSwapOption<Active<S::Limits>>,
    /// Held while the policy or the lists change.
    changing: Mutex<Edits>,
    bans: Bans,
    offences: Offences,
}

/// What requests are decided by.
struct Active<L> {
    policy: Arc<Policy>,
    lists: Arc<Lists>,
    limits: Arc<L>,
    /// Adaptive limits: not the store's, since they are of this process.
    adaptive: Arc<LiveLimits>,
}

impl<L> Clone for Active<L> {
    fn clone(&self) -> Self {
        Self {
            policy: Arc::clone(&self.policy),
            lists: Arc::clone(&self.lists),
            limits: Arc::clone(&self.limits),
            adaptive: Arc::clone(&self.adaptive),
        }
    }
}

impl Gate {
    /// A gate with its state in memory.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for the capacities of the limits.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        Self::with_store(policy, Memory::default())
    }
}

impl<S: Store> Gate<S> {
    /// A gate with its state in a store.
    ///
    /// # Errors
    ///
    /// If the store cannot keep the limits.
    pub fn with_store(policy: Policy, store: S) -> Result<Self, Error> {
        let mut edits = Edits::default();
        let limits = store.open(&edits.specs(&policy, &store))?;
        let lists = Arc::clone(&policy.lists);
        let adaptive = Arc::new(LiveLimits::open(&policy, store.now())?);
        let (policy, limits) = (Arc::new(policy), Arc::new(limits));
        let active = Active { policy, lists, limits, adaptive };
        Ok(Self {
            store,
            active: ArcSwapOption::from_pointee(active),
            changing: Mutex::new(edits),
            bans: Bans::default(),
            offences: Offences::default(),
        })
    }

    /// Starts to load what [`Throttle`] questions with these keys will read. With more keys than
    /// the processor's caches hold, a pipeline then waits for memory once and not once per call.
    pub fn prefetch<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        let active = self.active();
        if let Some(place) = active.policy.throttle {
            let keys = keys.into_iter().map(Key::from_bytes);
            self.store.prefetch(&active.limits, place, keys);
        }
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.active().policy)
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    #[inline]
    fn active(&self) -> ActiveGuard<S::Limits> {
        match ActiveGuard::of(self.active.load()) {
            Some(active) => active,
            None => self.active_later(),
        }
    }

    #[cold]
    fn active_later(&self) -> ActiveGuard<S::Limits> {
        loop {
            // Whoever replaces the policy holds it until the new one is there.
            drop(self.lock());
            if let Some(active) = ActiveGuard::of(self.active.load()) {
                return active;
            }
        }
    }
}

/// What is in force, for as long as it is looked at.
struct ActiveGuard<L>(Guard<Option<Arc<Active<L>>>>);

impl<L> ActiveGuard<L> {
    fn of(guard: Guard<Option<Arc<Active<L>>>>) -> Option<Self> {
        guard.is_some().then_some(Self(guard))
    }
}

impl<L> Deref for ActiveGuard<L> {
    type Target = Arc<Active<L>>;

    fn deref(&self) -> &Arc<Active<L>> {
        match &*self.0 {
            Some(active) => active,
            None => unreachable!("only what is there is guarded"),
        }
    }
}

/// The output of a future that is ready at once.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl<S: Store> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policy", &self.active().policy).finish_non_exhaustive()
    }
}
