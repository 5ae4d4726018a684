use std::sync::atomic::{AtomicBool, Ordering};

use tollgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use tollgate::{AlgorithmKind, Error, Quota, Start, Timestamp};

use super::cache::Cache;
use crate::{Name, State, Terms};

/// Terms, and the algorithm that counts by them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) terms: Terms,
    pub(crate) algorithm: AnyAlgorithm,
}

impl Counted {
    /// By a quota of the policy.
    pub(crate) fn by(kind: AlgorithmKind, quota: Quota) -> Result<Self, Error> {
        Self::of(Terms { kind, quota, is_override: false })
    }

    /// By any terms.
    pub(crate) fn of(terms: Terms) -> Result<Self, Error> {
        Ok(Self { terms, algorithm: terms.algorithm()? })
    }

    /// The word of a caller that the engine does not know. `born` is when a limit that
    /// starts empty was first asked for.
    pub(crate) fn fresh(&self, born: Option<Timestamp>) -> Word {
        let Terms { kind, quota, .. } = &self.terms;
        let empty = born.and_then(|born| kind.with_quota(quota, Start::Empty, born).ok());
        empty.unwrap_or(self.algorithm).fresh(Timestamp::ZERO)
    }

    /// What the engine keeps of a caller that has this word.
    pub(crate) fn state(&self, word: Word) -> State {
        State { terms: self.terms, word }
    }
}

/// The overrides that were given at run time, as far as this node has met them.
///
/// The engine has them, beside the words: a node that does not know of one is told so, and
/// asks again. So this may forget any of them, or be wrong.
pub(super) struct Given {
    terms: Cache<Counted>,
    /// False as long as there have been none: then nobody looks.
    are_some: AtomicBool,
}

impl Given {
    pub(super) fn new(callers: usize) -> Self {
        Self { terms: Cache::new(callers), are_some: AtomicBool::new(false) }
    }

    /// What a caller was given.
    pub(super) fn of(&self, name: Name) -> Option<Counted> {
        // A hint, as all of this: the cache's locks order what they hold.
        if !self.are_some.load(Ordering::Relaxed) {
            return None;
        }
        self.terms.with(name, |terms| *terms)
    }

    /// Remembers what a caller was given, or that it was given nothing.
    pub(super) fn learn(&self, name: Name, given: Option<Counted>) {
        if given.is_some() {
            self.are_some.store(true, Ordering::Relaxed);
        }
        self.terms.with(name, |terms| *terms = given);
    }
}
