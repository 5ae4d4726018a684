//! The delay of an event loop.

use spillgate::adaptive::{EventLoopDelay, Signal};
use tokio::time::{advance, sleep};

use super::{at, ms};

#[tokio::test(start_paused = true)]
async fn a_loop_that_was_blocked_is_late() {
    let mut delay = EventLoopDelay::start().unwrap();
    sleep(ms(1_000)).await;
    let idle = delay.read(at(0)).unwrap();
    assert!(idle <= 0.002, "{idle}");
    // Nothing runs for 400 ms: the tick that is due within 50 ms has not been yet.
    advance(ms(400)).await;
    let blocked = delay.read(at(0)).unwrap();
    assert!((0.345..=0.4).contains(&blocked), "{blocked}");
    sleep(ms(200)).await;
    let _ = delay.read(at(0));
    sleep(ms(200)).await;
    let idle = delay.read(at(0)).unwrap();
    assert!(idle <= 0.002, "{idle}: it is over");
}

#[test]
fn without_a_loop_or_its_timer_there_is_no_signal() {
    assert!(EventLoopDelay::start().is_none());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut delay = runtime.block_on(async { EventLoopDelay::start() }).unwrap();
    // The task panics for want of a timer.
    runtime.block_on(async { tokio::task::yield_now().await });
    assert_eq!(delay.read(at(0)), None);
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_its_signal() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let delay = EventLoopDelay::start().unwrap();
    sleep(ms(100)).await;
    assert_eq!(tasks(), before + 1);
    drop(delay);
    sleep(ms(100)).await;
    assert_eq!(tasks(), before);
}
