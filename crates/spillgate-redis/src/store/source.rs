//! What leases need of a store.

use std::num::NonZeroU32;
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::algorithm::Algorithm;

use super::core::{Caller, Core, TRIES, unsettled};
use crate::Name;
use crate::counted::Counted;
use crate::engine::{self, Engine, EngineError, Entry, Exchange, Found, Op};
use crate::lease::{Named, Source, Taken};
use crate::sighting::Sighting;

impl Named for Caller {
    fn name(&self) -> Name {
        self.name
    }
}

impl<E: Engine> Source for Core<E> {
    type Caller = Caller;

    fn local(&self) -> Timestamp {
        Core::local(self)
    }

    fn nodes(&self) -> Option<NonZeroU32> {
        self.nodes.known()
    }

    fn margin(&self) -> Duration {
        self.margin
    }

    async fn take(
        &self,
        caller: &Caller,
        wanted: &Counted,
        least: u64,
        most: u64,
    ) -> Result<Taken, EngineError> {
        let mut caller = caller.clone();
        // An override is not believed for long, and must not be brought back.
        caller.given =
            if wanted.terms.is_override { self.given.of(caller.name, self.local()) } else { None };
        self.report(caller.name).await?;
        let _in_flight = self.words.send(caller.name, most);
        for _ in 0..TRIES {
            let counted = *caller.counted();
            let is_other = !counted.is_like(wanted);
            let op = if is_other { Op::Look } else { Op::Take { least, most } };
            let fresh = caller.fresh(&counted, &self.engine).await?;
            let (terms, algorithm) = (counted.terms, counted.algorithm);
            let entry = Entry { name: caller.name, terms, algorithm, fresh, op };
            let sent = self.local();
            let reply = self.engine.run(&[entry]).await?;
            let seen = Sighting { sent, heard: self.local(), now: reply.now };
            let taken = |counted, word, is_granted| Taken { seen, counted, word, is_granted };
            match reply.answers.first() {
                Some(Found::Passed(word)) => {
                    self.confirm(&caller, sent);
                    let tokens = engine::taken(&algorithm, *word, seen.now, least, most);
                    let left = algorithm.spend(*word, seen.now, tokens).filter(|_| !is_other);
                    self.words.tell(caller.name, &counted, left.unwrap_or(*word), seen, false);
                    return Ok(taken(counted, *word, !is_other));
                }
                Some(Found::Denied(word)) => {
                    self.confirm(&caller, sent);
                    let word = self.cut(&caller, *word, seen.now).await;
                    self.words.tell(caller.name, &counted, word, seen, false);
                    return Ok(taken(counted, word, false));
                }
                Some(Found::Other(stored)) => {
                    self.learn(&mut caller, stored, sent)?;
                    let (counted, now) = (*caller.counted(), seen.now);
                    let new = caller.translated(stored, &counted, now)?;
                    let is_refused = counted.algorithm.remaining(new.word, now) < least;
                    let is_found = counted.is_like(wanted);
                    if !is_found || (is_refused && counted.terms != stored.terms) {
                        return Ok(taken(counted, new.word, false));
                    }
                    self.bring_over(&caller, stored, &new, now).await?;
                }
                Some(Found::Gone) => self.unlearn(&mut caller, sent),
                None => break,
            }
        }
        Err(unsettled(&caller.limit))
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool, EngineError> {
        self.engine.exchange(exchange).await
    }
}
