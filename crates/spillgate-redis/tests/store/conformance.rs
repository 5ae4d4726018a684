//! A gate over the store answers as recorded, and as the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spillgate::{AlgorithmKind, Timestamp};
use spillgate_policy::{Gate, Policy};
use spillgate_redis::backend::{
    Alive, Announcement, Backend, BackendError, EditPage, Entry, Exchange, Model, PermitCall,
    PermitReply, Reply, SealedEdit, Swap, Swapped,
};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{Name, RedisStore, Secret, Settings};
use spillgate_testing::conformance::{histories, recorded};
use spillgate_testing::moving::{MovingGate, Quotas, moving, policy_under_load, under_load};
use spillgate_testing::{InGate, Limit, Subject};
use tokio::runtime::{Builder, Runtime};

use crate::common;

/// Redis whose clock the test moves.
trait Timed: Backend {
    fn set_now(&self, now: Timestamp);
}

impl Timed for Model {
    fn set_now(&self, now: Timestamp) {
        Model::set_now(self, now);
    }
}

/// A server that decides at any time. Limits are born by its own clock, so not there.
struct Real {
    server: Client,
    model: Model,
}

impl Timed for Real {
    fn set_now(&self, now: Timestamp) {
        self.model.set_now(now);
        // The test's time goes back by days, while that of the server that expires goes on.
        self.server.set_now(now, Duration::from_secs(1000));
    }
}

impl Backend for Real {
    async fn run(&self, entries: &[Entry]) -> Result<Reply, BackendError> {
        self.server.run(entries).await
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool, BackendError> {
        self.server.exchange(exchange).await
    }

    fn slot(&self, name: &Name) -> u16 {
        self.server.slot(name)
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Alive, BackendError> {
        self.server.announce(announcement).await
    }

    async fn forget(&self, name: Name) -> Result<(), BackendError> {
        self.server.forget(name).await
    }

    async fn born(&self, name: Name) -> Result<Timestamp, BackendError> {
        self.model.born(name).await
    }

    async fn deposit(
        &self,
        name: Name,
        kept: &[u8],
        lifetime: Duration,
    ) -> Result<(), BackendError> {
        self.server.deposit(name, kept, lifetime).await
    }

    async fn withdraw(&self, name: Name) -> Result<Option<Vec<u8>>, BackendError> {
        self.server.withdraw(name).await
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool, BackendError> {
        self.server.publish(edits).await
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage, BackendError> {
        self.server.edits_since(version).await
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply, BackendError> {
        self.server.permits(call).await
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped, BackendError> {
        self.server.swap_strikes(name, swap).await
    }
}

fn in_store<E: Timed>(
    redis: &Arc<E>,
    runtime: &Arc<Runtime>,
    wanted: &Limit,
) -> InGate<RedisStore<Arc<E>>> {
    let store = RedisStore::new(Arc::clone(redis), &settings()).unwrap();
    let redis = Arc::clone(redis);
    let set_now = move |now| redis.set_now(now);
    let mut subject = InGate::new(wanted, store, Arc::clone(runtime), set_now).unwrap();
    // The limit is born when it is first asked for.
    subject.peek("nobody", 0, wanted.born);
    subject
}

fn settings() -> Settings {
    static SUBJECTS: AtomicU64 = AtomicU64::new(0);
    // Each has names of its own, so that one Redis serves them all.
    let number = SUBJECTS.fetch_add(1, Ordering::Relaxed);
    let secret = Secret::new(format!("a secret of subject {number}")).unwrap();
    // What is remembered is not told to the nanosecond.
    Settings::default()
        .nodes(1.try_into().unwrap())
        .remembered(0)
        .secret(secret)
        .margin(Duration::from_secs(1000))
}

/// A gate over the store, whose restarts find what Redis has kept.
fn moving_in_store<E: Timed>(
    redis: &Arc<E>,
    runtime: &Arc<Runtime>,
    kind: AlgorithmKind,
    quotas: &Quotas,
) -> MovingGate<RedisStore<Arc<E>>> {
    let settings = settings();
    let store = RedisStore::new(Arc::clone(redis), &settings).unwrap();
    let restart = move |old: &Gate<RedisStore<Arc<E>>>, policy: Policy, _| {
        let redis = Arc::clone(old.store().backend());
        Gate::with_store(policy, RedisStore::new(redis, &settings).unwrap()).unwrap()
    };
    let redis = Arc::clone(redis);
    let set_now = move |now| redis.set_now(now);
    MovingGate::new(kind, quotas, store, Arc::clone(runtime), set_now, restart).unwrap()
}

fn runtime() -> Arc<Runtime> {
    Arc::new(Builder::new_current_thread().enable_all().build().unwrap())
}

#[test]
fn a_gate_over_the_store_answers_as_recorded() {
    let (model, runtime) = (Arc::new(Model::default()), runtime());
    for kind in AlgorithmKind::ALL {
        recorded(kind, |wanted| in_store(&model, &runtime, wanted));
    }
}

#[test]
fn a_gate_over_the_store_answers_as_the_model() {
    let runtime = runtime();
    for kind in AlgorithmKind::ALL {
        let model = |wanted: &Limit| Arc::new(Model::new(wanted.born));
        histories(kind, 40, |wanted| in_store(&model(wanted), &runtime, wanted));
    }
}

#[test]
fn what_moves_over_the_store_forgives_nothing() {
    let runtime = runtime();
    for kind in AlgorithmKind::ALL {
        moving(kind, 75, |kind, quotas, start| {
            moving_in_store(&Arc::new(Model::new(start)), &runtime, kind, quotas)
        });
    }
}

#[test]
fn a_gate_over_a_real_server_answers_as_recorded_and_as_the_model() {
    for redis in [common::Server::redis(), common::Server::valkey()] {
        let runtime = runtime();
        let options = Options::new(&redis.url()).unwrap().command_time_out(Duration::from_secs(10));
        let server = runtime.block_on(Client::connect(options)).unwrap();
        let real = Arc::new(Real { server, model: Model::default() });
        for kind in AlgorithmKind::ALL {
            let subject = |wanted: &Limit| in_store(&real, &runtime, wanted);
            recorded(kind, subject);
            histories(kind, 5, subject);
            moving(kind, 20, |kind, quotas, _| moving_in_store(&real, &runtime, kind, quotas));
        }
    }
}

#[test]
fn what_moves_over_a_real_server_under_load_spends_every_call_once() {
    let redis = common::Server::redis();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = Options::new(&redis.url()).unwrap().command_time_out(Duration::from_secs(10));
    let server = Arc::new(runtime.block_on(Client::connect(options)).unwrap());
    for kind in AlgorithmKind::ALL {
        let _entered = runtime.enter();
        let store = RedisStore::new(Arc::clone(&server), &settings()).unwrap();
        let gate = Gate::with_store(policy_under_load(kind, 50), store).unwrap();
        under_load(kind, &gate, &runtime, 300, |gate| {
            gate.replace(policy_under_load(kind, 51)).unwrap();
        });
    }
}
