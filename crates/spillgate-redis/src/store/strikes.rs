//! Offences of callers, which all nodes count together.

use spillgate::Timestamp;
use spillgate_policy::store::{BanRule, BanStart, BanState, StrikeCall};
use spillgate_policy::{Error, Key};

use super::RedisStore;
use super::limits::{Limit, limit_error, store_error};
use crate::Name;
use crate::backend::{Backend, Result, Swap, Swapped};
use crate::flow::of_limit;

impl<B: Backend> RedisStore<B> {
    /// Counts offences by the clock of Redis: reads the state of the caller, and replaces it if
    /// no other node has meanwhile. So the rule exists once, in Rust.
    pub(super) async fn strike_caller(
        &self,
        limit: &Limit,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        let name = limit.caller(key);
        let striking = of_limit(limit.id(), self.strike(name, rule, call));
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
    async fn strike(
        &self,
        name: Name,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<Option<BanStart>>> {
        let mut found = self.core.backend.swap_strikes(name, None).await?;
        for _ in 0..TRIES {
            let (swap, ban) = count(&found, rule, call);
            let Some(swap) = swap else { return Ok(Some(ban)) };
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

/// What a call makes of the state that was found, and the ban that it starts or finds. `None` if it
/// changes nothing.
fn count(found: &Swapped, rule: &BanRule, call: StrikeCall) -> (Option<Swap>, Option<BanStart>) {
    // One that cannot be read counts as none: to refuse it would free the caller from bans for good.
    let Struck { mut calls, mut state } = Struck::from_bytes(&found.value).unwrap_or_default();
    let mut in_force = state.ban_at(found.now);
    if in_force.is_some() || call.count == 0 || calls.contains(&call.id) {
        if let Some(ban) = &mut in_force {
            // Nothing counts during a ban, so the last call has started it.
            ban.is_new = calls.last() == Some(&call.id);
        }
        return (None, in_force);
    }
    let ban = rule.offences(&mut state, call.count, found.now);
    calls.push(call.id);
    // So many offences lead to a ban: those of earlier calls are over.
    let most = usize::try_from(rule.strikes).unwrap_or(usize::MAX).clamp(1, MOST_CALLS);
    calls.drain(..calls.len().saturating_sub(most));
    let kept: Timestamp = rule.forgotten_at(&state);
    let new = Struck { calls, state }.to_bytes();
    (Some(Swap { old: found.value.clone(), new, ttl: kept.since(found.now) }), ban)
}

/// What Redis keeps of a caller.
#[derive(Default)]
struct Struck {
    /// The last calls that counted, so that one whose answer was lost does not count again.
    calls: Vec<u64>,
    state: BanState,
}

/// Attempts before giving up because other nodes were always faster.
const TRIES: usize = 8;

/// The first byte of a caller's strikes.
const VERSION: u8 = 2;

/// The most calls that are kept.
const MOST_CALLS: usize = 100;

impl Struck {
    /// Version, how many calls, the calls, the state of the rule.
    fn to_bytes(&self) -> Vec<u8> {
        let count = u8::try_from(self.calls.len()).unwrap_or(u8::MAX);
        let calls = self.calls.iter().take(count.into());
        let head = [VERSION, count].into_iter().chain(calls.flat_map(|call| call.to_le_bytes()));
        head.chain(self.state.to_bytes()).collect()
    }

    /// `None` if it was not written by this version.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([version, count], bytes) = bytes.split_first_chunk()?;
        let (calls, state) = bytes.split_at_checked(8 * usize::from(*count))?;
        let calls =
            calls.chunks_exact(8).map(|call| Some(u64::from_le_bytes(call.try_into().ok()?)));
        let state = BanState::from_bytes(state)?;
        (*version == VERSION).then_some(Self { calls: calls.collect::<Option<_>>()?, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    /// What a call leaves of a value.
    fn after(value: &[u8], rule: &BanRule, call: StrikeCall) -> Vec<u8> {
        let found = Swapped { now: NOW, is_swapped: false, value: value.to_vec() };
        count(&found, rule, call).0.unwrap().new
    }

    #[test]
    fn what_cannot_be_read_counts_as_none() {
        let rule = BanRule::new(9);
        let twice = StrikeCall::new(2);
        let whole = after(&after(b"", &rule, StrikeCall::new(1)), &rule, twice);
        assert_eq!(Struck::from_bytes(&whole).unwrap().state.strikes(), 3);
        let state = Struck::from_bytes(&whole).unwrap().state.to_bytes();
        // Without names of calls, as before version 2; with more than there are; cut before the three.
        let wrong = [state.clone(), [&[VERSION, 200], &state[..]].concat()];
        let cut = (0..whole.len() - 3 * 8).map(|length| whole[..length].to_vec());
        for value in wrong.into_iter().chain(cut) {
            let kept = Struck::from_bytes(&after(&value, &rule, twice)).unwrap();
            assert_eq!((kept.state.strikes(), &kept.calls[..]), (2, &[twice.id][..]), "{value:?}");
        }
    }

    #[test]
    fn as_many_calls_are_kept_as_lead_to_a_ban() {
        let (mut value, rule) = (Vec::new(), BanRule::new(3));
        let calls: Vec<_> = (0..5).map(|_| StrikeCall::new(1)).collect();
        for (call, later) in calls.iter().zip(0..) {
            let now = NOW + later * rule.window;
            let found = Swapped { now, is_swapped: false, value };
            value = count(&found, &rule, *call).0.unwrap().new;
        }
        let kept = Struck::from_bytes(&value).unwrap().calls;
        assert_eq!(kept, [calls[2].id, calls[3].id, calls[4].id]);
    }
}
