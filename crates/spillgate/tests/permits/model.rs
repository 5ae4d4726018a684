//! Any history of calls ends as a slow reference says.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use spillgate::{Busy, BusyCause, Concurrency, Permit};
use tokio::task::unconstrained;
use tokio::time::advance;

/// Who wants how many, under which limit.
#[derive(Clone, Copy, Debug)]
struct Wish {
    key: u8,
    count: u32,
    limit: Option<u32>,
}

#[derive(Clone, Debug)]
enum Step {
    Try(Wish),
    Beyond(Wish),
    Acquire(Wish, u64),
    Release(usize),
    Cancel(usize),
    SetLimit(u32),
    SetCapacity(usize),
    Advance(u64),
}

const KEYS: u8 = 4;

fn wish() -> impl Strategy<Value = Wish> {
    let limit = prop_oneof![4 => proptest::strategy::Just(None), 1 => (0_u32..6).prop_map(Some)];
    let count = prop_oneof![4 => 1_u32..3, 1 => 0_u32..5];
    (0..KEYS, count, limit).prop_map(|(key, count, limit)| Wish { key, count, limit })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => wish().prop_map(Step::Try),
        1 => wish().prop_map(Step::Beyond),
        6 => (wish(), 1_u64..20).prop_map(|(wish, millis)| Step::Acquire(wish, millis)),
        6 => any::<usize>().prop_map(Step::Release),
        2 => any::<usize>().prop_map(Step::Cancel),
        1 => (0_u32..5).prop_map(Step::SetLimit),
        1 => (0_usize..5).prop_map(Step::SetCapacity),
        2 => (1_u64..10).prop_map(Step::Advance),
    ]
}

/// How a call ended: what was in flight then, and why if it was refused.
type Ending = Result<u32, (u32, BusyCause)>;

/// The reference: lists, searched from the beginning each time.
struct Model {
    limit: u32,
    capacity: usize,
    queue: usize,
    /// By id.
    held: Vec<(usize, Wish)>,
    /// In the order in which they came.
    waiting: Vec<(usize, Wish)>,
    /// Of calls that waited.
    endings: Vec<(usize, Ending)>,
}

impl Model {
    fn in_flight(&self, key: u8) -> u32 {
        self.held.iter().filter(|(_, wish)| wish.key == key).map(|(_, wish)| wish.count).sum()
    }

    fn keys(&self) -> BTreeSet<u8> {
        self.held.iter().map(|(_, wish)| wish.key).collect()
    }

    fn waiting_for(&self, key: u8) -> usize {
        self.waiting.iter().filter(|(_, wish)| wish.key == key).count()
    }

    fn has_room(&self, key: u8) -> bool {
        self.keys().contains(&key) || self.keys().len() < self.capacity
    }

    fn try_acquire(&mut self, id: usize, wish: Wish) -> Ending {
        let in_flight = self.in_flight(wish.key);
        let limit = wish.limit.unwrap_or(self.limit);
        let refused = |cause| Err((in_flight, cause));
        match () {
            () if wish.count == 0 => Ok(in_flight),
            () if wish.count > limit => refused(BusyCause::AboveLimit),
            () if !self.has_room(wish.key) => refused(BusyCause::NoRoom),
            () if self.waiting_for(wish.key) > 0 => refused(BusyCause::Queued),
            () if in_flight + wish.count > limit => refused(BusyCause::Held),
            () => {
                self.held.push((id, wish));
                Ok(in_flight + wish.count)
            }
        }
    }

    fn beyond(&mut self, id: usize, wish: Wish) -> Ending {
        if wish.count == 0 {
            return Ok(self.in_flight(wish.key));
        }
        if !self.has_room(wish.key) {
            return Ok(wish.count);
        }
        self.held.push((id, wish));
        Ok(self.in_flight(wish.key))
    }

    /// `None` if it waits.
    fn acquire(&mut self, id: usize, wish: Wish) -> Option<Ending> {
        match self.try_acquire(id, wish) {
            Err((in_flight, BusyCause::Held | BusyCause::Queued)) => {
                if self.waiting_for(wish.key) >= self.queue {
                    return Some(Err((in_flight, BusyCause::QueueFull)));
                }
                self.waiting.push((id, wish));
                None
            }
            ending => Some(ending),
        }
    }

    fn release(&mut self, id: usize) {
        self.held.retain(|(held, _)| *held != id);
        self.admit();
    }

    fn leave(&mut self, id: usize) {
        self.waiting.retain(|(waiting, _)| *waiting != id);
        self.admit();
    }

    fn admit(&mut self) {
        let first = |key: u8| self.waiting.iter().position(|(_, wish)| wish.key == key);
        let ready = (0..KEYS).filter_map(first).find(|index| {
            let (_, wish) = self.waiting[*index];
            let limit = wish.limit.unwrap_or(self.limit);
            wish.count > limit || self.in_flight(wish.key) + wish.count <= limit
        });
        let Some(index) = ready else { return };
        let (id, wish) = self.waiting.remove(index);
        let in_flight = self.in_flight(wish.key);
        let ending = if wish.count > wish.limit.unwrap_or(self.limit) {
            Err((in_flight, BusyCause::AboveLimit))
        } else {
            self.held.push((id, wish));
            Ok(in_flight + wish.count)
        };
        self.endings.push((id, ending));
        self.admit();
    }
}

type Waiting = Pin<Box<dyn Future<Output = Result<Permit, Busy>>>>;

/// The real one beside the reference.
struct Both {
    real: Concurrency<u8>,
    model: Model,
    permits: Vec<(usize, Permit)>,
    /// With the time at which they give up.
    waits: Vec<(usize, u64, Waiting)>,
    next: usize,
    now: u64,
}

fn ending(result: &Result<Permit, Busy>) -> Ending {
    match result {
        Ok(permit) => Ok(permit.in_flight()),
        Err(busy) => Err((busy.in_flight, busy.cause)),
    }
}

impl Both {
    fn new() -> Self {
        let real = Concurrency::builder(3).capacity(3).queue(3).build();
        let (held, waiting, endings) = Default::default();
        let model = Model { limit: 3, capacity: 3, queue: 3, held, waiting, endings };
        Self { real, model, permits: Vec::new(), waits: Vec::new(), next: 0, now: 0 }
    }

    fn finish(&mut self, id: usize, result: Result<Permit, Busy>, expected: Ending) {
        assert_eq!(ending(&result), expected, "call {id}");
        self.permits.extend(result.ok().map(|permit| (id, permit)));
    }

    async fn step(&mut self, step: &Step) {
        self.next += 1;
        let id = self.next;
        match *step {
            Step::Try(wish) => {
                let expected = self.model.try_acquire(id, wish);
                self.finish(id, try_real(&self.real, wish), expected);
            }
            Step::Beyond(wish) => {
                let expected = self.model.beyond(id, wish);
                self.finish(id, Ok(self.real.acquire_beyond(&wish.key, wish.count)), expected);
            }
            Step::Acquire(wish, millis) => self.acquire(id, wish, millis),
            Step::Release(index) if !self.permits.is_empty() => {
                let (id, permit) = self.permits.remove(index % self.permits.len());
                drop(permit);
                self.model.release(id);
            }
            Step::Cancel(index) if !self.waits.is_empty() => {
                let (id, ..) = self.waits.remove(index % self.waits.len());
                self.model.leave(id);
            }
            Step::Release(_) | Step::Cancel(_) => {}
            Step::SetLimit(limit) => {
                self.real.set_limit(limit);
                self.model.limit = limit;
                self.model.admit();
            }
            Step::SetCapacity(keys) => {
                self.real.set_capacity(keys);
                self.model.capacity = keys;
            }
            Step::Advance(millis) => {
                self.now += millis;
                advance(Duration::from_millis(millis)).await;
            }
        }
    }

    fn acquire(&mut self, id: usize, Wish { key, count, limit }: Wish, millis: u64) {
        let timeout = Duration::from_millis(millis);
        let mut wait: Waiting = match limit {
            None => Box::pin(unconstrained(self.real.acquire_n(&key, count, timeout))),
            Some(limit) => {
                Box::pin(unconstrained(self.real.acquire_within(&key, count, limit, timeout)))
            }
        };
        match (poll(&mut wait), self.model.acquire(id, Wish { key, count, limit })) {
            (Poll::Ready(result), Some(expected)) => self.finish(id, result, expected),
            (Poll::Pending, None) => self.waits.push((id, self.now + millis, wait)),
            (Poll::Ready(result), None) => panic!("{id} should wait: {result:?}"),
            (Poll::Pending, Some(expected)) => panic!("{id} waits for {expected:?}"),
        }
    }

    /// Polls everyone who waits, in turn: who has its answer ends, and who is late gives up.
    fn poll_all(&mut self) {
        for (id, deadline, mut wait) in std::mem::take(&mut self.waits) {
            let answer = self.model.endings.iter().position(|(ended, _)| *ended == id);
            match (poll(&mut wait), answer) {
                (Poll::Ready(result), Some(index)) => {
                    let (_, expected) = self.model.endings.remove(index);
                    self.finish(id, result, expected);
                }
                (Poll::Ready(result), None) => {
                    assert!(deadline <= self.now, "{id} ends too early: {result:?}");
                    let key = self.model.waiting.iter().find(|(waiting, _)| *waiting == id);
                    let in_flight = self.model.in_flight(key.unwrap().1.key);
                    self.model.leave(id);
                    self.finish(id, result, Err((in_flight, BusyCause::TimedOut)));
                }
                (Poll::Pending, Some(_)) => panic!("{id} has its answer, but waits"),
                (Poll::Pending, None) => {
                    assert!(deadline > self.now, "{id} waits for too long");
                    self.waits.push((id, deadline, wait));
                }
            }
        }
    }

    fn compare(&self) {
        for key in 0..KEYS {
            assert_eq!(self.real.in_flight(&key), self.model.in_flight(key), "key {key}");
        }
        let total: u32 = (0..KEYS).map(|key| self.model.in_flight(key)).sum();
        assert_eq!(self.real.total_in_flight(), u64::from(total));
        assert_eq!(self.real.active_keys(), self.model.keys().len());
        assert_eq!(self.real.waiting(), self.model.waiting.len());
    }
}

fn try_real(real: &Concurrency<u8>, Wish { key, count, limit }: Wish) -> Result<Permit, Busy> {
    match limit {
        None => real.try_acquire_n(&key, count),
        Some(limit) => real.try_acquire_within(&key, count, limit),
    }
}

fn poll(wait: &mut Waiting) -> Poll<Result<Permit, Busy>> {
    wait.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

proptest! {
    #[test]
    fn any_history_ends_as_the_reference_says(steps in vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut both = Both::new();
            for step in &steps {
                both.step(step).await;
                both.compare();
                both.poll_all();
                both.compare();
            }
            // Everyone leaves, and nothing is left.
            let Both { real, permits, waits, .. } = both;
            drop((permits, waits));
            assert_eq!((real.total_in_flight(), real.active_keys(), real.waiting()), (0, 0, 0));
        });
    }
}
