//! Waiting: bounded, in order, and free to be given up. Time is tokio's, paused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::{AlgorithmKind, Clock, Limiter, LimiterBuilder, Timestamp};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// The runtime's clock, which jumps to the next timer while it is paused.
#[derive(Clone, Copy)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_700_000_000) + self.0.elapsed()
    }
}

fn builder(quota: &str) -> LimiterBuilder<str, TokioClock> {
    Limiter::builder(quota).clock(TokioClock(Instant::now()))
}

#[tokio::test(start_paused = true)]
async fn it_waits_until_the_call_passes() {
    let limiter = builder("2/s burst 1").build().unwrap();
    let begin = Instant::now();
    for _ in 0..5 {
        assert!(limiter.until_ready("a", SECOND).await.is_ok());
    }
    assert_eq!(begin.elapsed(), 2 * SECOND);
    assert_eq!(limiter.counts().allowed, 5);
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_at_once_if_the_wait_would_be_too_long() {
    let limiter = builder("1/min").build().unwrap();
    assert!(limiter.until_ready("a", Duration::ZERO).await.is_ok());
    let begin = Instant::now();
    let denied = limiter.until_ready("a", 59 * SECOND).await.unwrap_err();
    assert_eq!(denied.retry_after(), Some(60 * SECOND));
    let never = limiter.until_ready_n("a", 2, Duration::MAX).await.unwrap_err();
    assert_eq!(never.retry_after(), None);
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!(limiter.counts().denied, 2);
    assert!(limiter.until_ready("a", Duration::MAX).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order() {
    let limiter = Arc::new(builder("10/s burst 1").build().unwrap());
    let served = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..20)
        .map(|caller| {
            let (limiter, served) = (Arc::clone(&limiter), Arc::clone(&served));
            tokio::spawn(async move {
                assert!(limiter.until_ready("a", 10 * SECOND).await.is_ok());
                served.lock().unwrap().push(caller);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_caller_far_down_the_line_gives_up_in_time() {
    let limiter = Arc::new(builder("1/s burst 1").build().unwrap());
    assert!(limiter.check("a").is_allowed());
    let first = Arc::clone(&limiter);
    let first = tokio::spawn(async move { first.until_ready_n("a", 1, 5 * SECOND).await.is_ok() });
    tokio::task::yield_now().await;
    let begin = Instant::now();
    assert!(limiter.until_ready("a", SECOND / 2).await.is_err());
    assert_eq!(begin.elapsed(), SECOND / 2);
    assert!(first.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn giving_up_spends_nothing_and_lets_the_next_in() {
    let limiter = Arc::new(builder("1/s burst 1").build().unwrap());
    assert!(limiter.check("a").is_allowed());
    let begin = Instant::now();
    let gone = timeout(SECOND / 4, limiter.until_ready("a", 10 * SECOND)).await;
    assert!(gone.is_err(), "cancelled while it waited");
    assert!(limiter.until_ready("a", 10 * SECOND).await.is_ok());
    assert_eq!(begin.elapsed(), SECOND);
    assert_eq!(limiter.counts().allowed, 2);
}

#[tokio::test(start_paused = true)]
async fn a_shaper_spaces_calls_evenly() {
    let shaper = builder("4/s burst 3").algorithm(AlgorithmKind::LeakyShaper).build().unwrap();
    let begin = Instant::now();
    let mut left = Vec::new();
    for _ in 0..3 {
        assert!(shaper.until_ready("a", SECOND).await.is_ok());
        left.push(begin.elapsed());
    }
    assert_eq!(left, [0, 250, 500].map(Duration::from_millis));
}

#[tokio::test(start_paused = true)]
async fn a_shapers_last_in_line_gives_its_place_back() {
    let shaper = builder("1/s burst 5").algorithm(AlgorithmKind::LeakyShaper).build().unwrap();
    assert!(shaper.check("a").is_allowed());
    let gone = timeout(SECOND / 2, shaper.until_ready("a", 10 * SECOND)).await;
    assert!(gone.is_err(), "cancelled while it waited for its turn");
    assert_eq!(shaper.peek("a").wait(), SECOND / 2, "only the first is ahead");

    let denied = shaper.until_ready("a", SECOND / 4).await.unwrap_err();
    assert!(denied.wait() > SECOND / 4);
    assert_eq!(shaper.peek("a").wait(), SECOND / 2, "too long a wait takes no place");
    assert_eq!((shaper.counts().allowed, shaper.counts().denied), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_many_callers_leaves_nothing_behind() {
    let limiter = Arc::new(builder("1/s burst 1").build().unwrap());
    let tasks: Vec<_> = (0..1_000)
        .map(|call| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move {
                sleep(Duration::from_millis(call % 7)).await;
                let key = (call % 100).to_string();
                let _ = limiter.until_ready(&key, Duration::from_secs(call % 5)).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(limiter.waiting(), 0);
}
