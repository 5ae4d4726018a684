use std::sync::Arc;

use arc_swap::ArcSwap;
use spillgate_policy::LimitState;

/// Something for each limit, found without a lock or a map.
///
/// It is found by the limit's place in the policy, and compared by name: after a reload
/// another limit may be there. Then it is looked for elsewhere, or made.
///
/// Adding one copies its block, not all: there may be thousands of limits.
pub(crate) struct PerLimit<T> {
    blocks: ArcSwap<Vec<Arc<Block<T>>>>,
}

type Block<T> = [Option<Arc<Entry<T>>>; BLOCK];

const BLOCK: usize = 64;

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
        match find(&self.blocks.load(), limit.place()) {
            Some(entry) if *entry.name == *limit.name() => then(&entry.value),
            _ => then(&self.place(limit, make).value),
        }
    }

    #[cold]
    fn place(&self, limit: LimitState<'_>, make: impl FnOnce() -> T) -> Arc<Entry<T>> {
        let blocks = self.blocks.load();
        let mut entries = blocks.iter().flat_map(|block| block.iter().flatten());
        let entry = entries
            .find(|entry| *entry.name == *limit.name())
            .map(Arc::clone)
            .unwrap_or_else(|| Arc::new(Entry { name: limit.name().into(), value: make() }));
        let (block, place) = (limit.place() / BLOCK, limit.place() % BLOCK);
        self.blocks.rcu(|blocks| {
            let mut blocks = Vec::clone(blocks);
            if blocks.len() <= block {
                let empty = Arc::new([const { None }; BLOCK]);
                blocks.resize(block + 1, empty);
            }
            let mut changed = <Block<T>>::clone(&blocks[block]);
            changed[place] = Some(Arc::clone(&entry));
            blocks[block] = Arc::new(changed);
            blocks
        });
        entry
    }
}

#[inline]
fn find<T>(blocks: &[Arc<Block<T>>], place: usize) -> Option<&Entry<T>> {
    blocks.get(place / BLOCK)?[place % BLOCK].as_deref()
}

impl<T> Default for PerLimit<T> {
    fn default() -> Self {
        Self { blocks: ArcSwap::default() }
    }
}

#[cfg(test)]
mod tests {
    use spillgate_policy::{
        Descriptor, DescriptorOutcome, Descriptors, Gate, Limit, Policy, PolicyBuilder,
    };

    use super::*;

    #[test]
    fn whoever_adds_one_leaves_those_of_other_blocks_where_they_are() {
        let limits = (0..200).map(|number| {
            let limit = Limit::new(format!("l{number}"), "1/h").domain("edge");
            limit.descriptor("key", number.to_string())
        });
        let policy = limits.fold(Policy::builder(), PolicyBuilder::limit);
        let gate = Gate::new(policy.build().unwrap()).unwrap();
        let numbers = PerLimit::default();
        let number_of = |number: usize, made: usize| {
            let text = number.to_string();
            let entries = [("key", text.as_str())];
            let descriptors = &[Descriptor::new(&entries)];
            let question = Descriptors { domain: "edge", descriptors };
            let outcome = gate.try_decide(&question, |it| it.map(DescriptorOutcome::take));
            let outcome = outcome.unwrap().unwrap();
            let limit = outcome.outcome().limits().next().unwrap();
            numbers.with(limit, || made, |number| *number)
        };
        for number in 0..150 {
            assert_eq!(number_of(number, number), number);
        }
        let first = Arc::clone(&numbers.blocks.load()[0]);
        for number in 150..200 {
            assert_eq!(number_of(number, number), number);
        }
        assert!(Arc::ptr_eq(&first, &numbers.blocks.load()[0]));
        for number in 0..200 {
            assert_eq!(number_of(number, 999), number, "it is made once");
        }
    }
}
