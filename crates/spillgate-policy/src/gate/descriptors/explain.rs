//! Explains how the descriptors of a call would be decided.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::outcome::DescriptorKind;
use super::quota_mode::{is_used_up, mode};
use super::{DescriptorOutcome, Gate, Refunds};
use crate::config::spec::NodeMode;
use crate::gate::adaptive::Asked;
use crate::gate::{Active, Answer, Descriptors, StateExplanation};
use crate::policy::Rule;
use crate::store::{Spend, Store};
use crate::suggest::{hint, quoted};
use crate::{Descriptor, Error, Mode, Policy};

/// Why the descriptors of a call are allowed or denied. Its [`Display`](fmt::Display) is for
/// people.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct DescriptorsExplanation {
    /// What would be decided about the call: `allowed` or `denied`.
    pub answer: Answer,
    /// The domain.
    pub domain: String,
    /// Why no limit is looked for, if the policy has none of this domain.
    pub domain_not_known: Option<String>,
    /// The descriptors, in the order of the call.
    pub descriptors: Vec<DescriptorExplanation>,
}

/// What the limits say of one descriptor.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct DescriptorExplanation {
    /// The keys of its entries. Values may be secrets, so they are not shown.
    pub keys: Vec<String>,
    /// What it is to the policy.
    pub kind: DescriptorKind,
    /// The name that the configuration gives to the rule at which it ends.
    pub name: Option<String>,
    /// Why it ends at no rule of an envoyproxy/ratelimit file; `None` if it does, or there is no
    /// such file.
    pub not_met: Option<String>,
    /// Whether its hits are given back.
    pub gives_back: bool,
    /// The limits that it meets, and those of its domain that it does not meet.
    pub limits: Vec<DescriptorLimitExplanation>,
}

/// What one limit says of a descriptor.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct DescriptorLimitExplanation {
    /// The limit's name.
    pub name: String,
    /// Whether it refuses.
    pub mode: NodeMode,
    /// Why the descriptor does not meet it; `None` if it does.
    pub not_met: Option<String>,
    /// How the descriptor would be counted, if it meets it.
    pub state: Option<StateExplanation>,
}

/// How many limits that are not met are listed: there can be thousands.
const MOST_NOT_MET: usize = 100;

impl<S: Store> Gate<S> {
    /// Explains how the descriptors of a call would be decided, without spending.
    ///
    /// # Errors
    ///
    /// If a quota comes with a descriptor and the policy has no room for such, or the store could
    /// not answer.
    pub async fn explain_descriptors(
        &self,
        question: &Descriptors<'_>,
    ) -> Result<DescriptorsExplanation, Error> {
        let &Descriptors { domain, descriptors } = question;
        let active = self.active();
        let policy = &active.policy;
        let mut outcome = DescriptorOutcome::new(policy);
        let refunds = outcome.plan(policy, domain, descriptors)?;
        let spends = self.foresee(&active, &outcome).await?;
        let answer = answer(policy, &spends, &refunds);
        let mut explained: Vec<_> = outcome
            .descriptors()
            .zip(descriptors)
            .map(|(state, descriptor)| {
                let kind = state.kind();
                DescriptorExplanation {
                    keys: descriptor.entries.iter().map(|(key, _)| (*key).to_owned()).collect(),
                    kind,
                    name: state.name().map(str::to_owned),
                    not_met: lost(policy, domain, descriptor),
                    gives_back: descriptor.gives_back,
                    limits: Vec::new(),
                }
            })
            .collect();
        for (owner, spend) in &spends {
            add(&mut explained, policy, descriptors, *owner, spend);
        }
        for (owner, refund) in refunds {
            let looks = Spend { cost: 0, ..refund };
            let decision = Some(self.peek(&active, &looks, &Asked::default()).await?);
            add(&mut explained, policy, descriptors, owner, &Spend { decision, ..looks });
        }
        for (explained, descriptor) in explained.iter_mut().zip(descriptors) {
            explained.limits.extend(not_met(policy, domain, descriptor));
        }
        let is_known = policy.descriptors.domain(domain).is_some();
        let domain_not_known = (!is_known).then(|| {
            let hint = hint(domain, policy.domains());
            format!("the policy has no limits for the domain {}{hint}", quoted(domain))
        });
        let domain = domain.to_owned();
        Ok(DescriptorsExplanation { answer, domain, domain_not_known, descriptors: explained })
    }

    /// What the store would decide about each spend of a call.
    async fn foresee(
        &self,
        active: &Active<S::Limits>,
        outcome: &DescriptorOutcome<'_>,
    ) -> Result<Vec<(usize, Spend)>, Error> {
        // Several descriptors of a call may be counted under the same key, one after the other.
        let mut spent: HashMap<_, u64> = HashMap::new();
        let mut foreseen = Vec::new();
        for (owner, spend) in outcome.planned() {
            let before = spent.entry((spend.limit, spend.key.as_bytes().to_vec())).or_default();
            let together = before.saturating_add(spend.cost);
            let peeked = Spend { cost: together, ..spend.clone() };
            let mut decision = self.peek(active, &peeked, &Asked::default()).await?;
            let rule = &active.policy.rules[spend.limit];
            let is_quota = mode(&active.policy, spend) == NodeMode::Quota;
            if is_quota && spend.cost == 0 && is_used_up(rule, &decision) {
                // One that only looks exceeds what is used up.
                decision =
                    self.peek(active, &Spend { cost: 1, ..peeked }, &Asked::default()).await?;
            }
            if decision.is_allowed() {
                *before = together;
            }
            foreseen.push((owner, Spend { decision: Some(decision), ..spend.clone() }));
        }
        Ok(foreseen)
    }
}

/// What is decided about the call: see [`quota_mode`](super::quota_mode).
fn answer(policy: &Policy, spends: &[(usize, Spend)], refunds: &Refunds) -> Answer {
    let spends = || spends.iter().map(|(_, spend)| spend);
    if spends().any(|spend| !spend.is_shadow && spend.is_denied()) {
        return Answer::Denied;
    }
    let within = |spend: &Spend| match mode(policy, spend) {
        NodeMode::Quota => !spend.is_denied(),
        NodeMode::ShadowQuota => true,
        NodeMode::Enforce | NodeMode::Shadow => false,
    };
    let has_quota_mode = spends().any(|spend| mode(policy, spend) == NodeMode::Quota);
    let gives_back = refunds.iter().any(|(_, spend)| mode(policy, spend).is_quota());
    match has_quota_mode && !gives_back && !spends().any(within) {
        true => Answer::Denied,
        false => Answer::Allowed,
    }
}

fn add(
    explained: &mut [DescriptorExplanation],
    policy: &Policy,
    descriptors: &[Descriptor<'_>],
    owner: usize,
    spend: &Spend,
) {
    let rule = &policy.rules[spend.limit];
    let (Some(explained), Some(descriptor), Some(decision)) =
        (explained.get_mut(owner), descriptors.get(owner), &spend.decision)
    else {
        return;
    };
    let mut state = StateExplanation::new(rule, spend, decision);
    if rule.is_closed() {
        // It is asked for more than there can ever be, and has nothing to give.
        (state.cost, state.limit, state.remaining) = (descriptor.hits, 0, 0);
    }
    explained.limits.push(DescriptorLimitExplanation {
        name: rule.name.to_string(),
        mode: shown_mode(rule, mode(policy, spend)),
        not_met: None,
        state: Some(state),
    });
}

fn shown_mode(rule: &Rule, node: NodeMode) -> NodeMode {
    match (node, rule.mode) {
        (NodeMode::Enforce, Mode::Shadow) => NodeMode::Shadow,
        (node, _) => node,
    }
}

/// Why a descriptor ends at no node of the tree.
fn lost(policy: &Policy, domain: &str, descriptor: &Descriptor<'_>) -> Option<String> {
    if descriptor.quota.is_some() {
        return None;
    }
    policy.descriptors.domain(domain)?.lost(domain, descriptor.entries)
}

/// The limits of a domain that a descriptor does not meet. Nodes of trees are not listed.
fn not_met(
    policy: &Policy,
    domain: &str,
    descriptor: &Descriptor<'_>,
) -> impl Iterator<Item = DescriptorLimitExplanation> {
    let mismatch = move |rule: &Rule| {
        let scope = rule.scope.as_ref().filter(|scope| *scope.domain == *domain)?;
        let why = match &descriptor.quota {
            Some(_) if !scope.is_node() => "a quota comes with the descriptor".to_owned(),
            _ => scope.mismatch(descriptor.entries)?,
        };
        Some(DescriptorLimitExplanation {
            name: rule.name.to_string(),
            mode: shown_mode(rule, scope.mode),
            not_met: Some(why),
            state: None,
        })
    };
    policy.rules.iter().filter_map(mismatch).take(MOST_NOT_MET)
}

impl fmt::Display for DescriptorsExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = if self.answer == Answer::Allowed { "allowed" } else { "denied" };
        writeln!(f, "answer   {answer}")?;
        match &self.domain_not_known {
            Some(why) => writeln!(f, "domain   {why}")?,
            None => writeln!(f, "domain   {}", quoted(&self.domain))?,
        }
        for (index, descriptor) in self.descriptors.iter().enumerate() {
            write!(f, "descriptor {}: {descriptor}", index + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for DescriptorExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.iter().map(|key| quoted(key)).collect();
        let kind = match self.kind {
            DescriptorKind::Unknown => "meets no limit",
            DescriptorKind::Known => "ends at a rule that has no limit",
            DescriptorKind::Unlimited => "unlimited",
            DescriptorKind::Replaced => {
                "not counted: the rule of another descriptor replaces its rule"
            }
            DescriptorKind::Limited if self.gives_back => "limited, and its hits are given back",
            DescriptorKind::Limited => "limited",
        };
        let name = self.name.iter().map(|name| format!(", by the rule called {}", quoted(name)));
        writeln!(f, "{}: {kind}{}", keys.join(", "), name.collect::<String>())?;
        if let Some(why) = &self.not_met {
            writeln!(f, "rules    not met: {why}")?;
        }
        self.limits.iter().try_for_each(|limit| write!(f, "{limit}"))
    }
}

impl fmt::Display for DescriptorLimitExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            NodeMode::Enforce => "",
            NodeMode::Shadow => " (shadow)",
            NodeMode::Quota => " (quota mode)",
            NodeMode::ShadowQuota => " (shadow, quota mode)",
        };
        write!(f, "limit    {}{mode}: ", self.name)?;
        match (&self.state, &self.not_met) {
            (Some(state), _) => {
                writeln!(f, "{}", if state.passes { "passes" } else { "denies" })?;
                write!(f, "{state}")
            }
            (None, why) => {
                writeln!(f, "not met, {}", why.as_deref().unwrap_or("other descriptors"))
            }
        }
    }
}
