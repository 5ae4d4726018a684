//! Work that comes to its end although whoever asked for it has gone.

use std::future::Future;

use tokio::sync::oneshot;

use crate::backend::{BackendError, Fault, Result};
use crate::flow::inherit_client;

/// An outcome that goes to `unclaimed` unless somebody takes it.
struct Outcome<T, U: FnOnce(T)>(Option<(T, U)>);

/// Does some work in a task of its own. If this future is dropped, the work is completed, and its
/// outcome goes to `unclaimed`.
///
/// # Errors
///
/// If the work was abandoned, since the runtime shuts down.
pub(crate) async fn to_the_end<W, U>(work: W, unclaimed: U) -> Result<W::Output>
where
    W: Future<Output: Send> + Send + 'static,
    U: FnOnce(W::Output) + Send + 'static,
{
    let (sender, outcome) = oneshot::channel();
    tokio::spawn(inherit_client(async move {
        // What cannot be sent is dropped, and so is what was sent but not received.
        let _ = sender.send(Outcome(Some((work.await, unclaimed))));
    }));
    let claimed = outcome.await.ok().and_then(|mut outcome| outcome.0.take());
    claimed.map(|(outcome, _)| outcome).ok_or_else(|| {
        BackendError::unanswered(Fault::Unready, "a call was abandoned: the runtime shuts down")
    })
}

impl<T, U: FnOnce(T)> Drop for Outcome<T, U> {
    fn drop(&mut self) {
        if let Some((outcome, unclaimed)) = self.0.take() {
            unclaimed(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// What becomes of work after its future was polled so often and dropped.
    async fn dropped_after(polls: usize) -> (Option<u8>, Option<u8>) {
        let (sender, mut unclaimed) = oneshot::channel();
        let work = async {
            tokio::task::yield_now().await;
            7
        };
        let unclaim = move |outcome| sender.send(outcome).unwrap();
        let mut claimed = None;
        {
            let mut future = pin!(to_the_end(work, unclaim));
            for _ in 0..polls {
                match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(outcome) => {
                        claimed = outcome.ok();
                        break;
                    }
                    Poll::Pending => tokio::task::yield_now().await,
                }
            }
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        (claimed, unclaimed.try_recv().ok())
    }

    #[tokio::test]
    async fn an_outcome_is_claimed_once_or_goes_to_whoever_takes_care_of_it() {
        assert_eq!(dropped_after(0).await, (None, None), "not begun");
        for polls in 1..10 {
            let (claimed, unclaimed) = dropped_after(polls).await;
            assert_eq!(claimed.xor(unclaimed), Some(7), "{polls} polls");
        }
        assert_eq!(dropped_after(10).await, (Some(7), None));
    }
}
