//! What a store asks of Redis, as a trait: [`Client`](crate::client::Client) talks to real servers, and `Model`
//! computes the same in memory for tests.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};

use crate::{Name, State, Terms};

mod announcement;
mod error;
#[cfg(any(test, feature = "testing"))]
mod model;

pub use self::announcement::{Alive, Announcement, Member};
pub use self::error::{BackendError, Fault};
#[cfg(any(test, feature = "testing"))]
pub use self::model::Model;

/// Where the states of all callers are: a Redis or Valkey server, or a model of one.
///
/// Each call is one round trip, and happens as a whole or not at all. A call that fails may
/// have happened: all that is known is that its answer did not come.
pub trait Backend: Send + Sync + 'static {
    /// Carries out what is asked, at one moment of Redis's own clock.
    ///
    /// If an entry finds other terms than its own, or an override gone, nothing is written for
    /// any of them. Nor is
    /// it if an [enforced](Op::Spend) entry is denied, so that all are spent or none.
    ///
    /// All names must be in one [slot](Self::slot).
    fn run(&self, entries: &[Entry]) -> impl Future<Output = Result<Reply, BackendError>> + Send;

    /// Puts a state in place of another, if that is still the one there. Tells whether it
    /// did.
    fn exchange(
        &self,
        exchange: &Exchange,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;

    /// Where a name is kept. Names of different slots cannot be asked about together.
    fn slot(&self, name: &Name) -> u16;

    /// Tells that a node is alive, or gone, and learns which are: those that have said so within
    /// their lifetime.
    fn announce(
        &self,
        announcement: &Announcement,
    ) -> impl Future<Output = Result<Alive, BackendError>> + Send;

    /// Deletes what is kept of a name, also if nobody can read it.
    fn forget(&self, name: Name) -> impl Future<Output = Result<(), BackendError>> + Send;

    /// When something that has this name was first asked for.
    fn born(&self, name: Name) -> impl Future<Output = Result<Timestamp, BackendError>> + Send;

    /// Keeps something under a name, for its lifetime.
    fn deposit(
        &self,
        name: Name,
        kept: &[u8],
        lifetime: Duration,
    ) -> impl Future<Output = Result<(), BackendError>> + Send;

    /// Takes out what was [deposited](Self::deposit): of all who ask, one gets it.
    fn withdraw(
        &self,
        name: Name,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, BackendError>> + Send;
}

impl<B: Backend> Backend for Arc<B> {
    fn run(&self, entries: &[Entry]) -> impl Future<Output = Result<Reply, BackendError>> + Send {
        B::run(self, entries)
    }

    fn exchange(
        &self,
        exchange: &Exchange,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send {
        B::exchange(self, exchange)
    }

    fn slot(&self, name: &Name) -> u16 {
        B::slot(self, name)
    }

    fn announce(
        &self,
        announcement: &Announcement,
    ) -> impl Future<Output = Result<Alive, BackendError>> + Send {
        B::announce(self, announcement)
    }

    fn forget(&self, name: Name) -> impl Future<Output = Result<(), BackendError>> + Send {
        B::forget(self, name)
    }

    fn born(&self, name: Name) -> impl Future<Output = Result<Timestamp, BackendError>> + Send {
        B::born(self, name)
    }

    fn deposit(
        &self,
        name: Name,
        kept: &[u8],
        lifetime: Duration,
    ) -> impl Future<Output = Result<(), BackendError>> + Send {
        B::deposit(self, name, kept, lifetime)
    }

    fn withdraw(
        &self,
        name: Name,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, BackendError>> + Send {
        B::withdraw(self, name)
    }
}

/// What is asked about one caller under one limit.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The caller.
    pub name: Name,
    /// By what it is counted, as far as this node knows. They say how the word is packed.
    pub terms: Terms,
    /// What counts: that of the terms, or another that reads the same words, of a tier or of a
    /// quota that came with the call.
    pub algorithm: AnyAlgorithm,
    /// The word of a caller that Redis does not know.
    pub fresh: Word,
    /// What is to be done.
    pub op: Op,
}

/// What is to be done with a caller's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Spends a cost if it passes, and if all that are enforced pass. One in shadow spends
    /// only then, and never keeps another from it.
    Spend {
        /// How much. 0 always passes, and writes nothing.
        cost: u64,
        /// True if a denial does not count.
        is_shadow: bool,
    },
    /// Spends as many times `least` as there is, up to `most`: for a lease. So nothing is taken
    /// that is too little for one more call of that cost.
    Take {
        /// With less it is denied, and in any case with nothing.
        least: u64,
        /// The most that is taken.
        most: u64,
    },
    /// Takes an amount whether or not it passes, but leaves no more than `most` spent in all,
    /// nor more than the [deepest](spillgate::algorithm::Algorithm::deepest) debt. 0 writes
    /// nothing.
    Debit {
        /// How much.
        amount: u64,
        /// The most that is spent then, unless it is more already.
        most: u64,
    },
    /// Gives an amount back, never more than is spent, nor so much that there is more than
    /// a caller has that Redis does not know. 0 writes nothing.
    GiveBack {
        /// How much.
        amount: u64,
        /// The word that the charge left of which it is given back: then nothing of what has
        /// been refilled since.
        charged: Option<Word>,
    },
    /// Writes nothing.
    Look,
    /// Writes nothing, and is answered with the whole state, also if it has these terms.
    Read,
    /// Makes the caller as if it had never been seen before now. An override stays, but not
    /// what was spent before it came.
    Reset,
}

impl Op {
    /// The word that an operation leaves that always passes; any other leaves it as it is.
    pub(crate) fn left(self, algorithm: &AnyAlgorithm, word: Word, now: Timestamp) -> Word {
        match self {
            Self::Debit { amount, most } => {
                algorithm.debit_up_to(word, now, amount, most.min(algorithm.deepest()))
            }
            Self::GiveBack { amount, charged: None } => algorithm.refund(word, now, amount),
            Self::GiveBack { amount, charged: Some(charged) } => {
                algorithm.refund_call(word, now, amount, charged)
            }
            Self::Reset => algorithm.fresh(now),
            Self::Look | Self::Read | Self::Spend { .. } | Self::Take { .. } => word,
        }
    }
}

/// How many tokens a [take](Op::Take) gets.
pub(crate) fn taken(
    algorithm: &AnyAlgorithm,
    word: Word,
    now: Timestamp,
    least: u64,
    most: u64,
) -> u64 {
    let most = algorithm.remaining(word, now).min(most);
    most - most % least.max(1)
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When.
    pub now: Timestamp,
    /// One for each entry.
    pub answers: SmallVec<[Found; 2]>,
}

/// What Redis found of one caller. What it wrote follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The word that was there, and the operation passed.
    Passed(Word),
    /// The word that was there, and the operation did not pass.
    Denied(Word),
    /// A state with other terms, so that the call has to be made again; or with any, if it was
    /// to be [read](Op::Read).
    Other(State),
    /// Nothing, although the terms are an override: it was taken away, and what was left has
    /// expired. The call has to be made again without it, or would bring it back.
    Gone,
}

/// A state to be put in place of another.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The caller.
    pub name: Name,
    /// What must be there now: `None` if nothing is.
    pub old: Option<State>,
    /// What shall be there: `None` if nothing shall.
    pub new: Option<State>,
    /// True if only terms and word are compared, and put in place: what the caller had spent
    /// before it got a quota of its own stays as it is.
    pub keeps_base: bool,
    /// When the new state may be forgotten; `None` if never. A base is kept for as long as it
    /// needs in any case.
    pub expires: Option<Duration>,
}
