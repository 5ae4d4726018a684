//! Tells a shared store of the offences that wait.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::super::Gate;
use crate::store::Store;
use crate::{Error, Key};

/// The store is told of so many callers at the same time.
const AT_ONCE: usize = 64;

/// The store is told of so many offences of a caller before others have their turn.
const IN_A_ROW: u32 = 8;

/// After this time the rest waits for the next call: in a flood of offences, what other nodes have
/// changed must not come late.
const LONGEST: Duration = Duration::from_millis(200);

impl<S: Store> Gate<S> {
    /// Tells a shared store about offences and bans that wait: call it several times per second. A
    /// store in process needs no such call. It takes about a fifth of a second at most; what is
    /// left then waits for the next call.
    ///
    /// # Errors
    ///
    /// If the store could not answer. What it was not told waits for the next call.
    pub async fn flush_offences(&self) -> Result<(), Error> {
        let begin = self.store.now();
        let mut struck = Ok(());
        while struck.is_ok() && self.store.now().since(begin) < LONGEST {
            let some = self.offences.take(AT_ONCE);
            if some.is_empty() {
                break;
            }
            let told = some.into_iter().map(|((limit, caller), count)| async move {
                let caller = Key::from_bytes(&caller);
                let (left, told) = self.strike_all(&limit, &caller, count).await;
                if left > 0 {
                    self.offences.wait(&limit, &caller, left);
                }
                told
            });
            struck = all(told).await;
        }
        struck.and(self.publish_bans().await)
    }

    /// Tells the store about offences of a caller. Returns how many are left.
    async fn strike_all(
        &self,
        limit: &Arc<str>,
        caller: &Key,
        count: u32,
    ) -> (u32, Result<(), Error>) {
        let active = self.active();
        // A limit that is gone bans nobody any more.
        let Some(place) = active.policy.rule(limit) else { return (0, Ok(())) };
        let rule = &active.policy.rules[place];
        let Some(ban) = &rule.ban else { return (0, Ok(())) };
        // More than lead to a ban change nothing.
        let count = count.min(ban.rule.strikes);
        for done in 0..count.min(IN_A_ROW) {
            match self.store.strike(&active.limits, place, caller, &ban.rule).await {
                Ok(None) => {}
                Ok(Some(start)) => {
                    self.begin_ban(&active, rule, ban, caller, start);
                    return (0, Ok(()));
                }
                Err(error) => return (count - done, Err(error)),
            }
        }
        (count.saturating_sub(IN_A_ROW), Ok(()))
    }
}

/// Waits for all of them together. Returns one of the errors.
async fn all(
    futures: impl Iterator<Item = impl Future<Output = Result<(), Error>>>,
) -> Result<(), Error> {
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    let mut done = Ok(());
    poll_fn(|context| {
        waiting.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Ready(result) => {
                done = std::mem::replace(&mut done, Ok(())).and(result);
                false
            }
            Poll::Pending => true,
        });
        if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done
}
