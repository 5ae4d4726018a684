//! How a gate decides any kind of question: plan the spends, let the store decide, follow up,
//! finish.

use std::future::ready;
use std::sync::Arc;

use smallvec::SmallVec;

use super::adaptive::{Asked, Asking};
use super::bans::BansAt;
use super::descriptors::{DescriptorOutcome, Refunds};
use super::{Gate, Outcome};
use crate::policy::identity::Sender;
use crate::policy::lists::Lists;
use crate::store::Store;
use crate::{Error, Policy};

/// The steps of a decision that differ between kinds of questions. An outcome is filled in where
/// it is: moving it would cost more than deciding.
pub trait Ask: Sync {
    /// What is decided. It may borrow from the gate.
    type Outcome<'g>: Decided<'g, Kept = Self::Outcome<'static>>;

    /// True if [`follow_up`](Self::follow_up) does something.
    const FOLLOWS_UP: bool = false;

    /// Writes the spends of the question into the outcome.
    ///
    /// # Errors
    ///
    /// If the question does not fit the policy.
    fn plan<'q>(
        &'q self,
        in_force: InForce<'_>,
        outcome: &mut Self::Outcome<'_>,
    ) -> Result<Plan<'q>, Error>;

    /// What adaptive limits look at.
    fn asked(&self, _plan: &Plan<'_>, asking: Asking<'_>) -> Asked {
        Asked::by_name(asking.policy)
    }

    /// True if the store has to be asked again after it has decided.
    fn asks_again(_plan: &Plan<'_>, _outcome: &Self::Outcome<'_>) -> bool {
        false
    }

    /// What is left to do with the store after it has decided.
    // One lifetime for the plan and the outcome: with two, Rust 1.85 cannot find out that a future
    // that waits for this one is `Send` (rust-lang/rust#100013).
    fn follow_up<'g, S: Store>(
        _gate: &Gate<S>,
        _limits: &S::Limits,
        _plan: &mut Plan<'g>,
        _outcome: &mut Self::Outcome<'g>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }

    /// Completes the outcome.
    #[inline]
    fn finish(_plan: Plan<'_>, _outcome: &mut Self::Outcome<'_>) {}
}

/// The outcome of a question.
pub trait Decided<'g>: Send {
    /// The same, borrowed from nothing.
    type Kept;

    /// An outcome about which nothing is decided.
    fn begin(in_force: InForce<'g>) -> Self;

    /// All limits of the outcome together.
    fn whole(&self) -> &Outcome<'g>;

    /// The same, to be filled in.
    fn whole_mut(&mut self) -> &mut Outcome<'g>;

    /// Takes the outcome out of the gate, to keep it.
    fn keep(&mut self) -> Self::Kept;
}

impl<'g> Decided<'g> for Outcome<'g> {
    type Kept = Outcome<'static>;

    #[inline]
    fn begin(in_force: InForce<'g>) -> Self {
        Self::new(in_force.policy)
    }

    #[inline]
    fn whole(&self) -> &Outcome<'g> {
        self
    }

    #[inline]
    fn whole_mut(&mut self) -> &mut Outcome<'g> {
        self
    }

    fn keep(&mut self) -> Outcome<'static> {
        self.take()
    }
}

impl<'g> Decided<'g> for DescriptorOutcome<'g> {
    type Kept = DescriptorOutcome<'static>;

    fn begin(in_force: InForce<'g>) -> Self {
        Self::new(in_force.policy)
    }

    fn whole(&self) -> &Outcome<'g> {
        &self.outcome
    }

    fn whole_mut(&mut self) -> &mut Outcome<'g> {
        &mut self.outcome
    }

    fn keep(&mut self) -> DescriptorOutcome<'static> {
        self.take()
    }
}

/// The policy and lists in force.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "nobody outside sees one")]
pub struct InForce<'g> {
    pub(super) policy: &'g Arc<Policy>,
    pub(super) lists: &'g Lists,
    /// `None` if nobody is banned.
    pub(super) bans: Option<BansAt<'g>>,
}

/// What a question keeps from planning its spends until it is finished.
#[expect(missing_debug_implementations, reason = "nobody outside sees one")]
pub struct Plan<'q> {
    /// False if the outcome is decided without the store.
    pub(super) asks_store: bool,
    pub(super) rest: Rest<'q>,
}

pub(super) enum Rest<'q> {
    Nothing,
    /// Who sent the request.
    Sender(Sender<'q>),
    /// For each spend, the place of its check.
    Order(SmallVec<[usize; 4]>),
    /// What is given back if the call is allowed.
    Refunds(Refunds),
}

impl<'q> From<Rest<'q>> for Plan<'q> {
    #[inline]
    fn from(rest: Rest<'q>) -> Self {
        Self { asks_store: true, rest }
    }
}
