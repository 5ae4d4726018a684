use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::gate::limit_state::nearest;
use crate::gate::{LimitState, Outcome};
use crate::store::{Outage, Spend};
use crate::{Error, Mode, Policy};

/// What was decided about the descriptors of a call, with the state of every limit that they
/// met.
#[must_use]
pub struct DescriptorOutcome<'g> {
    pub(in crate::gate) outcome: Outcome<'g>,
    /// For each spend, the place of its descriptor.
    owners: SmallVec<[usize; 1]>,
    /// What is known of each descriptor.
    pub(super) standings: SmallVec<[Standing; 1]>,
    pub(super) knows_domain: bool,
}

/// What is known of one descriptor.
pub(super) struct Standing {
    kind: DescriptorKind,
    /// The name that answers show for the node at which it ends.
    name: Option<Arc<str>>,
    /// Where its spends are, once they are decided.
    spends: Range<usize>,
}

/// What a descriptor is to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DescriptorKind {
    /// Nothing: it meets no limit.
    Unknown,
    /// A node of a tree that has no limit.
    Known,
    /// A node of a tree that limits nothing.
    Unlimited,
    /// Another descriptor of the call meets a limit that takes the place of this one's.
    Replaced,
    /// It meets limits.
    Limited,
}

/// What was decided about one descriptor.
#[derive(Clone, Copy)]
pub struct DescriptorState<'p> {
    outcome: &'p Outcome<'p>,
    standing: &'p Standing,
}

impl Standing {
    pub(super) fn new(kind: DescriptorKind, name: Option<Arc<str>>) -> Self {
        Self { kind, name, spends: 0..0 }
    }
}

impl<'g> DescriptorOutcome<'g> {
    pub(in crate::gate) fn new(policy: &'g Arc<Policy>) -> Self {
        Self {
            outcome: Outcome::new(policy),
            owners: SmallVec::new(),
            standings: SmallVec::new(),
            knows_domain: false,
        }
    }

    /// Adds a spend of a descriptor.
    pub(super) fn add(&mut self, owner: usize, spend: Spend) {
        self.owners.push(owner);
        self.outcome.spends.push(spend);
    }

    /// What is planned to be spent, each with the place of its descriptor.
    pub(super) fn planned(&self) -> impl Iterator<Item = (usize, &Spend)> {
        self.owners.iter().copied().zip(&self.outcome.spends)
    }

    /// True if the limit of a spend is open while its store is unreachable.
    pub(super) fn is_open(&self, spend: &Spend) -> bool {
        self.outcome.policy().rules[spend.limit].spec.outage == Outage::Open
    }

    /// Puts the spends in the order in which a store decides about them.
    pub(super) fn sort_by_turn(&mut self, policy: &Policy) {
        self.sort_by(|_, spend| policy.rules[spend.limit].turn());
    }

    /// Puts the spends in the order of the descriptors, and notes where those of each are.
    pub(super) fn sort(&mut self) {
        self.sort_by(|owner, _| owner);
        let mut start = 0;
        for owned in self.owners.chunk_by(|one, next| one == next) {
            let spends = start..start + owned.len();
            start = spends.end;
            if let Some(standing) = owned.first().and_then(|owner| self.standings.get_mut(*owner)) {
                standing.spends = spends;
            }
        }
    }

    fn sort_by<T: Ord>(&mut self, key: impl Fn(usize, &Spend) -> T) {
        let spends = &mut self.outcome.spends;
        if spends.len() > 1 {
            let mut all: Vec<_> = self.owners.drain(..).zip(spends.drain(..)).collect();
            all.sort_by_key(|(owner, spend)| key(*owner, spend));
            (self.owners, *spends) = all.into_iter().unzip();
        }
    }

    /// Takes the outcome out of the gate, to keep it.
    pub fn take(&mut self) -> DescriptorOutcome<'static> {
        DescriptorOutcome {
            outcome: self.outcome.take(),
            owners: std::mem::take(&mut self.owners),
            standings: std::mem::take(&mut self.standings),
            knows_domain: self.knows_domain,
        }
    }

    /// True if the call may go ahead.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.outcome.is_allowed()
    }

    /// True if the policy has limits for descriptors of this domain.
    #[must_use]
    pub fn knows_domain(&self) -> bool {
        self.knows_domain
    }

    /// What was decided about each descriptor, in the order of the call.
    pub fn descriptors(&self) -> impl ExactSizeIterator<Item = DescriptorState<'_>> {
        let outcome = &self.outcome;
        self.standings.iter().map(move |standing| DescriptorState { outcome, standing })
    }

    /// All limits of the call, as those of a request.
    pub fn outcome(&self) -> &Outcome<'g> {
        &self.outcome
    }

    /// The store's error about limits that do not enforce. It changes nothing for the call.
    #[must_use]
    pub fn shadow_error(&self) -> Option<&Error> {
        self.outcome.shadow_error()
    }
}

impl<'p> DescriptorState<'p> {
    /// What the descriptor is to the policy.
    #[must_use]
    pub fn kind(&self) -> DescriptorKind {
        self.standing.kind
    }

    /// The name that a tree gives to the node at which the descriptor ends.
    #[must_use]
    pub fn name(&self) -> Option<&'p str> {
        self.standing.name.as_deref()
    }

    /// The limits that the descriptor met, as far as they are decided: without those in shadow mode
    /// if the call was denied, and without those that are open in an outage.
    pub fn limits(&self) -> impl Iterator<Item = LimitState<'p>> + Clone + use<'p> {
        let outcome = self.outcome;
        let spends = &outcome.spends[self.standing.spends.clone()];
        spends.iter().filter_map(|spend| outcome.state(spend))
    }

    /// Of the enforced limits, the one nearest to denying: see [`Outcome::nearest`].
    #[must_use]
    pub fn nearest(&self) -> Option<LimitState<'p>> {
        nearest(self.limits().filter(|limit| limit.mode() == Mode::Enforce))
    }

    /// True if a limit that enforces denied the descriptor, and so the whole call.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.limits().any(|limit| limit.mode() == Mode::Enforce && limit.decision().is_denied())
    }

    /// The limits that would have denied the descriptor, and do not enforce.
    pub fn exceeded(&self) -> impl Iterator<Item = LimitState<'p>> + use<'p> {
        self.limits().filter(|limit| limit.mode() == Mode::Shadow && limit.decision().is_denied())
    }

    /// True if the descriptor exceeds a limit in quota mode, whether or not the call is denied.
    #[must_use]
    pub fn exceeds_quota(&self) -> bool {
        self.limits().any(|limit| limit.is_quota_mode() && limit.decision().is_denied())
    }
}

debug_fields!(self: DescriptorOutcome<'_> {
    is_allowed: self.is_allowed(),
    descriptors: self.descriptors().collect::<Vec<_>>(),
});

debug_fields!(self: DescriptorState<'_> {
    kind: self.kind(),
    limits: self.limits().collect::<Vec<_>>(),
});
