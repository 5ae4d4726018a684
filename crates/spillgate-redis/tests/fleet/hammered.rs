//! No caller ever gets more than its quota, and nearly all of it.

use spillgate_policy::{Gate, Policy};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use spillgate_testing::{CheckLimit, effort};
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::common::{Server, Span};
use crate::fleet::order::Order;
use crate::fleet::processes;
use crate::fleet::worker::{Admission, Seen};
use crate::{TURN, is_quiet};

/// Redis servers tell the time in microseconds.
const TICK: u64 = 1_000;

/// How long processes go on, in seconds.
fn seconds() -> u64 {
    (2 * u64::from(effort())).min(30)
}

/// How much of the quota must be used on a machine that may be busy with other things.
const IN_HASTE: f64 = 0.5;

/// What is asked for where nobody can have enough, in percent of the quota.
const TEN_TIMES: u64 = 1_000;

/// What is asked for where slices are held, since there is hardly less than is asked for.
const A_BIT_MORE: u64 = 110;

#[test]
fn strict_limits_admit_no_more_than_their_quota_and_nearly_all_of_it() {
    let _turn = TURN.blocking_lock();
    let fleet = Fleet::run("strict", (250, 50), 4, TEN_TIMES, [8, 8]);
    for admission in fleet.admissions() {
        let Admission { before, now, after, .. } = *admission;
        assert!(before / TICK * TICK <= now && now <= after, "not Redis's time: {admission:?}");
    }
    fleet.keeps_bounds();
    fleet.uses(0.99);
}

#[test]
fn leased_limits_admit_no_more_than_their_quota_and_nearly_all_of_it() {
    let _turn = TURN.blocking_lock();
    let fleet = Fleet::run("leased", (1_000, 1_000), 2, TEN_TIMES, [8, 8]);
    for admission in fleet.admissions() {
        let Admission { before, now, .. } = *admission;
        assert!(before / TICK * TICK <= now, "earlier than Redis's time: {admission:?}");
    }
    fleet.keeps_bounds();
    fleet.uses(0.95);
    assert!(fleet.seen.iter().any(|seen| seen.leased > 0), "nothing came out of slices");
}

#[test]
fn leased_limits_that_are_nearly_enough_are_held_in_slices_and_never_exceeded() {
    let _turn = TURN.blocking_lock();
    let fleet = Fleet::run("leased", (2_000, 1_000), 1, A_BIT_MORE, [8, 8]);
    fleet.keeps_bounds();
    let leased: u64 = fleet.seen.iter().map(|seen| seen.leased).sum();
    assert!(leased > fleet.admissions().count() as u64 / 4, "only {leased} came out of slices");
}

#[test]
fn leased_limits_cost_few_scripts_however_much_is_asked_for() {
    let _turn = TURN.blocking_lock();
    for (quota, demand, processes) in [
        ((1_000, 2_000), 300, [4, 4]),
        ((1_000, 2_000), TEN_TIMES, [4, 4]),
        ((100, 200), 5_000, [8, 1]),
    ] {
        let fleet = Fleet::run("leased", quota, 1, demand, processes);
        fleet.keeps_bounds();
        fleet.uses(0.95);
        fleet.is_cheap();
    }
}

#[test]
fn of_leased_limits_all_comes_back_that_processes_do_not_spend() {
    let _turn = TURN.blocking_lock();
    let fleet = Fleet::run("leased", (1, 8_000), 1, 200_000, [8, 8]);
    fleet.keeps_bounds();
    let leased: u64 = fleet.seen.iter().map(|seen| seen.leased).sum();
    assert!(leased > 1000, "only {leased} came out of slices");
    let due = fleet.order.burst - fleet.admissions().count() as u64;
    // What each process last took is no older than a tenth of a second, or a second if it is busy.
    let lost = due.saturating_sub(fleet.left);
    eprintln!("{lost} lost");
    assert!(lost <= if is_quiet() { 2 } else { 8 }, "{lost} of {due} are lost");
    assert!(fleet.left <= due + fleet.took * fleet.order.rate, "{} of {due} are left", fleet.left);
}

struct Fleet {
    order: Order,
    seen: Vec<Seen>,
    /// How many scripts the server has run.
    commands: u64,
    /// What the first caller has left in the end.
    left: u64,
    /// How long the processes were there, in seconds.
    took: u64,
}

impl Fleet {
    fn run(
        sharing: &str,
        (rate, burst): (u64, u64),
        callers: u64,
        demand: u64,
        processes: [u64; 2],
    ) -> Self {
        let (server, folder) = (Server::redis(), tempfile::tempdir().unwrap());
        let (url, sharing, seconds) = (server.url(), sharing.to_owned(), seconds());
        let order = Order { url, sharing, rate, burst, callers, demand, processes, seconds };
        let begin = Instant::now();
        let seen = processes::run(&order, folder.path());
        let took = begin.elapsed().as_secs() + 1;
        let stats = server.command("INFO commandstats");
        let left = left(&order);
        let fleet = Self { order, seen, commands: scripts_run(&stats), left, took };
        fleet.print();
        fleet
    }

    fn admissions(&self) -> impl Iterator<Item = &Admission> {
        self.seen.iter().flat_map(|seen| &seen.admissions)
    }

    fn used(&self) -> f64 {
        self.admissions().count() as f64 / self.order.quota() as f64
    }

    /// Says what happened, for those who want to know more than whether it passed.
    fn print(&self) {
        let sum = |of: fn(&Seen) -> u64| self.seen.iter().map(of).sum::<u64>();
        let (asked, failed) = (sum(|seen| seen.asked), sum(|seen| seen.failed));
        let Order { sharing, rate, burst, callers, demand, seconds, .. } = &self.order;
        let [_, asked_of] = self.order.processes;
        eprintln!(
            "{sharing}: {asked_of} processes, {callers} callers of {rate}/s burst {burst}, {seconds} s: \
             asked for {demand} %, {asked} times, {failed} failed, {} of {} admitted ({:.2} %), \
             {} out of slices, {} scripts run",
            self.admissions().count(),
            self.order.quota(),
            100.0 * self.used(),
            sum(|seen| seen.leased),
            self.commands
        );
    }

    /// No process has the server run more scripts than it may, but for those that count the
    /// processes and those that first drain the burst.
    fn is_cheap(&self) {
        let Order { processes: [all, asked], callers, seconds, .. } = self.order;
        // It asks once a second how many there are, from when it is started.
        let counting = asked * (self.took + 3);
        let begin = asked * callers * (2 * all + 8);
        let most = self.order.most_calls() * (asked * seconds) as f64;
        let run = self.commands.saturating_sub(counting + begin);
        assert!(run as f64 <= most, "{run} scripts where {most} are allowed");
    }

    /// In every sub-interval of Redis's time, by what decisions say and by what a clock
    /// says that was read before and after them.
    fn keeps_bounds(&self) {
        let bound = self.order.bound();
        for caller in 0..self.order.callers {
            let of_caller = || self.admissions().filter(|admission| admission.caller == caller);
            let decided: Vec<Span> = of_caller().map(|it| (it.now, it.now)).collect();
            let watched: Vec<Span> = of_caller().map(|it| (it.before, it.after)).collect();
            assert!(!decided.is_empty());
            assert_eq!(bound.excess(&decided), 0, "caller {caller}, by its decisions");
            assert_eq!(bound.excess(&watched), 0, "caller {caller}, by the clock");
        }
    }

    /// At least this part of the quota, if the machine has time for it.
    fn uses(&self, part: f64) {
        let part = if is_quiet() { part } else { IN_HASTE };
        assert!(self.used() >= part, "used only {:.2} % of the quota", 100.0 * self.used());
        let failed: u64 = self.seen.iter().map(|seen| seen.failed).sum();
        assert!(!is_quiet() || failed == 0, "{failed} calls failed");
    }
}

/// What the first caller has left in Redis.
fn left(order: &Order) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(Options::new(&order.url).unwrap()).await.unwrap();
        let store = RedisStore::new(client, &Settings::default()).unwrap();
        let policy = Policy::from_toml(&order.policy()).unwrap();
        let gate = Gate::with_store(policy, store).unwrap();
        gate.check_limit("l", &["caller 0"], 0).await.unwrap().remaining()
    })
}

/// How many scripts a server has run, by its own statistics.
fn scripts_run(stats: &str) -> u64 {
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|line| line.split(',').next()).unwrap().parse().unwrap()
}
