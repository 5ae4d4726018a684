use std::sync::Arc;

use spillgate::{Start, Timestamp};
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Gate, Limit as PolicyLimit, Policy};
use tokio::runtime::Runtime;

use crate::{CheckLimit, Limit, Observed, Subject};

/// A limit in a [`Gate`] over any store whose time the test moves.
pub struct InGate<S: Store> {
    gate: Gate<S>,
    runtime: Arc<Runtime>,
    set_now: Box<dyn Fn(Timestamp)>,
}

impl<S: Store> InGate<S> {
    /// A gate with one limit, counted per user.
    ///
    /// # Errors
    ///
    /// If the store cannot keep the limit.
    pub fn new(
        wanted: &Limit,
        store: S,
        runtime: Arc<Runtime>,
        set_now: impl Fn(Timestamp) + 'static,
    ) -> Result<Self, Error> {
        // So few callers share a dozen slots that they reclaim each other's.
        let limit = PolicyLimit::new("l", wanted.quota.to_string())
            .algorithm(wanted.kind)
            .by_name()
            .per(["user"])
            .capacity(7);
        let limit = if wanted.start == Start::Empty { limit.start_empty() } else { limit };
        let gate = Gate::with_store(Policy::builder().limit(limit).build()?, store)?;
        Ok(Self { gate, runtime, set_now: Box::new(set_now) })
    }

    /// The gate's answer at a given time.
    fn at<T>(&self, now: Timestamp, answer: impl Future<Output = Result<T, Error>>) -> T {
        (self.set_now)(now);
        match self.runtime.block_on(answer) {
            Ok(answer) => answer,
            Err(error) => panic!("the store did not answer: {error}"),
        }
    }
}

impl<S: Store> Subject for InGate<S> {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.at(now, self.gate.check_limit("l", &[key], cost)).into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.at(now, self.gate.peek_limit("l", &[key], cost)).into()
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.at(now, self.gate.settle_limit("l", &[key], 0, amount));
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.at(now, self.gate.settle_limit("l", &[key], amount, 0));
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.at(now, self.gate.reset_limit("l", &[key]));
    }
}

impl<S: Store> std::fmt::Debug for InGate<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InGate").field("gate", &self.gate).finish_non_exhaustive()
    }
}
