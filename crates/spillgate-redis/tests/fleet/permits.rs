//! Processes that hold permits through one server, and what becomes of them when one dies or stands
//! still.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use rustix::process::{Pid, Signal, kill_process};
use spillgate_policy::Key;
use spillgate_policy::store::{HoldSpec, LimitSpec, Outage, Permits, Spend, Store};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisLimits, RedisStore, Settings};
use spillgate_testing::effort;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::common::Server;
use crate::{TURN, is_quiet};

/// What a process is told: the server, its number, the limit, and for how many milliseconds to hold
/// and release; 0 to hold all permits for ever.
const ORDER: &str = "SPILLGATE_PERMITS_ORDER";

const TTL: Duration = Duration::from_secs(2);

/// Longer than a test machine ever stands still.
const PATIENCE: Duration = Duration::from_secs(30);

/// Notes by process how many permits are in flight, and the most that ever were.
const ENTER: &str = "
    redis.call('HINCRBY', 'running', ARGV[1], ARGV[2])
    local total = 0
    for _, count in ipairs(redis.call('HVALS', 'running')) do total = total + count end
    if total > tonumber(redis.call('GET', 'most') or 0) then redis.call('SET', 'most', total) end
    if tonumber(ARGV[2]) > 0 then redis.call('INCR', 'granted') end";

struct HoldingStore {
    store: RedisStore,
    limits: RedisLimits,
}

impl HoldingStore {
    async fn connect(url: &str, permits: u32) -> Self {
        let options = Options::new(url).unwrap().command_time_out(Duration::from_secs(1));
        let client = Client::connect(options.connect_time_out(Duration::from_secs(5))).await;
        let settings = Settings::default().nodes(3.try_into().unwrap());
        let store = RedisStore::new(client.unwrap(), &settings).unwrap();
        let spec = LimitSpec::new("l", format!("burst {permits}").parse().unwrap());
        let mut spec = spec.holding(HoldSpec::new(TTL));
        spec.outage = Outage::Closed;
        let limits = store.open(&[spec]).unwrap();
        Self { store, limits }
    }

    async fn hold(&self, count: u64) -> Permits {
        let spend = Spend::new(0, Key::from_bytes(b"ann"), count);
        let (mut spends, mut permits) = ([spend], Permits::new());
        self.store.hold(&self.limits, &mut spends, &mut permits).await.unwrap();
        permits
    }

    fn expired(&self) -> u64 {
        self.store.usage(&self.limits, 0).unwrap().expired
    }
}

async fn note(connection: &mut MultiplexedConnection, number: &str, count: i64) {
    let mut noting = redis::cmd("EVAL");
    noting.arg(ENTER).arg(0).arg(number).arg(count);
    noting.exec_async(connection).await.unwrap();
}

/// Not a test by itself: the others start this program again, as a process that does this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other tests run it"]
async fn permit_worker() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let words: Vec<_> = order.split(' ').map(str::to_owned).collect();
    let [url, number, permits, millis] = words.try_into().unwrap();
    let (permits, millis): (u32, u64) = (permits.parse().unwrap(), millis.parse().unwrap());
    let node = std::sync::Arc::new(HoldingStore::connect(&url, permits).await);
    let client = redis::Client::open(url.as_str()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    if millis == 0 {
        let held = node.hold(permits.into()).await;
        assert!(!held.is_empty());
        note(&mut connection, &number, permits.into()).await;
        loop {
            let mut tell = redis::cmd("SET");
            tell.arg("expired").arg(node.expired());
            tell.exec_async(&mut connection).await.unwrap();
            sleep(Duration::from_millis(50)).await;
        }
    }
    let end = Instant::now() + Duration::from_millis(millis);
    let mut tasks = JoinSet::new();
    for task in 0..6_u64 {
        let (node, number, mut connection) = (node.clone(), number.clone(), connection.clone());
        tasks.spawn(async move {
            while Instant::now() < end {
                let permits = node.hold(1 + task % 2).await;
                if !permits.is_empty() {
                    note(&mut connection, &number, 1 + task as i64 % 2).await;
                    sleep(Duration::from_millis(task)).await;
                    note(&mut connection, &number, -1 - task as i64 % 2).await;
                }
                drop(permits);
                sleep(Duration::from_millis(3)).await;
            }
        });
    }
    tasks.join_all().await;
    node.store.shutdown().await;
    assert_eq!(node.expired(), 0);
}

/// A process that ends with the test.
struct HoldingProcess(Child);

impl HoldingProcess {
    fn start(server: &Server, number: u32, permits: u32, millis: u64) -> Self {
        let order = format!("{} {number} {permits} {millis}", server.url());
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["fleet::permits::permit_worker", "--exact", "--ignored"]).env(ORDER, order);
        Self(program.stdout(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for HoldingProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(server: &Server, key: &str) -> u64 {
    let value: Option<u64> = redis::cmd("GET").arg(key).query(&mut server.admin()).unwrap();
    value.unwrap_or(0)
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) -> Duration {
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < PATIENCE, "it did not come to pass that {what}");
        sleep(Duration::from_millis(20)).await;
    }
    begin.elapsed()
}

#[test]
fn three_processes_never_hold_more_permits_than_there_are() {
    let _turn = TURN.blocking_lock();
    let millis = u64::from(effort().min(10)) * 1000;
    for permits in [3, 100] {
        let server = Server::redis();
        let start = |number| HoldingProcess::start(&server, number, permits, millis);
        let mut processes: Vec<_> = (0..3).map(start).collect();
        for process in &mut processes {
            assert!(process.0.wait().unwrap().success());
        }
        let (most, granted) = (number(&server, "most"), number(&server, "granted"));
        eprintln!("{permits} permits: {granted} granted, at most {most} in flight");
        assert!(most <= permits.into(), "{most} of {permits} were in flight");
        assert!(most >= 3 && granted > 100, "{most}, {granted}");
    }
}

#[tokio::test]
async fn the_permits_of_a_killed_process_are_back_within_their_time_to_live() {
    let _turn = TURN.lock().await;
    let server = Server::redis();
    let mut other = HoldingProcess::start(&server, 0, 4, 0);
    until("it holds all", async || number(&server, "most") == 4).await;
    let node = HoldingStore::connect(&server.url(), 4).await;
    // It renews them.
    let begin = Instant::now();
    while begin.elapsed() < TTL + TTL / 2 {
        assert!(node.hold(1).await.is_empty());
        sleep(Duration::from_millis(100)).await;
    }
    other.0.kill().unwrap();
    other.0.wait().unwrap();
    let took = until("they are free", async || !node.hold(4).await.is_empty()).await;
    eprintln!("free again after {took:?}");
    assert!(!is_quiet() || took <= TTL + Duration::from_secs(1), "{took:?}");
    assert_eq!(node.expired(), 0);
}

#[tokio::test]
async fn a_process_that_stood_still_for_longer_than_its_permits_last_counts_them_as_expired() {
    let _turn = TURN.lock().await;
    let server = Server::redis();
    let other = HoldingProcess::start(&server, 0, 4, 0);
    until("it holds all", async || number(&server, "most") == 4).await;
    let node = HoldingStore::connect(&server.url(), 4).await;
    other.signal(Signal::STOP);
    until("they are free", async || !node.hold(4).await.is_empty()).await;
    assert_eq!(number(&server, "expired"), 0);
    other.signal(Signal::CONT);
    until("it counts them", async || number(&server, "expired") == 4).await;
}
