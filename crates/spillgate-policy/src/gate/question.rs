//! What a gate can be asked.

use smallvec::SmallVec;

use super::adaptive::{Asked, Asking};
use super::admin::find;
use super::ask::{Ask, InForce, Plan, Rest};
use super::bans::BansAt;
use super::descriptors::DescriptorOutcome;
use super::{Answer, Gate, Outcome};
use crate::policy::lists::ListKind;
use crate::store::{CallQuota, Spend, Store};
use crate::{Descriptor, Error, Key, Policy, RequestView};

/// A question that a [`Gate`] decides: a [request](RequestView), a cost under a
/// [limit](LimitCheck) or [several limits](Limits) by name, the [descriptors](Descriptors) of a
/// call, or a key with a [quota of the call](Throttle).
///
/// It is a trait and not an enum, so that each kind has its own outcome type and the compiler
/// builds one straight path per kind. The trait is sealed.
pub trait Question: Ask {
    /// What the question is about, for logs and metrics.
    fn subject(&self) -> Subject<'_>;
}

/// What a [`Question`] is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Subject<'a> {
    /// A request.
    Request(&'a RequestView<'a>),
    /// Limits by name.
    Limits,
    /// Descriptors of this domain.
    Descriptors(&'a str),
    /// A key with a quota of the call.
    Throttle,
}

/// A cost under one limit by name.
///
/// Its outcome has [one decision](Outcome::decision), or none if the store could not answer and
/// the limit's [outage policy](crate::store::Outage::Open) allows everyone then.
#[derive(Clone, Copy)]
pub struct LimitCheck<'a> {
    /// The limit's name.
    pub limit: &'a str,
    /// One value for each part of the limit's `per`, written as in an override.
    pub values: &'a [&'a str],
    /// The cost; 0 only peeks.
    pub cost: u64,
}

impl<'a> LimitCheck<'a> {
    /// A cost under a limit, for the caller of these values.
    #[must_use]
    pub fn new(limit: &'a str, values: &'a [&'a str], cost: u64) -> Self {
        Self { limit, values, cost }
    }
}

/// Costs under several limits by name: all are spent, or, if an enforcing limit denies, none.
/// Limits in shadow mode spend only if the others allow, and never change the answer.
///
/// The outcome lists the limits in the order of the checks. A denied outcome leaves out those in
/// shadow mode.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a>(pub &'a [LimitCheck<'a>]);

/// The descriptors of one call: all spend, or, if an enforcing limit denies, none.
///
/// Descriptors of a denied call still show what is left, unless the store denied without asking
/// for it. Hits are given back only if the call is allowed. Limits in
/// [quota mode](crate::NodeMode::Quota) deny a call together, and also count what exceeds them.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors<'a> {
    /// The domain of the limits.
    pub domain: &'a str,
    /// The descriptors.
    pub descriptors: &'a [Descriptor<'a>],
}

/// A cost for a key under a quota that comes with the call, as `CL.THROTTLE` asks.
///
/// The policy needs [room](Policy::with_throttle) for such keys. What is kept of a key is the
/// time at which its bucket is full again, so its next call may bring another quota.
#[derive(Clone, Copy)]
pub struct Throttle<'a> {
    /// The key: any bytes.
    pub key: &'a [u8],
    /// The quota.
    pub quota: CallQuota,
    /// The cost; 0 only peeks.
    pub cost: u64,
}

impl Question for RequestView<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Request(self)
    }
}

impl Ask for RequestView<'_> {
    type Outcome<'g> = Outcome<'g>;

    // Inlined, so that the plan is not moved and its kind is known.
    #[inline(always)]
    fn plan<'q>(
        &'q self,
        in_force: InForce<'_>,
        outcome: &mut Outcome<'_>,
    ) -> Result<Plan<'q>, Error> {
        let InForce { policy, lists, bans } = in_force;
        let sender = policy.identifier.sender(self);
        let mut asks_store = false;
        match lists.find(self, &sender, &policy.identifier) {
            Some(ListKind::Block) => outcome.answer = Answer::Blocked,
            Some(ListKind::Allow) => outcome.answer = Answer::Allowed,
            None if outcome.is_refused_by(
                bans.and_then(|bans| bans.of_sender(self, &sender, &policy.identifier)),
            ) => {}
            None if policy.spend(self, &sender, &mut outcome.spends) => asks_store = true,
            None => outcome.answer = Answer::HostRequired,
        }
        Ok(Plan { asks_store, rest: Rest::Sender(sender) })
    }

    fn asked(&self, plan: &Plan<'_>, asking: Asking<'_>) -> Asked {
        match &plan.rest {
            Rest::Sender(sender) => Asked::of_request(self, sender, asking),
            _ => Asked::by_name(asking.policy),
        }
    }

    #[inline]
    fn finish(plan: Plan<'_>, outcome: &mut Outcome<'_>) {
        if let Rest::Sender(sender) = plan.rest {
            outcome.remember_refused(&sender);
        }
    }
}

impl Question for LimitCheck<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Limits
    }
}

impl Ask for LimitCheck<'_> {
    type Outcome<'g> = Outcome<'g>;

    #[inline(always)]
    fn plan<'q>(
        &'q self,
        in_force: InForce<'_>,
        outcome: &mut Outcome<'_>,
    ) -> Result<Plan<'q>, Error> {
        outcome.spends.push(self.spend(in_force.policy)?);
        let asks_store = !self.is_refused(in_force, outcome);
        Ok(Plan { asks_store, rest: Rest::Nothing })
    }
}

impl LimitCheck<'_> {
    /// Refuses the check if its caller is banned.
    #[inline]
    fn is_refused(&self, in_force: InForce<'_>, outcome: &mut Outcome<'_>) -> bool {
        in_force.bans.is_some_and(|bans| self.is_refused_by(bans, in_force, outcome))
    }

    // Not inlined, so that checks pay for one branch while nobody is banned.
    #[inline(never)]
    fn is_refused_by(
        &self,
        bans: BansAt<'_>,
        in_force: InForce<'_>,
        outcome: &mut Outcome<'_>,
    ) -> bool {
        let InForce { policy, lists, .. } = in_force;
        let Some(rule) = policy.rule(self.limit).map(|place| &policy.rules[place]) else {
            return false;
        };
        outcome.is_refused_by(bans.of_values(&rule.per, self.values, &policy.identifier, lists))
    }

    fn spend(&self, policy: &Policy) -> Result<Spend, Error> {
        let (limit, key) = find(policy, self.limit, self.values)?;
        policy.rules[limit].expect_own_quota()?;
        Ok(Spend::new(limit, key, self.cost).in_mode(policy.rules[limit].mode))
    }
}

impl Question for Limits<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Limits
    }
}

impl Ask for Limits<'_> {
    type Outcome<'g> = Outcome<'g>;

    fn plan<'q>(
        &'q self,
        in_force: InForce<'_>,
        outcome: &mut Outcome<'_>,
    ) -> Result<Plan<'q>, Error> {
        let policy = in_force.policy;
        for check in self.0 {
            outcome.spends.push(check.spend(policy)?);
        }
        if self.0.iter().any(|check| check.is_refused(in_force, outcome)) {
            return Ok(Plan { asks_store: false, rest: Rest::Nothing });
        }
        let spends = &mut outcome.spends;
        if spends.len() < 2 {
            return Ok(Rest::Nothing.into());
        }
        let mut order: SmallVec<[usize; 4]> = (0..spends.len()).collect();
        order.sort_by_key(|place| policy.rules[spends[*place].limit].turn());
        *spends = order.iter().map(|place| spends[*place].clone()).collect();
        Ok(Rest::Order(order).into())
    }

    fn finish(plan: Plan<'_>, outcome: &mut Outcome<'_>) {
        let Rest::Order(order) = plan.rest else { return };
        let mut decided: Vec<_> = order.into_iter().zip(outcome.spends.drain(..)).collect();
        decided.sort_unstable_by_key(|(place, _)| *place);
        outcome.spends = decided.into_iter().map(|(_, spend)| spend).collect();
    }
}

impl Question for Descriptors<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Descriptors(self.domain)
    }
}

impl Ask for Descriptors<'_> {
    type Outcome<'g> = DescriptorOutcome<'g>;
    const FOLLOWS_UP: bool = true;

    fn plan<'q>(
        &'q self,
        in_force: InForce<'_>,
        outcome: &mut DescriptorOutcome<'_>,
    ) -> Result<Plan<'q>, Error> {
        let refunds = outcome.plan(in_force.policy, self.domain, self.descriptors)?;
        Ok(Rest::Refunds(refunds).into())
    }

    fn asks_again(plan: &Plan<'_>, outcome: &DescriptorOutcome<'_>) -> bool {
        let Rest::Refunds(refunds) = &plan.rest else { return false };
        !refunds.is_empty() || outcome.has_quota_mode()
    }

    async fn follow_up<'g, S: Store>(
        gate: &Gate<S>,
        limits: &S::Limits,
        plan: &mut Plan<'g>,
        outcome: &mut Self::Outcome<'g>,
    ) -> Result<(), Error> {
        let Rest::Refunds(refunds) = &mut plan.rest else { return Ok(()) };
        let refunds = std::mem::take(refunds);
        gate.apply_quota_mode(limits, outcome, &refunds).await;
        gate.give_back(limits, outcome, refunds).await
    }
}

impl Question for Throttle<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Throttle
    }
}

impl Ask for Throttle<'_> {
    type Outcome<'g> = Outcome<'g>;

    #[inline(always)]
    fn plan<'q>(
        &'q self,
        in_force: InForce<'_>,
        outcome: &mut Outcome<'_>,
    ) -> Result<Plan<'q>, Error> {
        let place = in_force.policy.throttle.ok_or_else(|| {
            Error::unknown(
                "the policy has no room for keys whose quota comes with the call; build it \
                 with `with_throttle`",
            )
        })?;
        let spend = Spend::new(place, Key::from_bytes(self.key), self.cost);
        outcome.spends.push(spend.with_quota(self.quota));
        Ok(Rest::Nothing.into())
    }
}

// Values may be secrets, so they are not shown.
debug_fields!(self: LimitCheck<'_> { limit: self.limit, cost: self.cost });

// The key may be a secret, so it is not shown.
debug_fields!(self: Throttle<'_> { quota: self.quota.quota(), cost: self.cost });
