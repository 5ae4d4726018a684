use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::http::Pulse;

/// The places of a listener. When all are taken, the oldest connection on which no whole
/// request has been sent is closed for a newcomer: else whoever sends half of a request on
/// each would keep everyone out.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Those who have one, in the order in which they came, and some who have left.
    taken: VecDeque<Weak<Seat>>,
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
    pub(super) async fn take(&mut self) -> Arc<Seat> {
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

    fn seat(&mut self, place: OwnedSemaphorePermit) -> Arc<Seat> {
        if self.taken.len() >= self.crowded {
            self.taken.retain(|seat| seat.strong_count() > 0);
            self.crowded = 2 * self.taken.len() + 64;
        }
        let seat = Arc::new(Seat { _place: Some(place), ..Seat::default() });
        self.taken.push_back(Arc::downgrade(&seat));
        seat
    }

    /// Has the oldest connection closed on which no whole request has been sent, if there is one.
    pub(super) fn ask_the_oldest_to_leave(&mut self) {
        self.taken.retain(|seat| seat.strong_count() > 0);
        let mut seats = self.taken.iter().filter_map(Weak::upgrade);
        if let Some(seat) = seats.find(|seat| seat.can_be_asked()) {
            seat.ask_to_leave();
        }
    }
}

/// The place of a client, which is free again when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Seat {
    /// None at the end, when places are given up faster than they are taken.
    _place: Option<OwnedSemaphorePermit>,
    pulse: Arc<Pulse>,
    is_asked: AtomicBool,
    asked: Notify,
}

// Relaxed throughout: who is asked for nothing is asked again, and `asked` orders the rest.
impl Seat {
    fn can_be_asked(&self) -> bool {
        self.pulse.awaits_request() && !self.is_asked.load(Ordering::Relaxed)
    }

    fn ask_to_leave(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
        self.asked.notify_one();
    }

    /// Speaks with the client until the conversation ends, or until the place is wanted and the
    /// client has still not sent a whole request. Tells whether it was cut off.
    pub(super) async fn hold(&self, conversation: BoxFuture<'_, ()>) -> bool {
        let mut conversation = pin!(Pulse::scope(Arc::clone(&self.pulse), conversation));
        loop {
            tokio::select! {
                biased;
                () = &mut conversation => return false,
                () = self.asked.notified() => {}
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
            self.is_asked.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// A client in a task of its own, with what is known of its connection.
    async fn sit(places: &mut Places) -> (tokio::task::JoinHandle<bool>, Arc<Pulse>) {
        let seat = places.take().await;
        let pulse = Arc::clone(&seat.pulse);
        (tokio::spawn(async move { seat.hold(Box::pin(pending())).await }), pulse)
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
        seat.ask_to_leave();
        let works = async {
            yield_now().await;
            let _at_work = Pulse::work(pulse);
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        assert!(!seat.hold(Box::pin(works)).await);
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
