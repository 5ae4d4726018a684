use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::protocol::http::Pulse;

/// The places of a listener. When all are taken, the oldest connection on which no whole
/// request has been sent is closed for a newcomer: else whoever sends half of a request on
/// each would keep everyone out.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Those who have one, in the order in which they came, and some who have left.
    taken: VecDeque<Weak<Pulse>>,
    /// So many are looked through for those who have left.
    crowded: usize,
}

/// How long a connection may take to close before another one is asked to, and how often those
/// are looked at that cannot be closed yet.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Places {
    pub(super) fn new(count: usize) -> Self {
        let free = Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { free, taken: VecDeque::new(), crowded: 0 }
    }

    /// Takes a place for a newcomer, as soon as there is one.
    pub(super) async fn take(&mut self) -> Seat {
        loop {
            let free = Arc::clone(&self.free);
            if let Ok(place) = Arc::clone(&free).try_acquire_owned() {
                return self.seat(place);
            }
            self.ask_the_oldest_to_leave();
            if let Ok(Ok(place)) = timeout(LOOK_AGAIN, free.acquire_owned()).await {
                return self.seat(place);
            }
        }
    }

    fn seat(&mut self, place: OwnedSemaphorePermit) -> Seat {
        if self.taken.len() >= self.crowded {
            self.taken.retain(|pulse| pulse.strong_count() > 0);
            self.crowded = 2 * self.taken.len() + 64;
        }
        let seat = Seat { _place: Some(place), pulse: Arc::default() };
        self.taken.push_back(Arc::downgrade(&seat.pulse));
        seat
    }

    /// Has the oldest connection closed on which no whole request has been sent, if there is one.
    pub(super) fn ask_the_oldest_to_leave(&mut self) {
        self.taken.retain(|pulse| pulse.strong_count() > 0);
        let mut pulses = self.taken.iter().filter_map(Weak::upgrade);
        pulses.find(|pulse| pulse.ask_to_leave());
    }
}

/// The place of a client, which is free again when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Seat {
    /// None at the end, when places are given up faster than they are taken.
    _place: Option<OwnedSemaphorePermit>,
    /// Of the connection, which is asked to leave by it.
    pulse: Arc<Pulse>,
}

impl Seat {
    /// A conversation that is looked at by whoever wants the place.
    pub(super) fn scope<F: Future>(&self, conversation: F) -> impl Future<Output = F::Output> {
        Pulse::scope(Arc::clone(&self.pulse), conversation)
    }

    /// Speaks with the client until the conversation ends, or until the place is wanted and the
    /// client has still not sent a whole request. Tells whether it was cut off.
    pub(super) async fn hold(&self, mut conversation: Pin<&mut impl Future<Output = ()>>) -> bool {
        loop {
            let is_over = poll_fn(|context| match conversation.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if self.pulse.is_asked_to_leave(context) => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            });
            if is_over.await {
                return false;
            }
            // The runtime may have seen a request arrive that this task has not.
            tokio::select! {
                biased;
                () = &mut conversation => return false,
                () = yield_now() => {}
            }
            tokio::select! {
                biased;
                () = &mut conversation => return false,
                () = std::future::ready(()) => {}
            }
            if self.pulse.awaits_request() {
                return true;
            }
            self.pulse.stays();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;

    use super::*;

    /// A client in a task of its own, with what is known of its connection.
    async fn sit(places: &mut Places) -> (tokio::task::JoinHandle<bool>, Arc<Pulse>) {
        let seat = places.take().await;
        let pulse = Arc::clone(&seat.pulse);
        (tokio::spawn(async move { seat.hold(pin!(pending())).await }), pulse)
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_without_a_request_makes_room_and_no_other() {
        let mut places = Places::new(4);
        let (at_work, pulse) = sit(&mut places).await;
        let _working = Pulse::work(pulse);
        let (idle, pulse) = sit(&mut places).await;
        drop(Pulse::work(pulse));
        let (half_sent, pulse) = sit(&mut places).await;
        drop(Pulse::work(Arc::clone(&pulse)));
        pulse.has_read();
        let (silent, _) = sit(&mut places).await;
        let (first, pulse) = sit(&mut places).await;
        let _first_works = Pulse::work(pulse);
        assert!(half_sent.await.unwrap() && !silent.is_finished());
        let (second, pulse) = sit(&mut places).await;
        let _second_works = Pulse::work(pulse);
        assert!(silent.await.unwrap());
        // All that is left has sent requests, and waits for an answer or for the next.
        let nobody = timeout(Duration::from_secs(60), places.take()).await;
        assert!(nobody.is_err());
        assert!([at_work, idle, first, second].iter().all(|client| !client.is_finished()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_arrives_while_a_client_is_asked_to_leave_is_answered() {
        let mut places = Places::new(1);
        let seat = places.take().await;
        let pulse = Arc::clone(&seat.pulse);
        places.ask_the_oldest_to_leave();
        let works = async {
            yield_now().await;
            let _at_work = Pulse::work(pulse);
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        assert!(!seat.hold(pin!(works)).await);
    }

    #[tokio::test]
    async fn those_who_have_left_are_forgotten() {
        let mut places = Places::new(2);
        for _ in 0..10_000 {
            drop(places.take().await);
        }
        assert!(places.taken.len() < 200, "{}", places.taken.len());
    }
}
