//! A gate over the store answers as recorded, and as the model.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tollgate::{AlgorithmKind, Start, Timestamp};
use tollgate_policy::{Gate, Limit, Policy};
use tollgate_redis::engine::{Engine, EngineError, Entry, Exchange, Model, Reply};
use tollgate_redis::{Name, RedisStore, Settings};
use tollgate_testing::conformance::{histories, recorded};
use tollgate_testing::{Limit as Wanted, Observed, Subject};

/// A model whose clock the test moves.
#[derive(Clone)]
struct Shared(Arc<Model>);

impl Engine for Shared {
    async fn run(&self, entries: &[Entry]) -> Result<Reply, EngineError> {
        self.0.run(entries).await
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool, EngineError> {
        self.0.exchange(exchange).await
    }

    fn slot(&self, name: &Name) -> u16 {
        self.0.slot(name)
    }

    async fn announce(&self, node: Name, lifetime: Duration) -> Result<u32, EngineError> {
        self.0.announce(node, lifetime).await
    }

    async fn born(&self, name: Name) -> Result<Timestamp, EngineError> {
        self.0.born(name).await
    }
}

struct InStore {
    gate: Gate<RedisStore<Shared>>,
    model: Arc<Model>,
    runtime: Runtime,
}

impl InStore {
    fn new(wanted: &Wanted) -> Self {
        let model = Arc::new(Model::new(wanted.born));
        let limit = Limit::new("l", wanted.quota.to_string()).algorithm(wanted.kind).per(["user"]);
        let starts_empty = wanted.start == Start::Empty;
        let limit = if starts_empty { limit.start_empty() } else { limit };
        let policy = Policy::builder().limit(limit.capacity(7)).build().unwrap();
        // What is remembered is not told to the nanosecond.
        let settings = Settings::default().nodes(1.try_into().unwrap()).remembered(0);
        let store = RedisStore::new(Shared(Arc::clone(&model)), &settings).unwrap();
        let gate = Gate::with_store(policy, store).unwrap();
        let mut subject =
            Self { gate, model, runtime: Builder::new_current_thread().build().unwrap() };
        // The limit is born when it is first asked for.
        subject.peek("nobody", 0, wanted.born);
        subject
    }

    fn settle(&self, key: &str, reserved: u64, actual: u64, now: Timestamp) {
        self.model.set_now(now);
        self.runtime.block_on(self.gate.settle_limit("l", &[key], reserved, actual)).unwrap();
    }
}

impl Subject for InStore {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.model.set_now(now);
        self.runtime.block_on(self.gate.check_limit("l", &[key], cost)).unwrap().into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.model.set_now(now);
        self.runtime.block_on(self.gate.peek_limit("l", &[key], cost)).unwrap().into()
    }

    fn charge(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.settle(key, 0, amount, now);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.settle(key, amount, 0, now);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.model.set_now(now);
        self.runtime.block_on(self.gate.reset_limit("l", &[key])).unwrap();
    }
}

#[test]
fn a_gate_over_the_store_answers_as_recorded() {
    for kind in AlgorithmKind::ALL {
        recorded(kind, InStore::new);
    }
}

#[test]
fn a_gate_over_the_store_answers_as_the_model() {
    for kind in AlgorithmKind::ALL {
        histories(kind, 40, InStore::new);
    }
}
