//! What a call is charged for its descriptors.

use smallvec::SmallVec;

use super::outcome::{DescriptorKind, DescriptorOutcome, Standing};
use crate::envoy::{DomainLimits, Limited, Met, Reached};
use crate::policy::{Cost, Rule};
use crate::store::{CallQuota, Spend};
use crate::{Descriptor, Error, Key, Policy};

/// What is to be given back, each with the place of its descriptor.
pub(in crate::gate) type Refunds = Vec<(usize, Spend)>;

impl DescriptorOutcome<'_> {
    /// Adds what the descriptors spend, and returns what is to be given back.
    pub(in crate::gate) fn plan(
        &mut self,
        policy: &Policy,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Result<Refunds, Error> {
        let limits = policy.descriptors.domain(domain);
        self.knows_domain = limits.is_some();
        let mut planned = Planned { policy, domain, outcome: self, refunds: Refunds::new() };
        let nodes: SmallVec<[Option<&Reached>; 4]> =
            descriptors.iter().map(|descriptor| node(limits, descriptor)).collect();
        for (descriptor, node) in descriptors.iter().zip(&nodes) {
            let standing = match limits {
                _ if descriptor.quota.is_some() => planned.by_call_quota(descriptor)?,
                Some(limits) => planned.by_limits(limits, descriptor, *node, &nodes),
                None => Standing::new(DescriptorKind::Unknown, None),
            };
            planned.outcome.standings.push(standing);
        }
        let refunds = planned.refunds;
        self.sort_by_turn(policy);
        Ok(refunds)
    }
}

/// Where a descriptor ends in the tree, if that decides about it.
fn node<'l>(limits: Option<&'l DomainLimits>, descriptor: &Descriptor<'_>) -> Option<&'l Reached> {
    limits.filter(|_| descriptor.quota.is_none())?.reach(descriptor.entries)
}

/// What a call spends and gives back, as far as it is planned.
struct Planned<'c, 'o, 'g> {
    policy: &'c Policy,
    domain: &'c str,
    outcome: &'o mut DescriptorOutcome<'g>,
    refunds: Refunds,
}

impl Planned<'_, '_, '_> {
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
