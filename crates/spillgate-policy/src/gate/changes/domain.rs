//! Trees of descriptors: what is known beside their limits.

use super::value::Value;
use crate::envoy::{Descriptors, Found, Limited, node_name};

/// Nodes without a limit, what limits at nodes replace, and the order in which wildcards are tried.
pub(super) fn values(descriptors: &Descriptors) -> Vec<Value> {
    let mut values = Vec::new();
    for (domain, tree) in descriptors.trees() {
        let name = node_name("", domain, None);
        tree.for_each(&name, &mut |name, found| match found {
            Found::Wildcards(wildcards) => {
                let key = format!("domain.{name}.order");
                values.push(Value::new(key, wildcards.join(", ")));
            }
            Found::Node(met) => {
                let text = match met.map(|met| met.limited) {
                    None => "known, without a limit",
                    Some(Limited::Not) => "unlimited",
                    // Told as a limit.
                    Some(Limited::By(_)) => "",
                };
                let names = met.and_then(|met| met.name.as_deref());
                if !text.is_empty() {
                    let called = names.map(|name| format!(", called {name}")).unwrap_or_default();
                    values.push(Value::new(format!("domain.{name}"), format!("{text}{called}")));
                }
                let replaces = met.map(|met| met.replaces.join(", ")).unwrap_or_default();
                if !replaces.is_empty() {
                    values.push(Value::new(format!("domain.{name}.replaces"), replaces));
                }
            }
        });
    }
    values
}
