//! Many patterns of hosts, matched at once.

use std::collections::HashMap;

use spillgate::KeyedState;

use super::host::HostPattern;

/// Values by host patterns: one for each.
#[derive(Debug)]
pub(super) struct HostTable<T> {
    exact: HashMap<Box<str>, T, KeyedState>,
    wildcards: HashMap<Box<str>, T, KeyedState>,
    /// The most labels that the domain of a wildcard has.
    deepest: usize,
}

impl<T> HostTable<T> {
    /// The value of a pattern, put there if there is none.
    pub(super) fn entry(&mut self, pattern: &HostPattern) -> &mut T
    where
        T: Default,
    {
        let name = pattern.name.clone();
        if !pattern.wildcard {
            return self.exact.entry(name).or_default();
        }
        self.deepest = self.deepest.max(name.split('.').count());
        self.wildcards.entry(name).or_default()
    }

    /// Visits the values of all patterns that match the canonical host.
    pub(super) fn for_each(&self, host: &str, visit: &mut impl FnMut(&T)) {
        if let Some(value) = self.exact.get(host) {
            visit(value);
        }
        // From the right, so that a host of many labels is no more work than one of few.
        for (dot, _) in host.rmatch_indices('.').take(self.deepest) {
            if let Some(value) = self.wildcards.get(&host[dot + 1..]) {
                visit(value);
            }
        }
    }
}

// Derived, it would ask for a `T` that has a default.
impl<T> Default for HostTable<T> {
    fn default() -> Self {
        Self { exact: HashMap::default(), wildcards: HashMap::default(), deepest: 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(spillgate_testing::strategy::cases(2_000))]

        #[test]
        fn the_table_finds_what_each_pattern_matches(
            patterns in vec("(\\*\\.)?[ab](\\.[ab]){0,3}", 0..12),
            host in "[ab](\\.[ab]){0,5}",
        ) {
            let mut table = HostTable::<Vec<usize>>::default();
            let mut expected = Vec::new();
            for (index, text) in patterns.iter().enumerate() {
                let pattern = HostPattern::parse(text).unwrap();
                table.entry(&pattern).push(index);
                expected.extend(pattern.matches(&host).then_some(index));
            }
            let mut found = Vec::<usize>::new();
            table.for_each(&host, &mut |indexes| found.extend(indexes));
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
