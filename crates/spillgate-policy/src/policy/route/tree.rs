//! Many patterns of paths, matched at once.

use std::collections::HashMap;
use std::mem;

use smallvec::SmallVec;
use spillgate::KeyedState;

use super::path::{CanonicalPath, Segments, is_literal};
use super::pattern::{MOST_BYTES, Pattern};
use super::segment::Segment;

/// Values by patterns: a tree with a level for each segment.
///
/// A path meets all its patterns, not only the most specific, so a search follows both
/// the literal and the parameter. It allocates nothing and sees no node twice and none
/// deeper than the longest pattern, however long the path.
#[derive(Debug)]
pub(super) struct PathTree<T> {
    root: Node<T>,
}

/// The values of one pattern, mostly one.
type Values<T> = SmallVec<[T; 1]>;

#[derive(Debug)]
struct Node<T> {
    literals: Literals<T>,
    parameter: Option<Box<Node<T>>>,
    /// Of patterns that end here.
    here: Values<T>,
    /// Of patterns that go on with `{*rest}`.
    below: Values<T>,
}

impl<T> PathTree<T> {
    pub(super) fn insert(&mut self, pattern: &Pattern, value: T) {
        let mut node = &mut self.root;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Literal(literal) => node.literals.entry(literal),
                Segment::One(_) => node.parameter.get_or_insert_default(),
                Segment::Rest(_) => return node.below.push(value),
            };
        }
        node.here.push(value);
    }

    /// Visits the values of all patterns that match, in no particular order.
    pub(super) fn for_each(&self, path: &CanonicalPath<'_>, visit: &mut impl FnMut(&T)) {
        self.root.for_each(path.segments(), path.ignores_case(), visit);
    }
}

impl<T> Node<T> {
    /// Recurs no deeper than patterns may be long.
    fn for_each(&self, mut segments: Segments<'_>, ignores_case: bool, visit: &mut impl FnMut(&T)) {
        let Some(segment) = segments.next() else {
            return self.here.iter().for_each(visit);
        };
        self.below.iter().for_each(&mut *visit);
        if let Some(child) = self.literals.get(segment, ignores_case) {
            child.for_each(segments, ignores_case, visit);
        }
        if let Some(child) = &self.parameter {
            child.for_each(segments, ignores_case, visit);
        }
    }
}

/// The children for literal segments. Few are found fastest by looking at each, and
/// most nodes have but one.
#[derive(Debug)]
enum Literals<T> {
    Few(Vec<(Box<[u8]>, Node<T>)>),
    Many(HashMap<Box<[u8]>, Node<T>, KeyedState>),
}

/// Up to how many are few.
const FEW: usize = 8;

impl<T> Literals<T> {
    fn get(&self, segment: &[u8], ignores_case: bool) -> Option<&Node<T>> {
        match self {
            Self::Few(few) => {
                let mut few = few.iter();
                let found = few.find(|(literal, _)| is_literal(literal, segment, ignores_case));
                found.map(|(_, node)| node)
            }
            // No literal is longer, and hashing would be work that an attacker can ask for.
            Self::Many(many) if segment.len() <= MOST_BYTES => {
                if !(ignores_case && segment.iter().any(u8::is_ascii_uppercase)) {
                    return many.get(segment);
                }
                let mut lower = SmallVec::<[u8; 64]>::from_slice(segment);
                lower.make_ascii_lowercase();
                many.get(&*lower)
            }
            Self::Many(_) => None,
        }
    }

    /// The child for a literal, put there if there is none.
    fn entry(&mut self, literal: &[u8]) -> &mut Node<T> {
        if let Self::Few(few) = self {
            if few.len() == FEW {
                *self = Self::Many(mem::take(few).into_iter().collect());
            }
        }
        match self {
            Self::Few(few) => {
                let known = few.iter().position(|(other, _)| **other == *literal);
                let index = known.unwrap_or_else(|| {
                    few.push((literal.into(), Node::default()));
                    few.len() - 1
                });
                &mut few[index].1
            }
            Self::Many(many) => many.entry(literal.into()).or_default(),
        }
    }
}

// Derived, these would ask for a `T` that has a default.
impl<T> Default for PathTree<T> {
    fn default() -> Self {
        Self { root: Node::default() }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self {
            literals: Literals::Few(Vec::new()),
            parameter: None,
            here: Values::new(),
            below: Values::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::pattern::tests::{canonical, parse, paths, patterns};
    use super::*;

    fn tree(patterns: &[Pattern]) -> PathTree<usize> {
        let mut tree = PathTree::default();
        for (index, pattern) in patterns.iter().enumerate() {
            tree.insert(pattern, index);
        }
        tree
    }

    fn matching(tree: &PathTree<usize>, path: &str) -> Vec<usize> {
        let mut found = Vec::new();
        tree.for_each(&canonical(path), &mut |index| found.push(*index));
        found.sort_unstable();
        found
    }

    #[test]
    fn a_path_meets_all_its_patterns() {
        let texts =
            ["/", "/a", "/{x}", "/{*x}", "/a/b", "/a/{x}", "/{x}/b", "/{x}/{y}", "/a/{*x}", "/a"];
        let patterns = texts.map(|text| parse(text).unwrap());
        let tree = tree(&patterns);
        let cases: &[(&str, &[usize])] = &[
            ("/", &[0]),
            ("/a", &[1, 2, 3, 9]),
            ("/c", &[2, 3]),
            ("/a/b", &[3, 4, 5, 6, 7, 8]),
            ("/c/b", &[3, 6, 7]),
            ("/a/b/c", &[3, 8]),
        ];
        for (path, expected) in cases {
            assert_eq!(matching(&tree, path), *expected, "{path:?}");
        }
    }

    #[test]
    fn a_literal_is_found_among_few_and_many() {
        for count in [1, FEW, FEW + 1, 1_000] {
            // Every pattern twice, so that some are there already.
            let texts = (0..count).chain(0..count).map(|number| format!("/a/{number}/{{id}}"));
            let tree = tree(&texts.map(|text| parse(&text).unwrap()).collect::<Vec<_>>());
            for number in 0..count {
                assert_eq!(matching(&tree, &format!("/a/{number}/7")), [number, number + count]);
            }
            assert_eq!(matching(&tree, &format!("/a/{count}/7")), [0_usize; 0]);
            assert_eq!(
                matching(&tree, &format!("/a/{}/7", "0".repeat(MOST_BYTES + 1))),
                [0_usize; 0]
            );
        }
    }

    #[test]
    fn a_very_long_path_is_no_deeper_than_the_patterns() {
        let patterns = ["/{a}/{b}", "/{a}/{*rest}"].map(|text| parse(text).unwrap());
        let tree = tree(&patterns);
        assert_eq!(matching(&tree, &"/a".repeat(1_000_000)), [1]);
        assert_eq!(matching(&tree, &format!("/a/{}", "b".repeat(1_000_000))), [0, 1]);
    }

    proptest! {
        #![proptest_config(spillgate_testing::strategy::cases(2_000))]

        #[test]
        fn the_tree_finds_what_each_pattern_matches(
            patterns in vec(patterns(), 0..12),
            path in paths(),
        ) {
            let canonical = canonical(&path);
            let expected = (0..patterns.len())
                .filter(|index| patterns[*index].matches(&canonical))
                .collect::<Vec<_>>();
            prop_assert_eq!(matching(&tree(&patterns), &path), expected);
        }
    }
}
