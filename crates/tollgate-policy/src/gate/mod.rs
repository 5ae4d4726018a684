//! The whole decision about a request.

mod explain;
mod limits;
mod lists;
mod manage;
mod passage;
mod saved;
mod settle;
mod several;

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use arc_swap::{ArcSwapOption, Guard};

pub use self::explain::{Explanation, LimitExplanation, StateExplanation};
pub use self::limits::LimitSummary;
use self::lists::Edits;
pub use self::manage::Changes;
pub use self::passage::{Answer, LimitState, Passage};
pub use self::saved::SavedState;
pub use self::several::LimitCheck;
use crate::lists::{ListKind, Lists};
use crate::policy::Rule;
use crate::store::{Charge, LimitSpec, Memory, Store};
use crate::{Error, Mode, Policy, Request};

/// Decides about requests: a policy, and a store that keeps what callers have spent.
///
/// [`check`](Self::check) is what middleware calls. Everything else can be changed while
/// requests are being decided: the [policy](Self::replace), the [lists](Self::list),
/// [overrides](Self::set_override).
///
/// ```
/// use tollgate_policy::{Gate, Limit, Policy, Request};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::builder().limit(Limit::new("api", "1/s burst 2")).build()?;
/// let gate = Gate::new(policy)?;
///
/// let (parts, ()) = http::Request::get("/users/7").body(())?.into_parts();
/// let request = Request::from_parts(&parts, Some([203, 0, 113, 7].into()));
/// assert!(gate.check(&request).await?.is_allowed());
/// assert!(gate.check(&request).await?.is_allowed());
/// assert_eq!(gate.check(&request).await?.denied_by(), Some("api"));
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
}

/// What requests are decided by.
struct Active<L> {
    policy: Arc<Policy>,
    lists: Arc<Lists>,
    limits: Arc<L>,
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
        let limits = store.open(&specs(&policy))?;
        let lists = Arc::new(policy.lists.clone());
        let active = Active { policy: Arc::new(policy), lists, limits: Arc::new(limits) };
        Ok(Self { store, active: ArcSwapOption::from_pointee(active), changing: Mutex::default() })
    }

    /// Decides about a request, and spends what it costs if it passes.
    ///
    /// # Errors
    ///
    /// If the store could not answer. One in memory always does.
    pub async fn check(&self, request: &Request<'_>) -> Result<Passage, Error> {
        let active = self.active();
        let Active { policy, lists, limits } = &**active;
        let sender = policy.identifier.sender(request);
        let passage = |answer| Passage::new(Arc::clone(policy), &sender.caller, answer);
        match lists.find(request, &sender, &policy.identifier) {
            Some(ListKind::Block) => return Ok(passage(Answer::Blocked)),
            Some(ListKind::Allow) => return Ok(passage(Answer::Allowed)),
            None => {}
        }
        let mut charges = policy.charges(request, &sender);
        let enforces = |charge: &Charge| policy.rules[charge.limit].mode == Mode::Enforce;
        let enforcing = charges.partition_point(enforces);
        let (enforced, shadow) = charges.split_at_mut(enforcing);
        if !enforced.is_empty() {
            self.store.decide(limits, enforced).await?;
        }
        let denied = enforced.iter().any(Charge::is_denied);
        let mut passage = passage(if denied { Answer::Denied } else { Answer::Allowed });
        if !denied {
            for charge in shadow {
                // A limit in shadow never changes the answer, also if its store fails.
                let decided = self.store.decide(limits, std::slice::from_mut(charge)).await;
                passage.shadow_error = decided.err().or(passage.shadow_error);
            }
        }
        passage.charges = charges;
        Ok(passage)
    }

    /// [Decides](Self::check) about a request at once, if the store can: one in memory
    /// always does.
    pub fn check_now(&self, request: &Request<'_>) -> Option<Result<Passage, Error>> {
        at_once(self.check(request))
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.active().policy)
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    fn active(&self) -> ActiveGuard<S::Limits> {
        loop {
            if let Some(active) = ActiveGuard::of(self.active.load()) {
                return active;
            }
            // Whoever replaces the policy holds it until the new one is there.
            drop(self.lock());
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

/// The limits of a policy, as a store needs to know them.
fn specs(policy: &Policy) -> Vec<LimitSpec> {
    policy.rules.iter().map(Rule::spec).collect()
}

impl<S: Store> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policy", &self.active().policy).finish_non_exhaustive()
    }
}
