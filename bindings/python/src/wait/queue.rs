use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::Waker;
use crate::fork;

/// A queue per key with waiting calls. An entry exists only while calls wait.
pub(crate) struct Queues {
    most: usize,
    state: Mutex<State>,
}

/// Names a call that waits, among those of all limiters: they may share a clock.
pub(crate) type Ticket = u64;

static LAST_TICKET: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct State {
    generation: u64,
    waiting: usize,
    queues: HashMap<Box<[u8]>, VecDeque<Place>>,
}

struct Place {
    ticket: Ticket,
    waker: Option<Waker>,
}

impl Queues {
    /// Queues for at most so many calls in all.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|state| state.waiting)
    }

    /// A place at the end of a queue; `None` if too many calls wait already.
    pub(super) fn join(&self, key: &[u8]) -> Option<Ticket> {
        self.with(|state| {
            if state.waiting >= self.most {
                return None;
            }
            state.waiting += 1;
            // Relaxed: the lock orders those of a queue, and others only need to differ.
            let ticket = LAST_TICKET.fetch_add(1, Ordering::Relaxed);
            let place = Place { ticket, waker: None };
            state.queues.entry(key.into()).or_default().push_back(place);
            Some(ticket)
        })
    }

    /// True if the call is the first of its queue. Otherwise it is woken once it is.
    pub(super) fn is_first(&self, key: &[u8], ticket: Ticket, waker: Waker) -> bool {
        // What is replaced is dropped outside of the lock: that may run Python code.
        let (is_first, _replaced) = self.with(|state| {
            let queue = state.queues.get_mut(key);
            let found = queue.and_then(|queue| {
                let index = index_of(queue, ticket)?;
                queue.get_mut(index).map(|place| (index, place))
            });
            match found {
                Some((index, place)) => (index == 0, place.waker.replace(waker)),
                // It waited in the parent of a fork.
                None => (true, Some(waker)),
            }
        });
        is_first
    }

    /// Leaves a queue, and wakes the next if this was the first.
    pub(super) fn leave(&self, key: &[u8], ticket: Ticket, py: Python<'_>) {
        let (next, _left) = self.with(|state| {
            let Some(queue) = state.queues.get_mut(key) else { return (None, None) };
            let Some(index) = index_of(queue, ticket) else { return (None, None) };
            let left = queue.remove(index);
            let next = queue.front_mut().filter(|_| index == 0);
            let next = next.and_then(|place| place.waker.take());
            if queue.is_empty() {
                state.queues.remove(key);
            }
            state.waiting -= 1;
            (next, left)
        });
        next.into_iter().for_each(|next| next.wake(py));
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.generation != fork::generation() {
            *state = State { generation: fork::generation(), ..State::default() };
        }
        act(&mut state)
    }
}

/// Where a call is in its queue: tickets are handed out under the lock, so that they ascend.
fn index_of(queue: &VecDeque<Place>, ticket: Ticket) -> Option<usize> {
    queue.binary_search_by_key(&ticket, |place| place.ticket).ok()
}
