//! What a call is charged for its descriptors.

use std::sync::Arc;

use smallvec::SmallVec;

use super::outcome::{DescriptorKind, DescriptorOutcome, Standing};
use crate::descriptor::{DomainLimits, Limited, Met, Reached};
use crate::policy::{Cost, Rule};
use crate::store::{CallQuota, Spend};
use crate::{Descriptor, Error, Key, Policy};

/// What is to be given back, each with the place of its descriptor.
pub(super) type Refunds = Vec<(usize, Spend)>;

impl<'g> DescriptorOutcome<'g> {
    /// An outcome about which nothing is decided, with all that is to be spent, and what is to
    /// be given back.
    pub(super) fn of(
        policy: &'g Arc<Policy>,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Result<(Self, Refunds), Error> {
        let limits = policy.descriptors.domain(domain);
        let mut charged = Charged {
            policy,
            domain,
            outcome: Self::new(policy, limits.is_some()),
            refunds: Vec::new(),
        };
        let nodes: SmallVec<[Option<&Reached>; 4]> =
            descriptors.iter().map(|descriptor| node(limits, descriptor)).collect();
        for (descriptor, node) in descriptors.iter().zip(&nodes) {
            let standing = match limits {
                _ if descriptor.quota.is_some() => charged.by_call_quota(descriptor)?,
                Some(limits) => charged.by_limits(limits, descriptor, *node, &nodes),
                None => Standing::new(DescriptorKind::Unknown, None),
            };
            charged.outcome.standings.push(standing);
        }
        let Charged { mut outcome, refunds, .. } = charged;
        outcome.sort_by_turn(policy);
        Ok((outcome, refunds))
    }
}

/// Where a descriptor ends in the tree, if that decides about it.
fn node<'l>(limits: Option<&'l DomainLimits>, descriptor: &Descriptor<'_>) -> Option<&'l Reached> {
    limits.filter(|_| descriptor.quota.is_none())?.reach(descriptor.entries)
}

/// What a call has been charged so far.
struct Charged<'g, 'c> {
    policy: &'g Arc<Policy>,
    domain: &'c str,
    outcome: DescriptorOutcome<'g>,
    refunds: Refunds,
}

impl Charged<'_, '_> {
    /// Spends a descriptor under every limit that it meets.
    fn by_limits(
        &mut self,
        limits: &DomainLimits,
        descriptor: &Descriptor<'_>,
        node: Option<&Reached>,
        nodes: &[Option<&Reached>],
    ) -> Standing {
        let mut kind = DescriptorKind::Unknown;
        let met = node.and_then(|node| node.met.as_ref());
        match met {
            None if node.is_some() => kind = DescriptorKind::Known,
            None => {}
            Some(met) => match met.limited {
                Limited::Not => kind = DescriptorKind::Unlimited,
                Limited::By(_) if is_replaced(met, nodes) => kind = DescriptorKind::Replaced,
                Limited::By(place) => {
                    kind = DescriptorKind::Limited;
                    self.add(place, descriptor, None);
                }
            },
        }
        limits.for_each(descriptor.entries, &mut |place| {
            let scope = self.policy.rules[place].scope.as_ref();
            if scope.is_some_and(|scope| scope.is_for(descriptor.entries)) {
                kind = DescriptorKind::Limited;
                self.add(place, descriptor, None);
            }
        });
        Standing::new(kind, met.and_then(|met| met.name.clone()))
    }

    /// Spends a descriptor under the quota that came with it.
    fn by_call_quota(&mut self, descriptor: &Descriptor<'_>) -> Result<Standing, Error> {
        let quota = descriptor.quota.map(CallQuota::new).transpose()?;
        let place = self.policy.descriptors.call_quota.ok_or_else(|| {
            Error::unknown(
                "the policy keeps no room for quotas that come with calls; build it with \
                 `call_quotas`",
            )
        })?;
        self.add(place, descriptor, quota);
        Ok(Standing::new(DescriptorKind::Limited, None))
    }

    fn add(&mut self, place: usize, descriptor: &Descriptor<'_>, quota: Option<CallQuota>) {
        let rule = &self.policy.rules[place];
        let spend = Spend::new(place, Key::global(), cost(rule, descriptor));
        let spend = spend.in_mode(rule.mode);
        let mut spend = match quota {
            Some(quota) => spend.with_quota(quota),
            None => spend,
        };
        rule.write_descriptor_key(&mut spend.key, self.domain, descriptor.entries);
        let owner = self.outcome.standings.len();
        if descriptor.gives_back {
            self.refunds.push((owner, spend));
        } else {
            self.outcome.add(owner, spend);
        }
    }
}

/// True if another descriptor of the call meets a limit that takes the place of this one.
fn is_replaced(met: &Met, nodes: &[Option<&Reached>]) -> bool {
    let Some(name) = &met.name else { return false };
    let others = nodes.iter().flatten().filter_map(|node| node.met.as_ref());
    others.flat_map(|other| &other.replaces).any(|replaced| **replaced == **name)
}

fn cost(rule: &Rule, descriptor: &Descriptor<'_>) -> u64 {
    match rule.cost {
        // More than there can ever be.
        _ if rule.is_closed() && descriptor.hits > 0 => u64::MAX,
        Cost::Constant(cost) => cost.saturating_mul(descriptor.hits),
        // Which limits for descriptors do not have.
        Cost::Header(..) | Cost::Closure(_) => descriptor.hits,
    }
}
