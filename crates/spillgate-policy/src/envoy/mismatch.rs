//! Why a descriptor does not meet what it could have been meant for.

use super::tree::Lost;
use super::{DomainLimits, Pattern, Scope, node_name};
use crate::suggest::{hint, quoted};

impl Scope {
    /// Why the limit is not for a descriptor of its domain.
    pub(crate) fn mismatch(&self, entries: &[(&str, &str)]) -> Option<String> {
        let Pattern::Entries(wanted) = &self.pattern else { return None };
        if self.is_for(entries) {
            return None;
        }
        for (key, value) in wanted {
            let mut found = entries.iter().filter(|(other, _)| *other == &**key);
            match (found.next(), found.next()) {
                (None, _) => return Some(format!("there is no entry {}", quoted(key))),
                (Some(_), Some(_)) => {
                    return Some(format!("the entry {} is there twice", quoted(key)));
                }
                (Some((_, given)), None) if !value.matches(given) => {
                    let wanted = quoted(&value.to_string());
                    return Some(format!("the entry {} is not {wanted}", quoted(key)));
                }
                (Some(_), None) => {}
            }
        }
        let is_wanted = |key: &str| wanted.iter().any(|(wanted, _)| **wanted == *key);
        let more = entries.iter().find(|(key, _)| !is_wanted(key));
        more.map(|(key, _)| format!("it has an entry {} more", quoted(key)))
    }
}

impl DomainLimits {
    /// Why a descriptor ends at no node of the tree; `None` if it does, or there is no tree.
    pub(crate) fn lost(&self, domain: &str, entries: &[(&str, &str)]) -> Option<String> {
        if self.tree.is_empty() {
            return None;
        }
        Some(explain(&node_name("", domain, None), self.tree.lost(entries)?))
    }
}

fn explain(domain: &str, Lost { above, key, known }: Lost<'_, '_>) -> String {
    let above =
        above.iter().fold(domain.to_owned(), |name, (key, value)| node_name(&name, key, *value));
    match key {
        None => "it has no entries".to_owned(),
        Some((key, _)) if known.is_empty() => {
            format!("there is nothing below {above}, and it goes on with {}", quoted(key))
        }
        Some((key, None)) => {
            format!(
                "there is no rule for the key {} below {above}{}",
                quoted(key),
                hint(key, known)
            )
        }
        Some((key, Some(value))) => {
            let hint = hint(value, known);
            format!("no rule for {} below {above} has this value{hint}", quoted(key))
        }
    }
}
