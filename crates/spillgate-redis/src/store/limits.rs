use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use spillgate::{AlgorithmKind, Quota, Start, Timestamp};
use spillgate_policy::store::{LimitSpec, Outage, OverrideSpec, Sharing, Spend};
use spillgate_policy::{Error, Key};
use tokio::sync::OnceCell;

use super::local_tables::{LocalTables, has_local_table};
use crate::backend::{Backend, BackendError, Fault, Result};
use crate::effective_quota::EffectiveQuota;
use crate::hold::{HeldLimit, HeldLimits, permits_of};
use crate::name::Names;
use crate::{Name, Secret, Terms};

/// The limits of one policy, shared by many nodes.
pub struct RedisLimits {
    limits: Arc<[Arc<Limit>]>,
    pub(super) local: LocalTables,
}

pub(crate) struct Limit {
    name: Box<str>,
    names: Names,
    kind: AlgorithmKind,
    pub(super) base: EffectiveQuota,
    tiers: Box<[EffectiveQuota]>,
    /// By the bytes of their keys.
    overrides: HashMap<Box<[u8]>, EffectiveQuota>,
    starts_empty: bool,
    born: OnceCell<Timestamp>,
    /// True if quotas come with calls, so that words are times which must not be converted.
    pub(super) is_by_call: bool,
    pub(super) max_debt: Option<u64>,
    /// True if words can be [cut](EffectiveQuota::is_impossible): no debt is possible, nor spending
    /// by another quota.
    pub(super) is_cut: bool,
    pub(super) is_leased: bool,
    pub(super) outage: Outage,
    /// The permits in flight, if it is on concurrency.
    pub(super) hold: Option<Arc<HeldLimit>>,
    /// Its place in the tables for outages, if it has `outage = "local"`.
    pub(super) local: Option<usize>,
}

impl RedisLimits {
    pub(super) fn new(
        limits: &[LimitSpec],
        (secret, held): (&Secret, &HeldLimits),
        local: LocalTables,
    ) -> Result<Self, Error> {
        let mut locals = 0..;
        let open = |spec: &LimitSpec| {
            let local = if has_local_table(spec) { locals.next() } else { None };
            let mut limit = Limit::open(spec, secret, local)?;
            limit.hold = held.of(limit.id(), spec);
            Ok(Arc::new(limit))
        };
        Ok(Self { limits: limits.iter().map(open).collect::<Result<_, Error>>()?, local })
    }

    pub(super) fn limit(&self, place: usize) -> &Arc<Limit> {
        &self.limits[place]
    }

    pub(super) fn all(&self) -> Arc<[Arc<Limit>]> {
        Arc::clone(&self.limits)
    }
}

impl Limit {
    fn open(spec: &LimitSpec, secret: &Secret, local: Option<usize>) -> Result<Self, Error> {
        let limit_error = |why: spillgate::Error| limit_error(&spec.name, &why);
        let kind = spec.algorithm;
        let effective =
            |quota: &Quota| EffectiveQuota::of(Terms::new(kind, *quota)).map_err(limit_error);
        let own = |own: &OverrideSpec| Ok((own.key.as_bytes().into(), effective(&own.quota)?));
        Ok(Self {
            name: spec.name.as_str().into(),
            names: secret.names(&spec.name, &spec.per, spec.algorithm),
            kind,
            base: effective(&spec.quota)?,
            tiers: spec
                .tiers
                .iter()
                .map(|(_, quota)| effective(quota))
                .collect::<Result<_, _>>()?,
            overrides: spec.overrides.iter().map(own).collect::<Result<_, Error>>()?,
            starts_empty: spec.start == Start::Empty,
            born: OnceCell::new(),
            is_by_call: spec.is_by_call,
            max_debt: spec.max_debt,
            is_cut: spec.max_debt == Some(0) && !spec.is_by_call,
            is_leased: spec.sharing == Sharing::Leased,
            outage: spec.outage,
            hold: None,
            local,
        })
    }

    /// A token bucket of one per second.
    #[cfg(test)]
    pub(super) fn per_second() -> Self {
        let terms = Terms::new(AlgorithmKind::TokenBucket, "1/s".parse().unwrap());
        Self {
            name: "test".into(),
            names: Secret::public().names("test", "key", terms.kind),
            kind: terms.kind,
            base: EffectiveQuota::of(terms).unwrap(),
            tiers: Box::default(),
            overrides: HashMap::new(),
            starts_empty: false,
            born: OnceCell::new(),
            is_by_call: false,
            max_debt: None,
            is_cut: false,
            is_leased: false,
            outage: Outage::Local,
            hold: None,
            local: None,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Identifies the limit whatever its quota. It changes with what the limit counts.
    pub(super) fn id(&self) -> Name {
        self.names.limit()
    }

    pub(super) fn caller(&self, key: &Key) -> Name {
        self.names.caller(key.as_bytes())
    }

    /// A number that is stable as long as keys mean the same.
    pub(super) fn number(&self) -> u64 {
        u128::from_le_bytes(*self.id().as_bytes()) as u64
    }

    /// The quota of a caller by the policy.
    pub(super) fn quota_for(&self, key: &Key) -> &EffectiveQuota {
        self.policy_override(key).unwrap_or_else(|| self.tier_quota(key.tier()))
    }

    /// How many permits a caller has by the policy.
    pub(super) fn permits(&self, key: &Key) -> u32 {
        permits_of(&self.quota_for(key).quota)
    }

    /// The quota that came with the call, in words of the limit, which are times.
    pub(super) fn quota_of_call(&self, spend: &Spend) -> Option<EffectiveQuota> {
        let call = spend.quota.as_ref()?;
        let (quota, algorithm) = (call.quota(), call.bucket().into());
        Some(EffectiveQuota { quota, algorithm, ..self.base })
    }

    /// The quota of a caller whose override is removed.
    pub(super) fn quota_without_override(
        &self,
        key: &Key,
    ) -> Result<EffectiveQuota, spillgate::Error> {
        let shared = *self.tier_quota(key.tier());
        match self.policy_override(key) {
            None => Ok(shared),
            // The policy has an override of its own, which an override by the limit's quota
            // replaces.
            Some(_) => self.override_quota(shared.quota),
        }
    }

    /// The quota of a caller with an override set at run time.
    pub(super) fn override_quota(&self, quota: Quota) -> Result<EffectiveQuota, spillgate::Error> {
        let terms = Terms { is_override: true, ..Terms::new(self.kind, quota) };
        EffectiveQuota::of(terms)
    }

    /// The override of the policy for this caller.
    pub(super) fn policy_override(&self, key: &Key) -> Option<&EffectiveQuota> {
        // Usually there are none: then the key need not be hashed.
        if self.overrides.is_empty() { None } else { self.overrides.get(key.as_bytes()) }
    }

    /// The quota of a tier, or the limit's own.
    pub(super) fn tier_quota(&self, tier: Option<usize>) -> &EffectiveQuota {
        tier.and_then(|tier| self.tiers.get(tier)).unwrap_or(&self.base)
    }

    /// The quota with these terms, of the limit itself or a tier.
    pub(super) fn quota_with(&self, terms: &Terms) -> Option<EffectiveQuota> {
        let mut all = std::iter::once(&self.base).chain(&self.tiers);
        all.find(|own| own.terms == *terms).copied()
    }

    /// The same, or that of a caller that has its own by the policy.
    pub(super) fn quota_or_override_with(&self, terms: &Terms) -> Option<EffectiveQuota> {
        let own = || self.overrides.values().find(|own| own.terms == *terms).copied();
        self.quota_with(terms).or_else(own)
    }

    /// When the limit was first used, if it starts empty.
    pub(super) async fn born<B: Backend>(&self, backend: &B) -> Result<Option<Timestamp>> {
        if !self.starts_empty {
            return Ok(None);
        }
        let ask = || backend.born(self.id());
        self.born.get_or_try_init(ask).await.map(|born| Some(*born))
    }
}

/// An error about a limit.
pub(super) fn limit_error(limit: &str, why: &dyn fmt::Display) -> Error {
    Error::store(format!("limit {limit:?}: {why}"))
}

pub(super) fn store_error(why: BackendError) -> Error {
    match why.fault() {
        Fault::Overloaded => Error::overloaded(why),
        _ => Error::store(why),
    }
}

impl fmt::Debug for RedisLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.limits.iter().map(|limit| limit.name())).finish()
    }
}
