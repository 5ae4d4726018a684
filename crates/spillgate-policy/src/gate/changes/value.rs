//! The value of one key, to be compared and shown.

use std::borrow::Cow;
use std::collections::HashMap;

use super::effect::Measure;
use super::entries::Entries;

/// The value of one key.
pub(super) struct Value {
    pub(super) key: Cow<'static, str>,
    /// For people: secrets are fingerprints, and long lists are counted.
    pub(super) shown: String,
    /// What tells it from others.
    exact: String,
    /// Whether more or less of it is stricter.
    pub(super) measure: Measure,
    /// Who is affected, if these are not all.
    pub(super) who: Option<String>,
    /// What tells values of the same key apart: the caller of an override.
    id: Vec<u8>,
    /// If it is a list.
    pub(super) entries: Entries,
}

impl Value {
    pub(super) fn new(key: impl Into<Cow<'static, str>>, shown: impl Into<String>) -> Self {
        let shown = shown.into();
        Self {
            key: key.into(),
            exact: shown.clone(),
            shown,
            measure: Measure::Nothing,
            who: None,
            id: Vec::new(),
            entries: Entries::default(),
        }
    }

    /// The same, told from others by a text that is not shown.
    pub(super) fn exact(self, exact: impl Into<String>) -> Self {
        Self { exact: exact.into(), ..self }
    }

    pub(super) fn measure(self, measure: Measure) -> Self {
        Self { measure, ..self }
    }

    pub(super) fn who(self, who: String) -> Self {
        Self { who: Some(who), ..self }
    }

    /// The value of one caller.
    pub(super) fn of_caller(self, id: &[u8], who: String) -> Self {
        Self { who: Some(who), id: id.to_vec(), ..self }
    }

    /// A list, which is told from others by its entries.
    pub(super) fn entries(self, entries: Entries) -> Self {
        let exact = format!("{}{:?}", self.exact, entries.keys());
        Self { entries, exact, ..self }
    }

    /// What stands for a key that the other side does not have.
    fn missing(&self) -> Self {
        Self { who: self.who.clone(), ..Self::new(self.key.clone(), NONE) }
    }
}

/// What a key is shown as that is not there. One that has this value is the same.
pub(super) const NONE: &str = "none";

/// The values of two sides that differ: in the order of the new side, then those that it lacks.
pub(super) fn differing<'v>(
    old: &'v [Value],
    new: &'v [Value],
) -> impl Iterator<Item = Difference<'v>> {
    // By their keys, since there can be thousands of overrides.
    let by_key = |values: &'v [Value]| -> HashMap<_, _> {
        values.iter().map(|value| ((&value.key, &value.id), value)).collect()
    };
    let (before, now) = (by_key(old), by_key(new));
    let changed = new.iter().filter_map(move |new| match before.get(&(&new.key, &new.id)) {
        Some(old) => (old.exact != new.exact).then_some(Difference::Changed(old, new)),
        None => (new.exact != NONE).then(|| Difference::Added(new.missing(), new)),
    });
    let is_gone = move |old: &&Value| !now.contains_key(&(&old.key, &old.id)) && old.exact != NONE;
    let gone = old.iter().filter(is_gone);
    changed.chain(gone.map(|old| Difference::Removed(old, old.missing())))
}

/// A value before and after.
pub(super) enum Difference<'v> {
    Changed(&'v Value, &'v Value),
    Added(Value, &'v Value),
    Removed(&'v Value, Value),
}

impl Difference<'_> {
    pub(super) fn sides(&self) -> (&Value, &Value) {
        match self {
            Self::Changed(old, new) => (old, new),
            Self::Added(old, new) => (old, new),
            Self::Removed(old, new) => (old, new),
        }
    }
}
