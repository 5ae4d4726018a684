//! Buckets whose quota comes with each call.

use tollgate::algorithm::Word;
use tollgate::{AlgorithmKind, Decision, Quota, Timestamp};
use tollgate_policy::Error;
use tollgate_policy::store::CallQuota;

use super::RedisStore;
use super::share::share_of;
use crate::counted::{Counted, Whose};
use crate::engine::{Engine, EngineError, Entry, Fault, Found, Op};
use crate::name::Names;
use crate::sighting::Sighting;
use crate::{Secret, Terms};

/// How such buckets are kept: all that an engine has of one is the time at which it is full
/// again, whatever the quota of the next call.
pub(super) struct Throttled {
    names: Names,
    counted: Counted,
}

impl Throttled {
    pub(super) fn new(secret: &Secret) -> Result<Self, Error> {
        // Decides nothing: it says that the word is a time.
        let quota = Quota::per_second(1).build().map_err(Error::store)?;
        let terms = Terms::new(AlgorithmKind::TokenBucket, quota);
        let counted = Counted::of(terms, Whose::Limit).map_err(Error::store)?;
        Ok(Self { names: secret.throttled(), counted })
    }
}

impl<E: Engine> RedisStore<E> {
    /// Spends a cost of a token bucket that belongs to no limit, and has its quota from this
    /// call. A call with another quota finds the time at which the bucket is full again, not
    /// a number of tokens. Cost 0 only looks.
    ///
    /// # Errors
    ///
    /// If the engine could not be asked. Go by this node's [share](Self::share) then. Or if the
    /// quota never refills.
    pub async fn throttle(
        &self,
        key: &[u8],
        quota: Quota,
        cost: u64,
    ) -> Result<Decision, EngineError> {
        let name = self.throttled.names.caller(key);
        let call = CallQuota::new(quota).map_err(|why| nonsense(&why.to_string()))?;
        let counted = Counted { quota, algorithm: call.bucket().into(), ..self.throttled.counted };
        let (denials, counters) = (&self.core.denials, &self.core.counters);
        let sent = self.core.local();
        if cost > 0
            && let Some(denied) = denials.ask(name, &counted, cost, sent)
        {
            counters.by_memory.add(1);
            return Ok(denied);
        }
        let Counted { terms, algorithm, .. } = counted;
        let op = Op::Spend { cost, is_shadow: false };
        let entry = Entry { name, terms, algorithm, fresh: counted.fresh(None), op };
        let (word, now) = self.find(entry).await.inspect_err(|_| {
            denials.forget(name);
            counters.outage_local.add(1);
        })?;
        counters.by_engine.add(1);
        let (decision, left) = Decision::of(counted.algorithm, word, now, cost);
        if cost > 0 {
            let seen = Sighting { sent, heard: self.core.local(), now };
            denials.tell(name, &counted, left.unwrap_or(word), seen, decision.is_denied());
        }
        Ok(decision)
    }

    /// The word that a bucket had before what is asked, and when.
    async fn find(&self, entry: Entry) -> Result<(Word, Timestamp), EngineError> {
        let reply = self.core.engine.run(&[entry]).await?;
        match reply.answers.first() {
            Some(Found::Passed(word) | Found::Denied(word)) => Ok((*word, reply.now)),
            _ => Err(nonsense("a state of another kind has the name of a bucket")),
        }
    }

    /// What this node has of a bucket of this quota while the engine cannot be asked.
    #[must_use]
    pub fn share(&self, quota: Quota) -> Quota {
        share_of(AlgorithmKind::TokenBucket, quota, self.core.assumed_nodes())
    }
}

fn nonsense(why: &str) -> EngineError {
    EngineError::new(Fault::Nonsense, why)
}
