use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::Activity;

/// Bounds the connections of a listener. When all slots are taken, the oldest connection without a
/// complete request is closed for a new one, so that half-sent requests lock nobody out.
#[derive(Debug)]
pub struct ConnectionSlots {
    free: Arc<Semaphore>,
    /// Connections in the order in which they were accepted, and some that have closed.
    taken: VecDeque<Weak<Activity>>,
    /// At this length, closed ones are removed.
    cleanup_at: usize,
}

/// How long a connection may take to close before another one is asked.
const RETRY: Duration = Duration::from_millis(20);

impl ConnectionSlots {
    /// So many slots.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let free = Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { free, taken: VecDeque::new(), cleanup_at: 0 }
    }

    /// Takes a slot, as soon as there is one.
    pub async fn take(&mut self) -> Slot {
        loop {
            let free = Arc::clone(&self.free);
            if let Ok(permit) = Arc::clone(&free).try_acquire_owned() {
                return self.slot(permit);
            }
            self.close_oldest();
            if let Ok(Ok(permit)) = timeout(RETRY, free.acquire_owned()).await {
                return self.slot(permit);
            }
        }
    }

    fn slot(&mut self, permit: OwnedSemaphorePermit) -> Slot {
        if self.taken.len() >= self.cleanup_at {
            self.taken.retain(|activity| activity.strong_count() > 0);
            self.cleanup_at = 2 * self.taken.len() + 64;
        }
        let slot = Slot { _permit: Some(permit), activity: Arc::default() };
        self.taken.push_back(Arc::downgrade(&slot.activity));
        slot
    }

    /// Closes the oldest connection without a complete request, if there is one.
    pub fn close_oldest(&mut self) {
        self.taken.retain(|activity| activity.strong_count() > 0);
        let mut activities = self.taken.iter().filter_map(Weak::upgrade);
        activities.find(|activity| activity.request_close());
    }
}

/// The slot of a connection, which is free again when it is dropped.
#[derive(Debug, Default)]
pub struct Slot {
    /// None at shutdown, when every pending connection is accepted.
    _permit: Option<OwnedSemaphorePermit>,
    activity: Arc<Activity>,
}

impl Slot {
    /// Serves a connection whose [`Activity`] is that of the slot.
    pub fn scope<F: Future>(&self, serve: F) -> impl Future<Output = F::Output> {
        Activity::scope(Arc::clone(&self.activity), serve)
    }

    /// Serves a connection until it ends, or the slot is needed and there is no complete request.
    /// True if it was cut off.
    pub async fn hold(&self, mut serve: Pin<&mut impl Future<Output = ()>>) -> bool {
        loop {
            let is_over = poll_fn(|context| match serve.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if self.activity.is_close_requested(context) => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            });
            if is_over.await {
                return false;
            }
            // The runtime may have seen a request arrive that this task has not.
            tokio::select! {
                biased;
                () = &mut serve => return false,
                () = yield_now() => {}
            }
            tokio::select! {
                biased;
                () = &mut serve => return false,
                () = std::future::ready(()) => {}
            }
            if self.activity.awaits_request() {
                return true;
            }
            self.activity.keep_open();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;

    use super::*;

    /// A client in a task of its own, and the activity of its connection.
    async fn connect(
        slots: &mut ConnectionSlots,
    ) -> (tokio::task::JoinHandle<bool>, Arc<Activity>) {
        let slot = slots.take().await;
        let activity = Arc::clone(&slot.activity);
        (tokio::spawn(async move { slot.hold(pin!(pending())).await }), activity)
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_without_a_request_is_closed_and_no_other() {
        let mut slots = ConnectionSlots::new(4);
        let (at_work, activity) = connect(&mut slots).await;
        let _working = Activity::begin_request(activity);
        let (idle, activity) = connect(&mut slots).await;
        drop(Activity::begin_request(activity));
        let (half_sent, activity) = connect(&mut slots).await;
        drop(Activity::begin_request(Arc::clone(&activity)));
        activity.record_read();
        let (silent, _) = connect(&mut slots).await;
        let (first, activity) = connect(&mut slots).await;
        let _first_works = Activity::begin_request(activity);
        assert!(half_sent.await.unwrap() && !silent.is_finished());
        let (second, activity) = connect(&mut slots).await;
        let _second_works = Activity::begin_request(activity);
        assert!(silent.await.unwrap());
        // All others have sent a request, and wait for an answer or may send the next.
        let nobody = timeout(Duration::from_secs(60), slots.take()).await;
        assert!(nobody.is_err());
        assert!([at_work, idle, first, second].iter().all(|client| !client.is_finished()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_arrives_while_its_connection_is_to_close_is_answered() {
        let mut slots = ConnectionSlots::new(1);
        let slot = slots.take().await;
        let activity = Arc::clone(&slot.activity);
        slots.close_oldest();
        let works = async {
            yield_now().await;
            let _at_work = Activity::begin_request(activity);
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        assert!(!slot.hold(pin!(works)).await);
    }

    #[tokio::test]
    async fn closed_connections_are_forgotten() {
        let mut slots = ConnectionSlots::new(2);
        for _ in 0..10_000 {
            drop(slots.take().await);
        }
        assert!(slots.taken.len() < 200, "{}", slots.taken.len());
    }
}
