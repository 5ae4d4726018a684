//! Trees of descriptors: what is known beside their limits.

use super::value::Value;
use crate::envoy::{Descriptors, Found, Limited, Reached, node_name};

/// Nodes that limit nothing, what limits at nodes replace, and the order in which wildcards are
/// tried.
pub(super) fn values(descriptors: &Descriptors) -> Vec<Value> {
    let mut values = Vec::new();
    for (domain, tree) in descriptors.trees() {
        let root = node_name("", domain, None);
        tree.for_each(&root, &mut |name, found| match found {
            Found::Wildcards(wildcards) => {
                values.push(Value::new(format!("domain.{name}.order"), wildcards.join(", ")));
            }
            Found::Node(node) => values.extend(node_values(name, node)),
        });
    }
    values
}

fn node_values(name: &str, Reached { met, below }: &Reached) -> Vec<Value> {
    let unlimited = |text: &str| {
        let called = met.as_ref().and_then(|met| met.name.as_deref());
        let called = called.map(|name| format!(", called {name}")).unwrap_or_default();
        Value::new(format!("domain.{name}"), format!("{text}{called}"))
    };
    let own = match met.as_ref().map(|met| met.limited) {
        Some(Limited::Not) => Some(unlimited("unlimited")),
        // Told as a limit.
        Some(Limited::By(_)) => None,
        // One that only leads to others says nothing by itself.
        None => below.is_empty().then(|| unlimited("known, without a limit")),
    };
    let replaces = met.as_ref().map(|met| met.replaces.join(", ")).filter(|it| !it.is_empty());
    let replaces = replaces.map(|it| Value::new(format!("domain.{name}.replaces"), it));
    own.into_iter().chain(replaces).collect()
}
