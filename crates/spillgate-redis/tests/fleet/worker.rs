//! One process of the fleet.

use spillgate_testing::CheckLimit;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::{Gate, Policy};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::common::real_time;
use crate::fleet::order::Order;

/// The file that a process writes what it has seen to.
pub(crate) const FILE: &str = "SPILLGATE_FLEET_FILE";

/// What a process prints when it is ready to begin.
pub(crate) const READY: &str = "ready";

/// How many calls of a process are under way at most.
const TASKS: u64 = 16;

/// A call that passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    pub(crate) caller: u64,
    /// The real time before it was asked for.
    pub(crate) before: u64,
    /// Redis's time at which it was decided, as the decision has it.
    pub(crate) now: u64,
    /// The real time after it was answered.
    pub(crate) after: u64,
}

/// What a process has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) asked: u64,
    pub(crate) failed: u64,
    /// How many were allowed out of slices.
    pub(crate) leased: u64,
    pub(crate) admissions: Vec<Admission>,
}

/// Not a test by itself: the others start this program again, as a process that does this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other tests run it"]
async fn worker() {
    let Ok(order) = std::env::var(Order::VARIABLE) else { return };
    let order = Order::from_text(&order);
    let options = Options::new(&order.url).unwrap();
    // On a busy machine nothing is to be decided otherwise than by Redis.
    let options = options.command_time_out(Duration::from_secs(2));
    let client = Client::connect(options.connect_time_out(Duration::from_secs(5))).await.unwrap();
    let [all, asked] = order.processes;
    let mut settings = Settings::default();
    // Those that are not asked are not there to be counted.
    if asked < all {
        settings = settings.nodes(NonZeroU32::new(all as u32).unwrap());
    }
    let store = RedisStore::new(client, &settings).unwrap();
    let policy = Policy::from_toml(&order.policy()).unwrap();
    let gate = Arc::new(Gate::with_store(policy, store).unwrap());
    begins();
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(ask(Arc::clone(&gate), order.clone(), task, begin));
    }
    let mut all = Seen::default();
    for seen in tasks.join_all().await {
        all.asked += seen.asked;
        all.failed += seen.failed;
        all.admissions.extend(seen.admissions);
    }
    gate.store().shutdown().await;
    all.leased = gate.store().stats().leases.allowed;
    std::fs::write(std::env::var(FILE).unwrap(), all.to_text()).unwrap();
}

/// Says that this process is ready, and waits until all are.
fn begins() {
    println!("{READY}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Asks at a steady pace, whatever the answers are; calls that come late are made up for.
async fn ask(gate: Arc<Gate<RedisStore<Client>>>, order: Order, task: u64, begin: Instant) -> Seen {
    let callers: Vec<_> = (0..order.callers).map(|caller| format!("caller {caller}")).collect();
    let (pace, end) = (order.pace(TASKS), begin + Duration::from_secs(order.seconds));
    let mut due = begin + pace * task as u32 / TASKS as u32;
    let mut seen = Seen::default();
    while due < end && Instant::now() < end {
        sleep_until(due).await;
        due += pace;
        seen.asked += 1;
        let caller = (seen.asked + task) % order.callers;
        let before = real_time();
        let checked = gate.check_limit("l", &[&callers[caller as usize]], 1).await;
        let after = real_time();
        match checked {
            Ok(decision) if decision.is_allowed() => {
                let now = decision.now().as_nanos();
                seen.admissions.push(Admission { caller, before, now, after });
            }
            Ok(_) => {}
            Err(_) => seen.failed += 1,
        }
    }
    seen
}

impl Seen {
    fn to_text(&self) -> String {
        let mut text = format!("{} {} {}\n", self.asked, self.failed, self.leased);
        for Admission { caller, before, now, after } in &self.admissions {
            text += &format!("{caller} {before} {now} {after}\n");
        }
        text
    }

    /// Reads what a process wrote.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut lines = text.lines().map(|line| {
            let words = line.split(' ').map(|word| word.parse().unwrap());
            words.collect::<Vec<u64>>()
        });
        let head = lines.next().unwrap();
        let admission = |line: Vec<u64>| Admission {
            caller: line[0],
            before: line[1],
            now: line[2],
            after: line[3],
        };
        let admissions = lines.map(admission).collect();
        Self { asked: head[0], failed: head[1], leased: head[2], admissions }
    }
}
