//! The whole decision about a request.

mod descriptor;
mod explain;
mod limit_state;
mod limits;
mod lists;
mod manage;
mod outcome;
mod receipt;
mod saved;
mod settle;
mod several;

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use arc_swap::{ArcSwapOption, Guard};

pub use self::descriptor::{DescriptorKind, DescriptorOutcome, DescriptorState};
pub use self::explain::{Explanation, LimitExplanation, StateExplanation};
pub use self::limit_state::LimitState;
pub use self::limits::LimitSummary;
use self::lists::Edits;
pub use self::manage::Changes;
pub(crate) use self::outcome::Spends;
pub use self::outcome::{Answer, Outcome};
pub use self::receipt::Receipt;
pub use self::saved::SavedState;
pub use self::settle::Uncharged;
pub use self::several::LimitCheck;
use crate::identity::Sender;
use crate::lists::{ListKind, Lists};
use crate::store::{LimitSpec, Memory, Store};
use crate::{Error, Policy, Request};

/// Decides about requests: a policy, and a store that keeps what callers have spent.
///
/// [`check`](Self::check) is what middleware calls. Everything else can be changed while
/// requests are being decided: the [policy](Self::replace), the [lists](Self::list),
/// [overrides](Self::set_override).
///
/// ```
/// use spillgate_policy::{Gate, Limit, Policy, Request};
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
    pub async fn check(&self, request: &Request<'_>) -> Result<Outcome<'static>, Error> {
        let active = self.active();
        let sender = active.policy.identifier.sender(request);
        let mut outcome = Outcome::new(&active.policy);
        if active.spend(request, &sender, &mut outcome) {
            self.decide(&active.limits, &mut outcome).await?;
        }
        outcome.remember_refused(&sender);
        Ok(outcome.take())
    }

    /// [Decides](Self::check) about a request at once, if the store can: one in memory
    /// always does. If it cannot, nothing has happened.
    pub fn check_now(&self, request: &Request<'_>) -> Option<Result<Outcome<'static>, Error>> {
        self.check_now_and(request, |checked| checked.map(Outcome::take))
    }

    /// [Decides at once](Self::check_now), and looks at what was decided while the policy
    /// is held. That saves counting references to it, which all threads would count in one
    /// place. `look` must not [replace](Self::replace) the policy: that would wait for it.
    #[inline]
    pub fn check_now_and<T>(
        &self,
        request: &Request<'_>,
        look: impl FnOnce(Result<&mut Outcome<'_>, Error>) -> T,
    ) -> Option<T> {
        let active = self.active();
        let sender = active.policy.identifier.sender(request);
        let mut outcome = Outcome::new(&active.policy);
        let decided = if active.spend(request, &sender, &mut outcome) {
            let decided = self.store.decide_now(&active.limits, &mut outcome.spends)?;
            outcome.conclude(decided)
        } else {
            Ok(())
        };
        outcome.remember_refused(&sender);
        Some(look(decided.map(|()| &mut outcome)))
    }

    /// Has the store decide about the spends of an outcome. It is filled in where it is:
    /// moving it would cost more than deciding.
    #[inline]
    async fn decide(&self, limits: &S::Limits, outcome: &mut Outcome<'_>) -> Result<(), Error> {
        let decided = self.store.decide(limits, &mut outcome.spends).await;
        outcome.conclude(decided)
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

impl<L> Active<L> {
    /// Writes down what a request is to be charged, unless a list decides about it. Tells
    /// whether the store has to.
    #[inline]
    fn spend(&self, request: &Request<'_>, sender: &Sender<'_>, outcome: &mut Outcome<'_>) -> bool {
        match self.lists.find(request, sender, &self.policy.identifier) {
            Some(ListKind::Block) => outcome.answer = Answer::Blocked,
            Some(ListKind::Allow) => outcome.answer = Answer::Allowed,
            None => {
                if self.policy.spend(request, sender, &mut outcome.spends) {
                    return true;
                }
                outcome.answer = Answer::HostRequired;
            }
        }
        false
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
    policy.rules.iter().map(|rule| LimitSpec::clone(&rule.spec)).collect()
}

impl<S: Store> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policy", &self.active().policy).finish_non_exhaustive()
    }
}
