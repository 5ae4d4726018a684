use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request as HttpRequest;
use spillgate::{AlgorithmKind, Quota, Timestamp};
use spillgate_policy::store::Store;
use spillgate_policy::{
    Accept, Error, Gate, Identity, Limit, Policy, Receipt, RequestView, Terms, Tier,
};
use tokio::runtime::Runtime;

use super::{Caller, Moving, Own, Quotas};

/// A limit in a [`Gate`] over any store, whose requests name a user and its tier.
pub struct MovingGate<S: Store> {
    kind: AlgorithmKind,
    quotas: Quotas,
    gate: Gate<S>,
    runtime: Arc<Runtime>,
    set_now: Box<dyn Fn(Timestamp)>,
    restart: Restart<S>,
    receipts: HashMap<usize, Receipt>,
}

/// Makes a gate anew with what another has kept, at a time.
type Restart<S> = Box<dyn Fn(&Gate<S>, Policy, Timestamp) -> Gate<S>>;

impl<S: Store> MovingGate<S> {
    /// A gate over a store whose time the test moves.
    ///
    /// # Errors
    ///
    /// If the store cannot keep the limit.
    pub fn new(
        kind: AlgorithmKind,
        quotas: &Quotas,
        store: S,
        runtime: Arc<Runtime>,
        set_now: impl Fn(Timestamp) + 'static,
        restart: impl Fn(&Gate<S>, Policy, Timestamp) -> Gate<S> + 'static,
    ) -> Result<Self, Error> {
        let gate = Gate::with_store(policy(kind, quotas)?, store)?;
        Ok(Self {
            kind,
            quotas: quotas.clone(),
            gate,
            runtime,
            set_now: Box::new(set_now),
            restart: Box::new(restart),
            receipts: HashMap::new(),
        })
    }

    fn at<T>(&self, now: Timestamp, answer: impl Future<Output = Result<T, Error>>) -> T {
        (self.set_now)(now);
        match self.runtime.block_on(answer) {
            Ok(answer) => answer,
            Err(error) => panic!("the store did not answer: {error}"),
        }
    }

    /// Ends what is over of the overrides set here, where the store does not by itself.
    pub fn expire_overrides(&self, now: Timestamp) {
        self.at(now, self.gate.expire_overrides());
    }

    fn policy(&self, quotas: &Quotas) -> Policy {
        policy(self.kind, quotas).unwrap_or_else(|why| panic!("{why}"))
    }
}

fn policy(kind: AlgorithmKind, quotas: &Quotas) -> Result<Policy, Error> {
    let identity = Identity::new()
        .trusted_proxies(["10.0.0.0/8"])
        .user("x-user", Accept::closure(|_| true))
        .tier_header("x-tier");
    // Room for all: what is forgotten for want of room is not what this is about.
    let limit = Limit::new("l", quotas.base.to_string())
        .algorithm(kind)
        .per(["user"])
        .cost_header("x-cost", 1)
        .capacity(50);
    let builder = Policy::builder().identity(identity).limit(limit);
    let tier = |builder: spillgate_policy::PolicyBuilder, (name, quota): &(&str, Quota)| {
        builder.tier(*name, Tier::new().quota("l", quota.to_string()))
    };
    quotas.tiers.iter().fold(builder, tier).build()
}

impl<S: Store> Moving for MovingGate<S> {
    fn check(&mut self, caller: Caller, cost: u64, now: Timestamp) -> bool {
        self.outcome(caller, cost, now).is_allowed()
    }

    /// Only for callers without a tier: a peek by name has none.
    fn retry_after(&mut self, caller: Caller, cost: u64, now: Timestamp) -> Option<Duration> {
        let names = [caller.key];
        let peek = self.gate.peek_limit("l", &names, cost);
        caller.tier.map_or_else(|| self.at(now, peek).retry_after(), |_| None)
    }

    fn reserve(&mut self, caller: Caller, cost: u64, number: usize, now: Timestamp) -> bool {
        let mut outcome = self.outcome(caller, cost, now);
        self.receipts.extend(outcome.receipt().map(|receipt| (number, receipt)));
        outcome.is_allowed()
    }

    fn settle(&mut self, number: usize, actual: u64, now: Timestamp) {
        if let Some(receipt) = self.receipts.remove(&number) {
            let _ = self.at(now, self.gate.settle_actual(receipt, actual));
        }
    }

    fn debit(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.at(now, self.gate.settle_limit("l", &[key], 0, amount));
    }

    fn refund(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.at(now, self.gate.settle_limit("l", &[key], amount, 0));
    }

    fn reset(&mut self, key: &'static str, now: Timestamp) {
        self.at(now, self.gate.reset_limit("l", &[key]));
    }

    fn set_override(&mut self, key: &'static str, own: Option<Own>, now: Timestamp) {
        match own {
            Some(Own { quota, until }) => {
                let terms = until.map_or_else(Terms::permanent, Terms::until);
                self.at(now, self.gate.set_override("l", &[key], quota, terms));
            }
            None => {
                self.at(now, self.gate.remove_override("l", &[key]));
            }
        };
    }

    fn reload(&mut self, quotas: &Quotas, now: Timestamp) {
        (self.set_now)(now);
        // Unless that would end a reservation, the limit is removed first, as by mistake, and
        // put back.
        let is_reserved = !self.receipts.is_empty();
        let policies = [Policy::builder().build(), Ok(self.policy(quotas))];
        for policy in policies.into_iter().skip(usize::from(is_reserved)) {
            if let Err(why) = policy.and_then(|policy| self.gate.replace(policy)) {
                panic!("{quotas}: {why}");
            }
        }
        self.quotas = quotas.clone();
    }

    fn restart(&mut self, now: Timestamp) {
        (self.set_now)(now);
        self.receipts.clear();
        let _entered = self.runtime.enter();
        self.gate = (self.restart)(&self.gate, self.policy(&self.quotas), now);
    }

    fn remaining(&mut self, key: &'static str, now: Timestamp) -> u64 {
        self.at(now, self.gate.peek_limit("l", &[key], 0)).remaining()
    }
}

impl<S: Store> MovingGate<S> {
    fn outcome(
        &self,
        caller: Caller,
        cost: u64,
        now: Timestamp,
    ) -> spillgate_policy::Outcome<'static> {
        let request = HttpRequest::get("/").header("x-user", caller.key).header("x-cost", cost);
        let request = match caller.tier {
            Some(tier) => request.header("x-tier", tier),
            None => request,
        };
        let (parts, ()) = match request.body(()) {
            Ok(request) => request.into_parts(),
            Err(why) => panic!("{why}"),
        };
        let request = RequestView::from_parts(&parts, Some([10, 0, 0, 1].into()));
        self.at(now, self.gate.decide(&request))
    }
}

impl<S: Store> std::fmt::Debug for MovingGate<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MovingGate").field("gate", &self.gate).finish_non_exhaustive()
    }
}
