//! How much requests matter.

use super::value::{NONE, Value};
use super::{matches, who};
use crate::policy::priority::PriorityRules;

/// The keys of `[priority]`, for the tiers of these names.
pub(super) fn values(rules: Option<&PriorityRules>, names: &[String]) -> Vec<Value> {
    let unset = PriorityRules::default();
    let PriorityRules { default, header, tiers, rules } = rules.unwrap_or(&unset);
    let mut values = vec![
        Value::new("priority.default", default.name()),
        Value::new("priority.header", header.as_ref().map_or(NONE, |name| name.as_str())),
    ];
    values.extend(names.iter().zip(tiers).filter_map(|(name, class)| {
        Some(Value::new(format!("priority.tier.{name}"), class.as_ref()?.name()))
    }));
    values.extend(rules.iter().enumerate().map(|(index, (class, rule))| {
        let requests = who::requests(rule);
        let requests = if requests.is_empty() { "every request".to_owned() } else { requests };
        let value = Value::new(
            format!("priority.rule.{}", index + 1),
            format!("{} for {requests}", class.name()),
        );
        // Values of headers are not shown.
        value.exact(format!("{} {}", class.name(), matches::exact(rule)))
    }));
    values
}
