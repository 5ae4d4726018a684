use std::sync::Arc;

use arc_swap::ArcSwap;
use tollgate_policy::LimitState;

/// Something for each limit, found without a lock or a map.
///
/// It is found by the limit's place in the policy, and compared by name: after a reload
/// another limit may be there. Then it is looked for elsewhere, or made.
pub(crate) struct PerLimit<T> {
    entries: ArcSwap<Vec<Option<Arc<Entry<T>>>>>,
}

struct Entry<T> {
    name: Box<str>,
    value: T,
}

impl<T> PerLimit<T> {
    pub(crate) fn with<U>(
        &self,
        limit: LimitState<'_>,
        make: impl FnOnce() -> T,
        then: impl FnOnce(&T) -> U,
    ) -> U {
        match self.entries.load().get(limit.place()) {
            Some(Some(entry)) if *entry.name == *limit.name() => then(&entry.value),
            _ => then(&self.place(limit, make).value),
        }
    }

    #[cold]
    fn place(&self, limit: LimitState<'_>, make: impl FnOnce() -> T) -> Arc<Entry<T>> {
        let entries = self.entries.load();
        let same = entries.iter().flatten().find(|entry| *entry.name == *limit.name());
        let entry = same
            .map(Arc::clone)
            .unwrap_or_else(|| Arc::new(Entry { name: limit.name().into(), value: make() }));
        self.entries.rcu(|entries| {
            let mut entries = Vec::clone(entries);
            if entries.len() <= limit.place() {
                entries.resize(limit.place() + 1, None);
            }
            entries[limit.place()] = Some(Arc::clone(&entry));
            entries
        });
        entry
    }
}

impl<T> Default for PerLimit<T> {
    fn default() -> Self {
        Self { entries: ArcSwap::default() }
    }
}
