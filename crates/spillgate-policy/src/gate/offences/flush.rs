//! Tells a shared store of the offences that wait.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::super::Gate;
use super::untold::Telling;
use crate::Error;
use crate::store::Store;

/// The store is told of so many callers at the same time.
const AT_ONCE: usize = 64;

/// After this time the rest waits for the next call: in a flood of offences, what other nodes have
/// changed must not come late.
const LONGEST: Duration = Duration::from_millis(200);

impl<S: Store> Gate<S> {
    /// Tells a shared store about offences, bans and who is forgiven: call it several times per second. A
    /// store in process needs no such call. It takes about a fifth of a second at most; what is
    /// left then waits for the next call.
    ///
    /// # Errors
    ///
    /// If the store could not answer. What it was not told waits for the next call, and so it does
    /// if the future is dropped. An offence that the store counted without being heard is not
    /// counted again.
    pub async fn flush_offences(&self) -> Result<(), Error> {
        let begin = self.store.now();
        let mut struck = self.forgive_all().await;
        while struck.is_ok() && self.store.now().since(begin) < LONGEST {
            let some = self.offences.untold.take(AT_ONCE);
            if some.is_empty() {
                break;
            }
            struck = all(some.into_iter().map(|telling| self.tell(telling))).await;
        }
        struck.and(self.publish_bans().await)
    }

    /// Tells the store about offences of a caller.
    async fn tell(&self, mut telling: Telling<'_>) -> Result<(), Error> {
        let active = self.active();
        let place = active.policy.rule(telling.limit());
        let rule = place.map(|place| (place, &active.policy.rules[place]));
        let rule = rule.and_then(|(place, rule)| Some((place, rule, rule.ban.as_ref()?)));
        let Some((place, rule, ban)) = rule else {
            // A limit that is gone bans nobody any more.
            telling.forget();
            return Ok(());
        };
        let caller = telling.caller();
        while let Some(call) = telling.next() {
            let struck = self.store.strike(&active.limits, place, &caller, &ban.rule, call).await?;
            telling.answered();
            if let Some(start) = struck {
                self.begin_ban(&active, rule, ban, &caller, start);
            }
        }
        Ok(())
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
