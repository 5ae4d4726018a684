//! A server of which one connection at a time is fuzzed.

use std::sync::{Arc, LazyLock};

use spillgate_policy::{Gate, Policy};
use spillgate_server::{AnyStore, App};
use tokio::runtime::{Builder, Runtime};

pub static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

pub fn app(policy: &str) -> Arc<App> {
    let gate = Gate::with_store(Policy::from_toml(policy).expect("a policy"), AnyStore::default());
    let gate = Arc::new(gate.expect("a small table"));
    Arc::new(App::new(gate, policy))
}
