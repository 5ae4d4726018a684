use std::collections::HashMap;

use spillgate::Timestamp;

use crate::Name;
use crate::backend::{PermitCall, PermitOp, PermitReply};

/// Permits of all callers, as the script keeps them.
#[derive(Debug, Default)]
pub(super) struct HeldByAll(HashMap<Name, HashMap<Name, Held>>);

#[derive(Clone, Copy, Debug)]
struct Held {
    count: u32,
    number: u64,
    expires: Timestamp,
}

/// How long the number of a call is kept once nothing is held.
const LATE: std::time::Duration = std::time::Duration::from_secs(2);

impl HeldByAll {
    pub(super) fn run(&mut self, call: &PermitCall, now: Timestamp) -> PermitReply {
        let holders = self.0.entry(call.name).or_default();
        let is_gone = |held: &Held| held.expires <= now;
        let is_program = |held: &&Held| held.number == 0 && is_gone(held);
        let expired = holders.values().filter(is_program).map(|held| held.count).sum();
        holders.retain(|_, held| !is_gone(held));
        let total: u32 = holders.values().map(|held| held.count).sum();
        let old = holders.get(&call.holder).copied();
        let own = old.map_or(0, |held| held.count);
        let (held, is_done) = match call.op {
            PermitOp::Hold(wanted) if old.is_some_and(|old| old.number > wanted.number) => {
                (None, false)
            }
            PermitOp::Hold(wanted) => {
                let (count, is_done) = wanted.granted(own, total);
                let lasts = if count > 0 { wanted.ttl } else { wanted.ttl.min(LATE) };
                (Some(Held { count, number: wanted.number, expires: now + lasts }), is_done)
            }
            PermitOp::Revoke { late } => {
                (Some(Held { count: 0, number: 1, expires: now + late }), own > 0)
            }
            PermitOp::Renew { .. } | PermitOp::Release if old.is_none_or(|old| old.number > 0) => {
                (None, false)
            }
            PermitOp::Renew { ttl } => {
                (Some(Held { count: own, number: 0, expires: now + ttl }), true)
            }
            PermitOp::Release => (Some(Held { count: 0, number: 0, expires: now }), true),
        };
        if let Some(held) = held {
            holders.insert(call.holder, held);
        }
        holders.retain(|_, held| held.count > 0 || held.number > 0);
        let count = holders.get(&call.holder).map_or(0, |held| held.count);
        PermitReply { held: count, total: total - own + count, expired, is_done }
    }
}
