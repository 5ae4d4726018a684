//! Waiting: in order, bounded, and free to be given up.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use spillgate::{Busy, BusyCause, Concurrency, Permit};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout};

use super::threads::{Dice, Watermark};

const SECOND: Duration = Duration::from_secs(1);

/// Lets every other task run until it waits.
async fn settle() {
    for _ in 0..10 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order() {
    let calls: Concurrency<str> = Concurrency::new(2);
    let served = Arc::new(Mutex::new(Vec::new()));
    let held = calls.try_acquire_n("a", 2).unwrap();
    let mut tasks = JoinSet::new();
    for (id, count) in [(0, 2), (1, 1), (2, 1), (3, 2), (4, 1)] {
        let (wait, served) = (calls.acquire_n("a", count, SECOND), Arc::clone(&served));
        tasks.spawn(async move {
            let permit = wait.await.unwrap();
            served.lock().unwrap().push((id, permit.in_flight()));
            yield_now().await;
        });
        settle().await;
    }
    assert_eq!((calls.waiting(), served.lock().unwrap().len()), (5, 0));
    drop(held);
    tasks.join_all().await;
    let order: Vec<_> = served.lock().unwrap().iter().map(|(id, _)| *id).collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
    assert!(served.lock().unwrap().iter().all(|(_, in_flight)| *in_flight <= 2));
    assert_eq!((calls.waiting(), calls.active_keys()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn nobody_overtakes_the_first_in_the_queue() {
    let calls: Concurrency<str> = Concurrency::new(3);
    let (one, two) = (calls.try_acquire("a").unwrap(), calls.try_acquire("a").unwrap());
    // One is free, but the first needs three.
    let first = tokio::spawn(calls.acquire_n("a", 3, SECOND));
    settle().await;
    assert_eq!(calls.try_acquire("a").unwrap_err().cause, BusyCause::Queued);
    let second = tokio::spawn(calls.acquire("a", SECOND));
    settle().await;
    assert_eq!(calls.waiting(), 2);
    drop(one);
    settle().await;
    assert!(!first.is_finished() && !second.is_finished());
    drop(two);
    let first = first.await.unwrap().unwrap();
    settle().await;
    assert!(!second.is_finished());
    drop(first);
    assert!(second.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_so_is_the_wait() {
    let calls = Concurrency::<str>::builder(1).queue(1).capacity(1).build();
    let held = calls.acquire("a", Duration::ZERO).await.unwrap();
    let begin = Instant::now();
    let waiting = tokio::spawn(calls.acquire("a", 2 * SECOND));
    settle().await;
    let cause = |result: Result<_, Busy>| result.map(drop).unwrap_err().cause;
    assert_eq!(cause(calls.acquire("a", SECOND).await), BusyCause::QueueFull);
    assert_eq!(cause(calls.acquire_n("a", 2, SECOND).await), BusyCause::AboveLimit);
    assert_eq!(cause(calls.acquire("b", SECOND).await), BusyCause::NoRoom);
    assert!(calls.acquire_n("b", 0, SECOND).await.is_ok());
    assert_eq!(begin.elapsed(), Duration::ZERO);
    let busy = waiting.await.unwrap().unwrap_err();
    assert_eq!((busy.cause, busy.in_flight), (BusyCause::TimedOut, 1));
    assert_eq!(begin.elapsed(), 2 * SECOND);
    assert_eq!((calls.waiting(), calls.in_flight("a")), (0, 1));
    drop(held);
    assert_eq!(calls.active_keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_nobody_waits() {
    let calls = Concurrency::<str>::builder(1).queue(0).build();
    let held = calls.acquire("a", SECOND).await.unwrap();
    assert_eq!(calls.acquire("a", SECOND).await.unwrap_err().cause, BusyCause::QueueFull);
    drop(held);
    let _again = calls.acquire("a", Duration::MAX).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_gives_up_lets_the_next_pass() {
    let calls: Concurrency<str> = Concurrency::new(2);
    let held = calls.try_acquire("a").unwrap();
    let greedy = tokio::spawn(calls.acquire_n("a", 2, SECOND));
    settle().await;
    let modest = tokio::spawn(calls.acquire("a", 10 * SECOND));
    settle().await;
    assert_eq!(greedy.await.unwrap().unwrap_err().cause, BusyCause::TimedOut);
    assert_eq!(modest.await.unwrap().unwrap().in_flight(), 2);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_permit_granted_to_a_call_that_is_gone_goes_to_the_next() {
    let calls: Concurrency<str> = Concurrency::new(1);
    let held = calls.try_acquire("a").unwrap();
    let mut gone = Box::pin(calls.acquire("a", SECOND));
    assert!(timeout(Duration::ZERO, &mut gone).await.is_err(), "it waits");
    let next = tokio::spawn(calls.acquire("a", SECOND));
    settle().await;
    drop(held);
    // Granted, but never polled again.
    assert_eq!(calls.in_flight("a"), 1);
    settle().await;
    assert!(!next.is_finished());
    drop(gone);
    assert!(next.await.unwrap().is_ok());
    assert_eq!((calls.waiting(), calls.active_keys()), (0, 0));
}

/// Drops a future when it is woken, as a task may that ends others.
struct DropOnWake(Mutex<Option<Waiting>>);

type Waiting = Pin<Box<dyn Future<Output = Result<Permit, Busy>> + Send>>;

impl Wake for DropOnWake {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[tokio::test(start_paused = true)]
async fn a_permit_on_its_way_to_a_call_that_is_gone_goes_to_the_next() {
    let calls: Concurrency<str> = Concurrency::new(2);
    let held = calls.try_acquire_n("a", 2).unwrap();
    let [mut first, mut gone, mut next]: [Waiting; 3] =
        [(); 3].map(|()| Box::pin(calls.acquire("a", SECOND)) as Waiting);
    let wakes = Arc::new(DropOnWake(Mutex::default()));
    let [waker, noop] = [Waker::from(Arc::clone(&wakes)), Waker::noop().clone()];
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    for wait in [&mut gone, &mut next] {
        assert!(wait.as_mut().poll(&mut Context::from_waker(&noop)).is_pending());
    }
    *wakes.0.lock().unwrap() = Some(gone);
    // Grants to the first two. The first is woken, and the second is gone before its turn.
    drop(held);
    assert!(wakes.0.lock().unwrap().is_none());
    assert_eq!((calls.in_flight("a"), calls.waiting()), (2, 0));
    let both = [first.await.unwrap(), next.await.unwrap()];
    assert_eq!(both.iter().map(Permit::count).sum::<u32>(), 2);
    drop(both);
    assert_eq!(calls.active_keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_higher_limit_admits_and_a_lower_one_refuses_what_cannot_be() {
    let calls: Concurrency<str> = Concurrency::new(2);
    let held = calls.try_acquire_n("a", 2).unwrap();
    let waits = [1, 2].map(|count| tokio::spawn(calls.acquire_n("a", count, 100 * SECOND)));
    settle().await;
    let own = tokio::spawn(calls.acquire_within("a", 1, 3, 100 * SECOND));
    settle().await;
    calls.set_limit(3);
    let [one, two] = waits;
    let one = one.await.unwrap().unwrap();
    assert_eq!(one.in_flight(), 3);
    calls.set_limit(1);
    // The first in the queue now needs more than the limit; the next is full with its own.
    assert_eq!(two.await.unwrap().unwrap_err().cause, BusyCause::AboveLimit);
    settle().await;
    assert!(!own.is_finished());
    drop(held);
    assert_eq!(own.await.unwrap().unwrap().in_flight(), 2);
    drop(one);
    assert_eq!(calls.active_keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_limit_means_before_the_queue() {
    let calls: Concurrency<str> = Concurrency::new(1);
    let held = calls.try_acquire("a").unwrap();
    let waiting = tokio::spawn(calls.acquire("a", SECOND));
    settle().await;
    let beyond = calls.acquire_beyond("a", 1);
    assert_eq!(beyond.in_flight(), 2);
    drop(held);
    settle().await;
    assert!(!waiting.is_finished(), "one is in flight still");
    drop(beyond);
    assert!(waiting.await.unwrap().is_ok());
}

/// Polls a future so many times, then drops it.
async fn polled<T>(future: impl Future<Output = T>, times: u64) -> Option<T> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// A caller that waits, gives up, holds and panics.
/// Returns how many calls were granted of those that wait until they are: all, if each is.
async fn call_often(
    calls: Concurrency<u64>,
    marks: Arc<[Watermark]>,
    mut dice: Dice,
) -> (u64, u64) {
    let (mut granted, mut patient) = (0, 0);
    for _ in 0..300 {
        let key = dice.roll(marks.len() as u64);
        let wait = calls.acquire_n(&key, 1 + dice.roll(3) as u32, Duration::MAX);
        let permit = match dice.roll(3) {
            0 => polled(wait, dice.roll(20)).await,
            1 => timeout(Duration::from_micros(dice.roll(100)), wait).await.ok(),
            _ => {
                patient += 1;
                let permit = wait.await;
                granted += u64::from(permit.is_ok());
                Some(permit)
            }
        };
        let Some(Ok(permit)) = permit else { continue };
        let panics = dice.roll(10) == 0;
        let (marks, yields) = (Arc::clone(&marks), dice.roll(3));
        let held = tokio::spawn(async move {
            marks[key as usize].hold(permit, || {
                (0..yields).for_each(|_| std::thread::yield_now());
                if panics {
                    resume_unwind(Box::new("in progress"));
                }
            });
        });
        assert_eq!(held.await.is_err(), panics);
    }
    (granted, patient)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_permit_comes_back_from_cancelled_and_panicking_tasks() {
    let calls: Concurrency<u64> = Concurrency::new(4);
    let marks: Arc<[_]> = [(); 2].map(|()| Watermark::default()).into();
    let mut tasks = JoinSet::new();
    for task in 0..32 {
        tasks.spawn(call_often(calls.clone(), Arc::clone(&marks), Dice::new(task + 1)));
    }
    let limits = calls.clone();
    let changing = tokio::spawn(async move {
        for limit in [3, 4].into_iter().cycle().take(2_000) {
            limits.set_limit(limit);
            yield_now().await;
        }
    });
    // A wait that nobody ends would last for ever.
    let granted = timeout(120 * SECOND, tasks.join_all()).await.expect("somebody waits for ever");
    changing.await.unwrap();
    assert!(granted.iter().all(|(granted, patient)| granted == patient), "{granted:?}");
    assert!(marks.iter().all(|mark| (1..=4).contains(&mark.most())));
    assert_eq!((calls.total_in_flight(), calls.active_keys(), calls.waiting()), (0, 0, 0));
}
