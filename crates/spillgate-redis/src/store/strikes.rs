//! Offences of callers, which all nodes count together.

use spillgate::Timestamp;
use spillgate_policy::store::{BanRule, BanStart, BanState};
use spillgate_policy::{Error, Key};

use super::RedisStore;
use super::core::TRIES;
use super::limits::{Limit, limit_error, store_error};
use crate::Name;
use crate::backend::{Backend, Result, Swap, Swapped};
use crate::flow::of_limit;

impl<B: Backend> RedisStore<B> {
    /// Counts an offence by the clock of Redis: reads the state of the caller, and replaces it if
    /// no other node has meanwhile. So the rule exists once, in Rust.
    pub(super) async fn strike_caller(
        &self,
        limit: &Limit,
        key: &Key,
        rule: &BanRule,
    ) -> Result<Option<BanStart>, Error> {
        let name = limit.caller(key);
        let striking = of_limit(limit.id(), self.strike(name, rule));
        match striking.await.map_err(store_error)? {
            Some(ban) => Ok(ban),
            None => {
                let why = format!("other nodes counted offences of a caller {TRIES} times at once");
                Err(limit_error(limit.name(), &why))
            }
        }
    }

    /// Forgets the offences of a caller.
    pub(super) async fn forgive_caller(&self, limit: &Limit, key: &Key) -> Result<(), Error> {
        let name = limit.caller(key);
        let mut found = self.swap(limit, name, None).await?;
        for _ in 0..TRIES {
            if found.value.is_empty() {
                return Ok(());
            }
            let swap = Swap { old: found.value, new: Vec::new(), ttl: self.core.margin };
            found = self.swap(limit, name, Some(&swap)).await?;
        }
        let why = format!("a caller offended {TRIES} times while it was forgiven; try again");
        Err(limit_error(limit.name(), &why))
    }

    /// `None` if other nodes were always faster.
    async fn strike(&self, name: Name, rule: &BanRule) -> Result<Option<Option<BanStart>>> {
        let mut found = self.core.backend.swap_strikes(name, None).await?;
        for _ in 0..TRIES {
            let (swap, ban) = offence(&found, rule);
            found = self.core.backend.swap_strikes(name, Some(&swap)).await?;
            if found.is_swapped {
                return Ok(Some(ban));
            }
        }
        Ok(None)
    }

    async fn swap(&self, limit: &Limit, name: Name, swap: Option<&Swap>) -> Result<Swapped, Error> {
        let swapping = self.core.backend.swap_strikes(name, swap);
        of_limit(limit.id(), swapping).await.map_err(store_error)
    }
}

/// What an offence makes of the state that was found. One that cannot be read counts as none: to
/// refuse it would free the caller from bans for good.
fn offence(found: &Swapped, rule: &BanRule) -> (Swap, Option<BanStart>) {
    let mut state = BanState::from_bytes(&found.value).unwrap_or_default();
    let ban = rule.offence(&mut state, found.now, rule.draw());
    let kept: Timestamp = rule.forgotten_at(&state);
    let swap = Swap { old: found.value.clone(), new: state.to_bytes(), ttl: kept.since(found.now) };
    (swap, ban)
}
