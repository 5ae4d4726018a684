use std::fmt;
use std::sync::Arc;

use tollgate::Decision;

use super::{Gate, Passage};
use crate::policy::Rule;
use crate::store::{Charge, Store};
use crate::{Error, Key};

/// What was spent in advance under one limit, to be [settled](Gate::settle_actual) when the
/// cost is known.
///
/// It holds the caller's key and nothing of the policy, so many of them can be kept for a
/// long time.
#[must_use]
pub struct Receipt {
    limit: Arc<str>,
    since: u32,
    key: Key,
    tier: Option<Box<str>>,
    reserved: u64,
}

impl Passage<'_> {
    /// What an allowed passage has spent under its only limit; `None` if it is not allowed,
    /// or not about one limit.
    pub fn receipt(&self) -> Option<Receipt> {
        match &self.charges[..] {
            [charge] if self.is_allowed() => {
                Some(Receipt::new(&self.policy().rules[charge.limit], charge))
            }
            _ => None,
        }
    }
}

impl Receipt {
    fn new(rule: &Rule, charge: &Charge) -> Self {
        Self {
            limit: Arc::clone(&rule.name),
            since: rule.since,
            key: charge.key.clone(),
            tier: rule.tier_name(&charge.key).map(Into::into),
            // A limit in shadow that would have denied took nothing.
            reserved: if charge.is_allowed() { charge.cost } else { 0 },
        }
    }

    /// The limit's name.
    #[must_use]
    pub fn limit(&self) -> &str {
        &self.limit
    }
}

impl<S: Store> Gate<S> {
    /// Replaces what was spent in advance by the actual cost: takes what is missing, also
    /// beyond the burst, or gives back what was too much. Tells what is left then; `None`
    /// if the limit has gone since, or has begun afresh, so that what was spent stays spent.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle_actual(
        &self,
        receipt: Receipt,
        actual: u64,
    ) -> Result<Option<Decision>, Error> {
        let Receipt { limit, since, key, tier, reserved } = receipt;
        let active = self.active();
        let Some((limit, key)) = active.policy.still(&limit, since, key, tier.as_deref()) else {
            return Ok(None);
        };
        self.correct(&active.limits, limit, key, reserved, actual).await.map(Some)
    }
}

/// The key may be a secret, so it is not shown.
impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("limit", &self.limit)
            .field("reserved", &self.reserved)
            .finish_non_exhaustive()
    }
}
