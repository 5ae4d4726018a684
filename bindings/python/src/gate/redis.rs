//! Gates that share what callers have spent through Redis.
//!
//! Each has a runtime of its own with one thread. Both start with the first decision, and start again
//! in the child of a fork, where the parent's connections and threads are not.

use std::mem::ManuallyDrop;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use pyo3::prelude::*;
use spillgate_enforce::Enforcer;
use spillgate_policy::{Error, Gate};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Secret, Settings};
use tokio::runtime::{Builder, EnterGuard, Runtime};

use super::policy::Source;
use super::settings::Enforcing;
use crate::fork::{self, PerProcess};

/// Where Redis is, and how nodes share it.
pub(super) struct Sharing {
    pub(super) options: Options,
    pub(super) settings: Settings,
}

impl Sharing {
    pub(super) fn new(
        url: &str,
        prefix: &str,
        secret: Option<&str>,
        nodes: Option<NonZeroU32>,
    ) -> Result<Self, Error> {
        let options = Options::new(url).map_err(Error::store)?.prefix(prefix);
        let mut settings = Settings::default();
        if let Some(secret) = secret {
            settings = settings.secret(Secret::new(secret)?);
        }
        if let Some(nodes) = nodes {
            settings = settings.nodes(nodes);
        }
        Ok(Self { options, settings })
    }
}

/// A connection that is started when it is needed.
pub(super) struct Lazy {
    pub(super) sharing: Sharing,
    live: ArcSwapOption<Live>,
    /// Held while one is started.
    starting: PerProcess<()>,
}

impl Lazy {
    pub(super) fn new(sharing: Sharing) -> Self {
        Self { sharing, live: ArcSwapOption::empty(), starting: PerProcess::new() }
    }

    /// The gate of this process, if it has started.
    pub(super) fn started(&self) -> Option<Arc<Live>> {
        self.live.load_full().filter(|live| live.is_of_this_process())
    }

    /// The gate of this process.
    pub(super) fn live(
        &self,
        py: Python<'_>,
        source: &Source,
        enforcing: Enforcing,
    ) -> Result<Arc<Live>, Error> {
        if let Some(live) = self.started() {
            return Ok(live);
        }
        py.detach(|| {
            let starting = self.starting.get();
            let _starting = starting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(live) = self.started() {
                return Ok(live);
            }
            let live = Live::start(&self.sharing, source, enforcing)?;
            self.live.store(Some(Arc::clone(&live)));
            Ok(live)
        })
    }

    /// Takes the gate out, to close it.
    pub(super) fn take(&self) -> Option<Arc<Live>> {
        self.live.swap(None)
    }
}

/// A gate over Redis, and the runtime that it needs.
pub(super) struct Live {
    generation: u64,
    // Not dropped in the child of a fork, where nobody runs it and its locks may be held.
    runtime: ManuallyDrop<Runtime>,
    enforcer: ManuallyDrop<Enforcer<RedisStore>>,
}

impl Live {
    fn start(sharing: &Sharing, source: &Source, enforcing: Enforcing) -> Result<Arc<Self>, Error> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("spillgate-redis")
            .enable_all()
            .build()
            .map_err(Error::store)?;
        let enforcer = runtime.block_on(async {
            // Redis may be down: then limits follow their outage policy until it is up.
            let client = match Client::connect(sharing.options.clone()).await {
                Ok(client) => client,
                Err(_) => Client::connect_later(sharing.options.clone()).map_err(Error::store)?,
            };
            let store = RedisStore::new(client, &sharing.settings)?;
            let gate = Gate::with_store(source.compile()?, store)?;
            Ok::<_, Error>(enforcing.apply(Enforcer::new(gate)))
        })?;
        let following = enforcer.clone();
        runtime.spawn(async move { following.follow().await });
        let live = Arc::new(Self {
            generation: fork::generation(),
            runtime: ManuallyDrop::new(runtime),
            enforcer: ManuallyDrop::new(enforcer),
        });
        let running = RUNNING.get();
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|live| live.strong_count() > 0);
        running.push(Arc::downgrade(&live));
        drop(running);
        Ok(live)
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.generation == fork::generation()
    }

    pub(super) fn enforcer(&self) -> &Enforcer<RedisStore> {
        &self.enforcer
    }

    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
    }

    /// Gives leases and permits back.
    pub(super) fn close(&self) {
        if self.is_of_this_process() {
            self.block_on(self.enforcer.gate().store().shutdown());
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            return;
        }
        #[expect(unsafe_code, reason = "a field that is dropped here or not at all")]
        // SAFETY: neither field is used after this, since the struct is being dropped.
        let (runtime, enforcer) = unsafe {
            (ManuallyDrop::take(&mut self.runtime), ManuallyDrop::take(&mut self.enforcer))
        };
        let entered = runtime.enter();
        drop(enforcer);
        drop(entered);
        // Its thread may wait for the interpreter, which this thread may hold.
        runtime.shutdown_background();
    }
}

/// Every gate over Redis that has started.
static RUNNING: PerProcess<Vec<Weak<Live>>> = PerProcess::new();

/// Closes every gate, before the interpreter ends.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) {
    py.detach(|| {
        let running = RUNNING.get();
        let gates = std::mem::take(&mut *running.lock().unwrap_or_else(PoisonError::into_inner));
        let gates: Vec<_> = gates.iter().filter_map(Weak::upgrade).collect();
        gates.iter().for_each(|live| live.close());
    });
}
