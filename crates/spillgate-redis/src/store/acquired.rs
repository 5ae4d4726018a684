//! Permits of concurrency limits that programs acquire, renew and release by their ids.

use std::sync::Arc;
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use spillgate::Decision;
use spillgate_policy::Error;
use spillgate_policy::store::{PermitId, Spend};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::RedisStore;
use super::core::StoreCore;
use super::hold::hold_request;
use super::limits::{Limit, limit_error, store_error};
use crate::Name;
use crate::backend::{
    Backend, BackendError, Fault, PermitCall, PermitOp, PermitReply, Result, Wanted,
};
use crate::flow::{inherit_client, of_limit};
use crate::hold::HoldRequest;
use crate::to_the_end::to_the_end;

/// Limits the claims that are open: permits that Redis may hold, while no program has their id.
#[derive(Debug)]
pub(super) struct Claims(Arc<Semaphore>);

/// How many claims may be open. Each is a task that waits for Redis.
const OPEN: u32 = 10_000;

/// How long a call that holds permits may be on its way after it was given up.
const LATE: Duration = Duration::from_secs(60);

/// When permits that could not be given back are tried again: at first, and at last.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// How long a shutdown waits for claims.
const PATIENCE: Duration = Duration::from_secs(1);

impl Default for Claims {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(OPEN as usize)))
    }
}

impl Claims {
    /// Waits a little until all are handed over or given back.
    pub(super) async fn close(&self) {
        let _ = timeout(PATIENCE, self.0.acquire_many(OPEN)).await;
    }
}

/// Permits that Redis holds, or may hold. They are given back when it is dropped while it is open:
/// if the reply was lost, if nobody waits for it any more, or after a panic.
struct Claim<B: Backend> {
    core: Arc<StoreCore<B>>,
    hold: PermitCall,
    ttl: Duration,
    runtime: Handle,
    /// `None` once there is nothing to give back.
    open: Option<OwnedSemaphorePermit>,
}

impl<B: Backend> Claim<B> {
    /// Makes a call that holds permits, in a task of its own: what becomes of them is to be known also
    /// if nobody waits any more.
    async fn hold(
        core: &Arc<StoreCore<B>>,
        hold: PermitCall,
        ttl: Duration,
    ) -> Result<(PermitReply, Self)> {
        let open = Arc::clone(&core.claims.0).try_acquire_owned().map_err(|_| {
            let text = format!("{OPEN} permits wait to be given back in Redis");
            BackendError::new(Fault::Overloaded, text)
        })?;
        let (core, runtime, open) = (Arc::clone(core), Handle::current(), Some(open));
        let mut claim = Self { core, hold, ttl, runtime, open };
        let work = async move {
            let reply = claim.core.backend.permits(&claim.hold).await;
            let may_hold = match &reply {
                Ok(reply) => reply.held > 0,
                Err(why) => why.is_unanswered(),
            };
            if !may_hold {
                claim.open = None;
            }
            reply.map(|reply| (reply, claim))
        };
        to_the_end(work, drop).await?
    }

    /// The id of the permits, for a program that will give them back.
    fn hand_over(mut self) -> PermitId {
        self.open = None;
        permit_id(&self.hold.name, &self.hold.holder)
    }
}

impl<B: Backend> Drop for Claim<B> {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let (core, ttl) = (Arc::clone(&self.core), self.ttl);
        let call = PermitCall { op: PermitOp::Revoke { late: LATE }, ..self.hold };
        self.runtime.spawn(inherit_client(async move {
            give_back(&core, &call, ttl).await;
            drop(open);
        }));
    }
}

/// Gives permits back until Redis answers, or they have expired.
async fn give_back<B: Backend>(core: &StoreCore<B>, call: &PermitCall, ttl: Duration) {
    let [mut pause, longest] = RETRY;
    let expired = core.local() + ttl;
    while core.backend.permits(call).await.is_err() && core.local() < expired {
        sleep(pause).await;
        pause = (2 * pause).min(longest);
    }
}

impl<B: Backend> RedisStore<B> {
    /// Takes permits for a program, under a random name that is hard to guess.
    pub(super) async fn acquire_permits(
        &self,
        limit: &Limit,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        let Some(request) = hold_request(limit, spend) else {
            return Err(limit_error(limit.name(), &"it is not a limit on concurrency"));
        };
        let HoldRequest { name, count, permits, .. } = request;
        let wanted = Wanted { is_beyond: spend.is_shadow, ..Wanted::exactly(count, permits, ttl) };
        let call = PermitCall { name, holder: random_name()?, op: PermitOp::Hold(wanted) };
        let claimed = of_limit(limit.id(), Claim::hold(&self.core, call, ttl)).await;
        let (reply, claim) = claimed.map_err(|why| match why.fault() {
            Fault::Overloaded => store_error(why),
            _ => limit_error(limit.name(), &why),
        })?;
        request.limit.add_expired(reply.expired);
        let others = reply.total.saturating_sub(reply.held);
        let in_flight = match reply.is_done {
            true => others,
            false => others.max(permits.saturating_add(1).saturating_sub(count)),
        };
        let decision = Decision::of_hold(permits, in_flight, count, self.core.local());
        Ok((decision, (reply.held > 0).then(|| claim.hand_over())))
    }

    /// Renews or gives back what a program holds. Returns whether it still did.
    pub(super) async fn change_permits(&self, id: PermitId, op: PermitOp) -> Result<bool, Error> {
        let (name, holder) = names_of(&id);
        let called = self.core.backend.permits(&PermitCall { name, holder, op }).await;
        let PermitReply { is_done, .. } = called.map_err(store_error)?;
        Ok(is_done)
    }
}

fn random_name() -> Result<Name, Error> {
    let mut bytes = [0; 16];
    let failed = |_| Error::store("cannot name permits: no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(Name::from_bytes(bytes))
}

/// Any node finds the permits by it: whose they are, and who holds them.
fn permit_id(name: &Name, holder: &Name) -> PermitId {
    let mut id = [0; 32];
    id[..16].copy_from_slice(name.as_bytes());
    id[16..].copy_from_slice(holder.as_bytes());
    PermitId(id)
}

fn names_of(id: &PermitId) -> (Name, Name) {
    let mut halves = [[0; 16]; 2];
    halves.as_flattened_mut().copy_from_slice(&id.0);
    (Name::from_bytes(halves[0]), Name::from_bytes(halves[1]))
}
