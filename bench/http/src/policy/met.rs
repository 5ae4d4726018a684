//! One request, several limits.

use std::sync::Arc;

use spillgate_policy::{Limit, Policy};

use super::scene::{Call, Scene, caller};
use super::{Comparison, nothing};
use crate::Result;

pub const MET: Comparison = Comparison {
    name: "policy met",
    remark: "a thousand callers; each limit counts them for itself",
    scenes,
    promises: nothing,
};

/// None is stricter than another in all, or it would be refused as one too many.
const QUOTAS: [&str; 4] = [
    "40000000/s burst 1000000",
    "30000000/s burst 2000000",
    "20000000/s burst 3000000",
    "10000000/s burst 4000000",
];

fn scenes() -> Result<Vec<Scene>> {
    (0..=QUOTAS.len()).map(scene).collect()
}

fn scene(count: usize) -> Result<Scene> {
    let limits = QUOTAS[..count].iter().enumerate();
    let limits = limits.map(|(number, quota)| Limit::new(format!("limit-{number}"), *quota));
    let policy = limits.fold(Policy::builder(), |policy, limit| policy.limit(limit)).build()?;
    let path: Arc<str> = "/hello".into();
    let call = |number| Call { path: Arc::clone(&path), peer: caller(number) };
    Scene::new(format!("{count} met"), policy, (0..1_000).map(call).collect())
}
