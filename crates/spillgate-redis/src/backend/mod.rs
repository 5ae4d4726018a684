//! What a store asks of Redis, as a trait: [`Client`](crate::client::Client) talks to real servers,
//! and `Model` computes the same in memory for tests.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};

use crate::{Name, State, Terms};

mod announcement;
mod edits;
mod error;
#[cfg(any(test, feature = "testing"))]
mod model;
mod permits;
mod swap;

pub use self::announcement::{Alive, Announcement, Member};
pub use self::edits::{EditPage, Lasts, MOST_EDITS, PAGE_OF_EDITS, SealedEdit};
pub use self::error::{BackendError, Fault, Result};
#[cfg(any(test, feature = "testing"))]
pub use self::model::Model;
pub use self::permits::{PermitCall, PermitOp, PermitReply, Wanted};
pub use self::swap::{Swap, Swapped};

/// Where the states of all callers are: Redis, Valkey, or a model of them.
///
/// Each call is one round trip and atomic. A failed call may have taken effect: only its reply is
/// missing.
pub trait Backend: Send + Sync + 'static {
    /// Runs entries at one moment of the Redis clock.
    ///
    /// Nothing is written if an entry finds other terms than its own or a word that does not tell
    /// all, unless it only [reads](Op::Read); if an override is gone; or if an
    /// [enforced](Op::Spend) entry is denied: all are spent or none.
    ///
    /// All names must be in one [slot](Self::slot). While that is being moved, a call with several
    /// names may fail, [scattered](Fault::Scattered).
    fn run(&self, entries: &[Entry]) -> impl Future<Output = Result<Reply>> + Send;

    /// Replaces a state if the expected one is still there (compare and set). Returns whether it
    /// did.
    fn exchange(&self, exchange: &Exchange) -> impl Future<Output = Result<bool>> + Send;

    /// The Cluster slot of a name. One call can only name one slot.
    fn slot(&self, name: &Name) -> u16;

    /// Announces that a node is alive or leaves, and returns the nodes alive.
    fn announce(&self, announcement: &Announcement) -> impl Future<Output = Result<Alive>> + Send;

    /// Deletes the value of a name, readable or not.
    fn forget(&self, name: Name) -> impl Future<Output = Result<()>> + Send;

    /// When a limit was first used.
    fn born(&self, name: Name) -> impl Future<Output = Result<Timestamp>> + Send;

    /// Stores a value with a TTL.
    fn deposit(
        &self,
        name: Name,
        kept: &[u8],
        lifetime: Duration,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Takes out a [deposited](Self::deposit) value: exactly one caller gets it.
    fn withdraw(&self, name: Name) -> impl Future<Output = Result<Option<Vec<u8>>>> + Send;

    /// Stores edits made at run time, each under the next version, all or none. Returns false if
    /// there would be [too many](MOST_EDITS).
    fn publish(&self, edits: &[SealedEdit]) -> impl Future<Output = Result<bool>> + Send;

    /// The edits since a version.
    fn edits_since(&self, version: u64) -> impl Future<Output = Result<EditPage>> + Send;

    /// [Announces](Self::announce) a node and returns the [edits](Self::edits_since) since a version,
    /// in one round trip if possible.
    fn pulse(
        &self,
        announcement: &Announcement,
        version: u64,
    ) -> impl Future<Output = (Result<Alive>, Result<EditPage>)> + Send {
        async move {
            let alive = self.announce(announcement).await;
            (alive, self.edits_since(version).await)
        }
    }

    /// Holds, renews or releases permits.
    fn permits(&self, call: &PermitCall) -> impl Future<Output = Result<PermitReply>> + Send;

    /// Replaces the strikes of a caller if they are still the expected ones, or only looks at them.
    fn swap_strikes(
        &self,
        name: Name,
        swap: Option<&Swap>,
    ) -> impl Future<Output = Result<Swapped>> + Send;
}

impl<B: Backend> Backend for Arc<B> {
    async fn run(&self, entries: &[Entry]) -> Result<Reply> {
        B::run(self, entries).await
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool> {
        B::exchange(self, exchange).await
    }

    fn slot(&self, name: &Name) -> u16 {
        B::slot(self, name)
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Alive> {
        B::announce(self, announcement).await
    }

    async fn forget(&self, name: Name) -> Result<()> {
        B::forget(self, name).await
    }

    async fn born(&self, name: Name) -> Result<Timestamp> {
        B::born(self, name).await
    }

    async fn deposit(&self, name: Name, kept: &[u8], lifetime: Duration) -> Result<()> {
        B::deposit(self, name, kept, lifetime).await
    }

    async fn withdraw(&self, name: Name) -> Result<Option<Vec<u8>>> {
        B::withdraw(self, name).await
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool> {
        B::publish(self, edits).await
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage> {
        B::edits_since(self, version).await
    }

    async fn pulse(
        &self,
        announcement: &Announcement,
        version: u64,
    ) -> (Result<Alive>, Result<EditPage>) {
        B::pulse(self, announcement, version).await
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply> {
        B::permits(self, call).await
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped> {
        B::swap_strikes(self, name, swap).await
    }
}

/// An operation on one caller under one limit.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The caller.
    pub name: Name,
    /// How to read the word, as far as this node knows.
    pub terms: Terms,
    /// The algorithm of the terms, or of the quota that came with the call.
    pub algorithm: AnyAlgorithm,
    /// The word of a caller that Redis does not know.
    pub fresh: Word,
    /// The operation.
    pub op: Op,
}

/// An operation on a caller's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Spends a cost if all enforced entries pass. One in shadow mode spends only then, and denies
    /// nobody.
    Spend {
        /// 0 always passes and writes nothing.
        cost: u64,
        /// True in shadow mode.
        is_shadow: bool,
    },
    /// Spends as many times `least` as available, up to `most`: for a lease.
    Take {
        /// Denied if less is available.
        least: u64,
        /// The most that is taken.
        most: u64,
    },
    /// Takes an amount unconditionally, but leaves at most `most` spent, and at most the
    /// [deepest](spillgate::algorithm::Algorithm::deepest) debt. 0 writes nothing.
    Debit {
        /// How much.
        amount: u64,
        /// The most that may be spent afterwards, unless it is more already.
        most: u64,
    },
    /// Gives an amount back, never more than is spent, nor beyond a fresh word. 0 writes nothing.
    GiveBack {
        /// How much.
        amount: u64,
        /// The word after the spend that is refunded: what has been refilled since is not given
        /// back.
        spent: Option<Word>,
    },
    /// Writes nothing.
    Look,
    /// Writes nothing, and returns the whole state whatever its terms.
    Read,
    /// Resets the caller to a fresh word. An override stays.
    Reset,
}

impl Op {
    /// The word left by an unconditional operation; others leave it unchanged.
    pub(crate) fn left(self, algorithm: &AnyAlgorithm, word: Word, now: Timestamp) -> Word {
        match self {
            Self::Debit { amount, most } => {
                algorithm.debit_up_to(word, now, amount, most.min(algorithm.deepest()))
            }
            Self::GiveBack { amount, spent: None } => algorithm.refund(word, now, amount),
            Self::GiveBack { amount, spent: Some(spent) } => {
                algorithm.refund_call(word, now, amount, spent)
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

/// The reply to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The time of the decision.
    pub now: Timestamp,
    /// One per entry.
    pub answers: SmallVec<[Found; 2]>,
}

/// What Redis found for one entry. What it wrote follows from that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The word before; the operation passed.
    Passed(Word),
    /// The word before; the operation was denied.
    Denied(Word),
    /// A state with other terms, or whose word does not tell all: [exchange](Backend::exchange) it.
    /// Or any state, if it was to be [read](Op::Read).
    Other(State),
    /// Nothing, although the terms are an override: it was removed and has expired. Retry without
    /// it.
    Gone,
}

/// A compare and set of one state.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The caller.
    pub name: Name,
    /// The expected state: `None` if absent.
    pub old: Option<State>,
    /// The new state: `None` to delete.
    pub new: Option<State>,
    /// TTL of the new state; `None` to keep it.
    pub expires: Option<Duration>,
}
