use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::faults::calls::{Call, Calls};
use crate::faults::node::{LimitKind, Node};
use crate::is_quiet;

/// Calls that are made at a steady rate, whether or not those before have been answered.
pub(crate) struct Load {
    state: Arc<LoadState>,
    sending: JoinHandle<()>,
}

struct LoadState {
    node: Node,
    /// Who asks under the local limit. The others are always the same.
    caller: String,
    made: Mutex<Vec<Call>>,
    has_ended: AtomicBool,
}

impl Load {
    /// Begins to make so many calls a second.
    pub(crate) fn begin(node: &Node, rate: f64, caller: &str) -> Self {
        let state = Arc::new(LoadState {
            node: node.clone(),
            caller: caller.to_owned(),
            made: Mutex::default(),
            has_ended: AtomicBool::new(false),
        });
        let sending = tokio::spawn(send(Arc::clone(&state), Duration::from_secs_f64(1.0 / rate)));
        Self { state, sending }
    }

    /// Waits until Redis has decided about a call that was due after a moment, and tells
    /// how long after it that was.
    pub(crate) async fn decided_after(&self, moment: Instant) -> Duration {
        let is_such = |call: &&Call| call.due >= moment && call.is_by_redis();
        loop {
            let since = |call: &Call| call.due + call.took - moment;
            let first = self.state.made.lock().unwrap().iter().find(is_such).map(since);
            if let Some(first) = first {
                return first;
            }
            assert!(moment.elapsed() < Duration::from_secs(30), "nothing was decided in 30 s");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends, and returns all calls once they are answered.
    pub(crate) async fn end(self) -> Calls {
        self.state.has_ended.store(true, Ordering::SeqCst);
        self.sending.await.unwrap();
        Calls(std::mem::take(&mut self.state.made.lock().unwrap()))
    }
}

async fn send(state: Arc<LoadState>, pace: Duration) {
    let mut ticks = interval(Duration::from_millis(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut due, mut tasks) = (Instant::now(), JoinSet::new());
    let mut limits = LimitKind::ALL.into_iter().cycle();
    while !state.has_ended.load(Ordering::SeqCst) {
        ticks.tick().await;
        while due <= Instant::now() {
            let limit = limits.next().unwrap();
            tasks.spawn(make(Arc::clone(&state), limit, due));
            due += pace;
        }
        while tasks.try_join_next().is_some() {}
    }
    tasks.join_all().await;
}

async fn make(state: Arc<LoadState>, limit: LimitKind, due: Instant) {
    let caller = if limit == LimitKind::Local { &state.caller } else { "always the same" };
    let outcome = state.node.ask(limit, caller).await;
    let call = Call { limit, due, took: due.elapsed(), outcome };
    state.made.lock().unwrap().push(call);
}

/// How many calls a second are answered when there are always as many as can be.
pub(crate) async fn saturation(node: &Node) -> f64 {
    const TASKS: usize = 64;
    let long = Duration::from_millis(if is_quiet() { 400 } else { 200 });
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let node = node.clone();
        tasks.spawn(async move {
            let (mut answered, caller) = (0, format!("caller {task}"));
            while begin.elapsed() < long {
                answered += usize::from(node.ask(LimitKind::Open, &caller).await.is_by_redis());
            }
            answered
        });
    }
    let answered: usize = tasks.join_all().await.into_iter().sum();
    answered as f64 / begin.elapsed().as_secs_f64()
}
