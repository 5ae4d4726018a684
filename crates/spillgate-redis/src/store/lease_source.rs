//! The store as the source of leases.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, Word};

use super::account::Change;
use super::core::{Caller, StoreCore, unsettled};
use crate::Name;
use crate::backend::{self, Backend, Exchange, Found, Op, Result};
use crate::clock_sample::ClockSample;
use crate::effective_quota::EffectiveQuota;
use crate::lease::{LeaseSource, Named, Taken};

impl Named for Caller {
    fn name(&self) -> Name {
        self.name
    }
}

impl<B: Backend> LeaseSource for StoreCore<B> {
    type Caller = Caller;

    fn local(&self) -> Timestamp {
        StoreCore::local(self)
    }

    fn nodes(&self) -> Option<NonZeroU32> {
        self.nodes.known()
    }

    fn margin(&self) -> Duration {
        self.margin
    }

    async fn take(
        self: &Arc<Self>,
        caller: &Caller,
        wanted: &EffectiveQuota,
        least: u64,
        most: u64,
    ) -> Result<Taken> {
        let mut caller = caller.clone();
        // An override is trusted briefly, and must not be brought back.
        caller.by_override = if wanted.terms.is_override {
            self.overrides.get(caller.name, self.local())
        } else {
            None
        };
        self.report(caller.name).await?;
        let _in_flight = self.words.track(caller.name, most);
        let mut attempts = self.attempts(caller.name);
        while attempts.next().await {
            let effective = *caller.effective();
            let is_other = !effective.is_like(wanted);
            let op = if is_other { Op::Look } else { Op::Take { least, most } };
            let fresh = caller.fresh(&effective, &self.backend).await?;
            let (algorithm, sent) = (effective.algorithm, self.local());
            let reply = self.backend.run(&[effective.entry(caller.name, fresh, op)]).await?;
            let sample = ClockSample { sent, received: self.local(), now: reply.now };
            let taken = |effective, word, is_granted| Taken {
                sample,
                effective,
                word,
                is_granted,
                is_moving: false,
            };
            match reply.answers.first() {
                Some(Found::Passed(word)) => {
                    self.confirm_override(&caller, sent);
                    let tokens = backend::taken(&algorithm, *word, sample.now, least, most);
                    let left = algorithm.spend(*word, sample.now, tokens).filter(|_| !is_other);
                    self.words.record(
                        caller.name,
                        &effective,
                        left.unwrap_or(*word),
                        sample,
                        false,
                    );
                    return Ok(taken(effective, *word, !is_other));
                }
                Some(Found::Denied(word)) => {
                    self.confirm_override(&caller, sent);
                    let word = self.cut(&caller, *word, sample.now).await;
                    self.words.record(caller.name, &effective, word, sample, false);
                    return Ok(taken(effective, word, false));
                }
                Some(Found::Other(stored)) => {
                    self.learn_override(&mut caller, stored, sent)?;
                    let (effective, now) = (*caller.effective(), sample.now);
                    let mut account = caller.account(stored, &effective, now)?;
                    let word = account.word();
                    if !effective.is_like(wanted) {
                        return Ok(taken(effective, word, false));
                    }
                    if !account.is_settled(now) {
                        return Ok(Taken { is_moving: true, ..taken(effective, word, false) });
                    }
                    let new = effective.state(account.word());
                    let change = Change { old: stored.clone(), new };
                    self.change(caller.name, &change, now).await?;
                }
                Some(Found::Gone) => self.forget_override(&mut caller, sent),
                None => break,
            }
        }
        Err(unsettled(&caller.limit))
    }

    async fn look(
        &self,
        caller: &Caller,
        wanted: &EffectiveQuota,
    ) -> Result<Option<(Word, Timestamp)>> {
        let entry = wanted.entry(caller.name, Word::from_bits(0), Op::Look);
        let reply = self.backend.run(&[entry]).await?;
        Ok(match reply.answers.first() {
            Some(Found::Passed(word)) => Some((*word, reply.now)),
            _ => None,
        })
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool> {
        self.backend.exchange(exchange).await
    }
}
