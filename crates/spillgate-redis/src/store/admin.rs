//! Administrative operations on one caller: reset, and overrides set at run time.

use spillgate::{Quota, Timestamp};
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Key};

use super::RedisStore;
use super::core::{Caller, StoreCore, unsettled};
use super::limits::{RedisLimits, limit_error, store_error};
use super::settle::Correction;
use crate::State;
use crate::backend::{Backend, Found, Op, Result};
use crate::effective_quota::EffectiveQuota;

impl<B: Backend> RedisStore<B> {
    pub(super) async fn reset_caller(
        &self,
        limits: &RedisLimits,
        place: usize,
        key: &Key,
    ) -> Result<(), Error> {
        let (limit, local) = (limits.limit(place), &limits.local);
        let caller = self.core.caller(limit, key, self.core.local());
        self.core.reset(caller).await.map_err(store_error)?;
        self.forget_lease(limit, key);
        match limit.local {
            Some(place) => {
                let tables = local.for_nodes(self.core.nodes.assumed());
                local.memory.reset(&tables, place, key).await
            }
            None => Ok(()),
        }
    }

    pub(super) async fn override_quota(
        &self,
        limits: &RedisLimits,
        place: usize,
        key: &Key,
        quota: Option<Quota>,
    ) -> Result<(), Error> {
        let limit = limits.limit(place);
        let caller = self.core.caller(limit, key, self.core.local());
        let wanted = match quota {
            Some(quota) => limit.override_quota(quota),
            None => limit.quota_without_override(key),
        };
        let wanted = wanted.map_err(|why| limit_error(limit.name(), &why))?;
        self.return_lease(limit, key).await;
        self.core.set_override(caller, &wanted).await.map_err(store_error)?;
        self.forget_lease(limit, key);
        match limit.local {
            Some(place) => {
                limits.local.set_override(place, key, quota, self.core.nodes.assumed()).await
            }
            None => Ok(()),
        }
    }
}

impl<B: Backend> StoreCore<B> {
    /// Resets a caller to a fresh state, even if the stored one cannot be read.
    async fn reset(&self, mut caller: Caller) -> Result<()> {
        match self.correct(&mut caller, Correction::Reset, false).await {
            Ok(_) => {}
            Err(why) if why.is_unreadable() => self.delete(&mut caller).await?,
            Err(why) => return Err(why),
        }
        self.words.forget(caller.name);
        self.unreported.forget(caller.name);
        Ok(())
    }

    /// Deletes the unreadable state of a caller, corrupt or of another version, and that of its limit.
    async fn delete(&self, caller: &mut Caller) -> Result<()> {
        let sent = self.local();
        self.backend.forget(caller.name).await?;
        self.forget_override(caller, sent);
        match caller.limit.born(&self.backend).await {
            Err(why) if why.is_unreadable() => self.backend.forget(caller.limit.id()).await,
            born => born.map(drop),
        }
    }

    /// Changes the quota of a caller. Other nodes learn of it with their
    /// next call for that caller.
    async fn set_override(&self, caller: Caller, wanted: &EffectiveQuota) -> Result<()> {
        let mut attempts = self.attempts(caller.name);
        while attempts.next().await {
            let (now, stored) = self.read(&caller).await?;
            let has_own = |state: &State| state.terms.is_override;
            let new = match &stored {
                // There is none to be removed.
                Some(stored) if !wanted.terms.is_override && !has_own(stored) => None,
                Some(stored) => {
                    let mut account = caller.account(stored, wanted, now)?;
                    Some(State::of(&mut account, wanted.terms, now))
                }
                // An absent state has the terms of the policy anyway.
                None if !wanted.terms.is_override => None,
                None => Some(wanted.state(caller.fresh(wanted, &self.backend).await?)),
            };
            let is_there = match &new {
                Some(new) if stored.as_ref() != Some(new) => {
                    self.exchange(caller.name, stored.as_ref(), new, now).await?
                }
                _ => true,
            };
            if is_there {
                let quota = wanted.terms.is_override.then_some(*wanted);
                self.overrides.set(caller.name, quota, self.local());
                self.words.invalidate(caller.name);
                return Ok(());
            }
        }
        Err(unsettled(&caller.limit))
    }

    /// The stored state of a caller, and when it was read.
    async fn read(&self, caller: &Caller) -> Result<(Timestamp, Option<State>)> {
        // Any terms will do that are not an override.
        let effective = &caller.limit.base;
        match self.ask(caller, effective, effective.fresh(None), Op::Read).await? {
            Some((now, Found::Other(stored))) => Ok((now, Some(stored))),
            Some((now, _)) => Ok((now, None)),
            None => Err(unsettled(&caller.limit)),
        }
    }
}
