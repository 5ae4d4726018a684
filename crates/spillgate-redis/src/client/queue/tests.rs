use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Waker};

use tokio::task::{JoinSet, yield_now};
use tokio::time::{advance, sleep};

use super::*;
use crate::flow::of_limit;

fn queue(in_flight: usize, waiting: usize) -> Arc<Queue> {
    let options = Options::new("redis://a").unwrap().in_flight(in_flight).waiting(waiting);
    Arc::new(Queue::new(&options, Arc::default()))
}

impl Queue {
    async fn enter(self: &Arc<Self>) -> Result<Permit, BackendError> {
        match self.enter_now() {
            Some(permit) => Ok(permit),
            None => self.wait().await,
        }
    }
}

/// Calls of the task that they are in.
async fn client_of<F: Future>(number: u8, calls: F) -> F::Output {
    of_limit(limit(number), calls).await
}

fn limit(number: u8) -> Name {
    Name::from_bytes([number; 16])
}

#[tokio::test]
async fn places_are_as_many_as_may_be_under_way_and_are_passed_on() {
    let queue = queue(2, 10);
    let first = queue.enter().await.unwrap();
    let second = queue.enter().await.unwrap();
    let waited = || queue.counters.health(None, Duration::ZERO, (0, 0)).waited;
    assert_eq!(waited(), 0);
    let mut third = pin!(queue.enter());
    let mut context = Context::from_waker(Waker::noop());
    assert!(third.as_mut().poll(&mut context).is_pending());
    assert_eq!(queue.load(), (2, 1));
    drop(first);
    assert_eq!(queue.load(), (2, 0));
    let Poll::Ready(Ok(third)) = third.as_mut().poll(&mut context) else { panic!() };
    assert_eq!(waited(), 1);
    drop((second, third));
    assert_eq!(queue.load(), (0, 0));
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_its_place_in_the_queue_and_its_turn() {
    let queue = queue(1, 10);
    let first = queue.enter().await.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut gone = pin!(queue.enter());
        assert!(gone.as_mut().poll(&mut context).is_pending());
        assert_eq!(queue.load(), (1, 1));
    }
    assert_eq!(queue.load(), (1, 0));
    let mut late = pin!(queue.enter());
    assert!(late.as_mut().poll(&mut context).is_pending());
    {
        let mut gone = pin!(queue.enter());
        assert!(gone.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(late.as_mut().poll(&mut context).is_ready(), "and gives it up at once");
        // Its turn has come, but it does not look any more.
        assert_eq!(queue.load(), (1, 0));
    }
    assert_eq!(queue.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_longer_than_a_while() {
    let queue = queue(1, 10);
    let _first = queue.enter().await.unwrap();
    let begin = Instant::now();
    let error = queue.enter().await.unwrap_err();
    assert_eq!(error.fault(), Fault::Overloaded);
    assert_eq!(begin.elapsed(), LONGEST);
    assert_eq!(queue.load(), (1, 0));
    let health = queue.counters.health(None, Duration::ZERO, queue.load());
    assert_eq!((health.overloaded, health.waited, health.wait), (1, 1, LONGEST));
}

#[tokio::test]
async fn a_full_queue_refuses_the_client_with_the_most_and_takes_others() {
    let queue = queue(1, 4);
    let first = queue.enter().await.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let enter = |number| Box::pin(of_limit(limit(number), queue.enter()));
    let mut flood: Vec<_> = (0..5).map(|_| enter(1)).collect();
    for (index, call) in flood.iter_mut().enumerate() {
        let polled = call.as_mut().poll(&mut context);
        assert_eq!(polled.is_pending(), index < 4, "{polled:?}");
    }
    let mut other = enter(2);
    assert!(other.as_mut().poll(&mut context).is_pending());
    assert_eq!(queue.load(), (1, 4));
    let Poll::Ready(Err(error)) = flood[3].as_mut().poll(&mut context) else { panic!() };
    assert_eq!(error.fault(), Fault::Overloaded);
    drop(first);
    assert!(flood[0].as_mut().poll(&mut context).is_ready());
    assert!(other.as_mut().poll(&mut context).is_ready());
}

/// 400 clients with 16 calls each, and a server that answers 20,000 calls in a second.
#[tokio::test(start_paused = true)]
async fn one_who_asks_little_hardly_waits_for_those_who_ask_much() {
    let queue = queue(64, 8192);
    let mut flood = JoinSet::new();
    for _ in 0..400 {
        let queue = queue.clone();
        flood.spawn(client_of(1, async move {
            loop {
                let calls = (0..16).map(|_| async {
                    let _permit = queue.enter().await?;
                    sleep(Duration::from_micros(64 * 50)).await;
                    Ok::<_, BackendError>(())
                });
                all(calls).await;
            }
        }));
    }
    advance(Duration::from_millis(500)).await;
    for number in [1, 2] {
        let queue = queue.clone();
        let innocent = tokio::spawn(client_of(number, async move {
            let mut slowest = Duration::ZERO;
            for _ in 0..100 {
                let begin = Instant::now();
                drop(queue.enter().await.unwrap());
                slowest = slowest.max(begin.elapsed());
                sleep(Duration::from_millis(5)).await;
            }
            slowest
        }));
        let slowest = innocent.await.unwrap();
        // A turn of each client of the same limit, and of no other.
        let most = if number == 1 { Duration::from_millis(50) } else { Duration::from_millis(10) };
        assert!(slowest < most, "{slowest:?}");
    }
}

/// Waits for all of these in one task.
async fn all<F: Future>(calls: impl Iterator<Item = F>) {
    let mut calls: Vec<_> = calls.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        calls.retain_mut(|call| call.as_mut().poll(context).is_pending());
        if calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn never_more_are_in_flight_while_callers_come_and_go() {
    const MOST: usize = 3;
    let (queue, under_way) = (queue(MOST, 1000), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for task in 0..40_u32 {
        let (queue, under_way) = (queue.clone(), under_way.clone());
        tasks.spawn(async move {
            for round in 0..200_u32 {
                let call = async {
                    let _permit = queue.enter().await.unwrap();
                    assert!(under_way.fetch_add(1, Ordering::SeqCst) < MOST);
                    if round % 3 == 0 {
                        yield_now().await;
                    }
                    under_way.fetch_sub(1, Ordering::SeqCst);
                };
                if (task + round) % 5 == 0 {
                    // Given up before its turn, if that does not come at once.
                    let mut gone = pin!(queue.enter());
                    let _ = std::future::poll_fn(|context| {
                        Poll::Ready(gone.as_mut().poll(context).map(drop))
                    })
                    .await;
                } else {
                    call.await;
                }
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(queue.load(), (0, 0));
}
