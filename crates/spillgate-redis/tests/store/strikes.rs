//! Offences count on all nodes together, each once, whatever becomes of the answers.

use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::store::{BanRule, BanStart, LimitSpec, Store, StrikeCall};
use spillgate_policy::{Answer, Key, LimitCheck};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisLimits, RedisStore, Settings};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::fake::{Fake, Node};
use crate::common::Server;

fn node(redis: &Fake) -> RedisStore<Fake> {
    let settings = Settings::default().nodes(2.try_into().unwrap()).clock(redis.clock());
    RedisStore::new(redis.clone(), &settings).unwrap()
}

fn specs() -> [LimitSpec; 1] {
    [LimitSpec::new("login", "5/min".parse().unwrap())]
}

/// Two nodes, a rule, and somebody who offends.
struct Pair {
    stores: [RedisStore<Fake>; 2],
    limits: [RedisLimits; 2],
    rule: BanRule,
}

impl Pair {
    fn new(redis: &Fake, strikes: u32) -> Self {
        let stores = [node(redis), node(redis)];
        let limits = [&stores[0], &stores[1]].map(|store| store.open(&specs()).unwrap());
        Self { stores, limits, rule: BanRule::new(strikes) }
    }

    /// The ban after a call of a node: how many there were, how long it lasts, and whether the call
    /// started it.
    async fn call(&self, node: usize, call: StrikeCall) -> Option<(u32, Duration, bool)> {
        self.try_call(node, call).await.unwrap().map(|ban| (ban.count, ban.duration, ban.is_new))
    }

    async fn try_call(
        &self,
        node: usize,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, spillgate_policy::Error> {
        let ann = Key::from_bytes(b"ann");
        self.stores[node].strike(&self.limits[node], 0, &ann, &self.rule, call).await
    }

    async fn strike(&self, node: usize) -> Option<(u32, Duration, bool)> {
        self.call(node, StrikeCall::new(1)).await
    }
}

#[tokio::test(start_paused = true)]
async fn offences_on_all_nodes_lead_to_a_ban_that_grows() {
    let redis = Fake::new();
    let pair = Pair::new(&redis, 3);
    let length = pair.rule.duration;
    assert_eq!((pair.strike(0).await, pair.strike(1).await), (None, None));
    assert_eq!(pair.strike(0).await, Some((1, length, true)));
    assert_eq!(pair.strike(1).await, Some((1, length, false)), "a ban is not extended");
    sleep(length).await;
    assert_eq!((pair.strike(1).await, pair.strike(0).await), (None, None));
    assert_eq!(pair.strike(1).await, Some((2, 2 * length, true)));
    let ann = Key::from_bytes(b"ann");
    pair.stores[1].forgive(&pair.limits[1], 0, &ann).await.unwrap();
    assert_eq!((pair.strike(0).await, pair.strike(0).await), (None, None), "as if never seen");
    assert_eq!(pair.strike(1).await, Some((1, length, true)));
    let nobody = Key::from_bytes(b"nobody");
    pair.stores[0].forgive(&pair.limits[0], 0, &nobody).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn offences_of_one_call_count_together() {
    let redis = Fake::new();
    let pair = Pair::new(&redis, 5);
    assert_eq!(pair.call(0, StrikeCall::new(3)).await, None);
    let ban = (1, pair.rule.duration, true);
    assert_eq!(pair.call(1, StrikeCall::new(4_000_000_000)).await, Some(ban));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_is_lost_counts_once() {
    let redis = Fake::new();
    let pair = Pair::new(&redis, 3);
    assert_eq!(pair.strike(0).await, None);
    let call = StrikeCall::new(1);
    // The first answer says what is there, the second that it was replaced.
    redis.lose_answers(1..2);
    assert!(pair.try_call(0, call).await.is_err());
    assert_eq!((pair.call(0, call).await, pair.call(0, call).await), (None, None));
    assert!(pair.strike(0).await.unwrap().2);
}

#[tokio::test(start_paused = true)]
async fn a_ban_whose_answer_is_lost_is_found_by_the_next_offence_and_is_new_to_who_started_it() {
    let redis = Fake::new();
    let pair = Pair::new(&redis, 3);
    assert_eq!((pair.strike(0).await, pair.strike(1).await), (None, None));
    let (call, length) = (StrikeCall::new(1), pair.rule.duration);
    redis.lose_answers(1..2);
    assert!(pair.try_call(0, call).await.is_err());
    sleep(length / 4).await;
    let rest = pair.strike(1).await.unwrap();
    assert!(rest.0 == 1 && rest.1 <= length * 3 / 4 && !rest.2, "{rest:?}");
    assert!(pair.call(0, call).await.unwrap().2);
    assert!(pair.call(0, call.looking()).await.unwrap().2);
    assert_eq!(pair.call(1, StrikeCall::new(0)).await.map(|ban| ban.2), Some(false));
}

#[tokio::test(start_paused = true)]
async fn offences_are_forgotten_after_their_window() {
    let redis = Fake::new();
    let pair = Pair::new(&redis, 2);
    for _ in 0..3 {
        assert_eq!(pair.strike(0).await, None);
        sleep(pair.rule.window).await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_redis_is_away_nobody_is_banned() {
    let redis = Fake::new();
    let pair = Pair::new(&redis, 1);
    redis.set_down(true);
    assert!(pair.try_call(0, StrikeCall::new(1)).await.unwrap_err().is_store());
    let ann = Key::from_bytes(b"ann");
    assert!(pair.stores[0].forgive(&pair.limits[0], 0, &ann).await.unwrap_err().is_store());
}

const POLICY: &str = "[[limit]]\nname = 'login'\nby-name = true\nper = 'user'\nquota = '1/h'\n\
                      ban = { strikes = 3, duration = '1h' }\n";

async fn offend(node: &Node) {
    let check = LimitCheck::new("login", &["ann"], 2);
    assert_eq!(node.decide(&check).await.unwrap().answer(), Answer::Denied);
}

async fn answer(node: &Node) -> Answer {
    node.decide(&LimitCheck::new("login", &["ann"], 0)).await.unwrap().answer()
}

/// What a node does twice a second.
async fn follow(node: &Node, versions: &mut [u64; 3], place: usize) -> bool {
    node.follow(&mut versions[place]).await.is_ok()
}

/// How many bans began, by metric and by log.
fn begun(nodes: &[&Node]) -> (u64, usize) {
    let counted = nodes.iter().map(|node| node.ban_usage().limits[0].2).sum();
    (counted, nodes.iter().map(|node| node.take_started_bans().bans.len()).sum())
}

#[tokio::test(start_paused = true)]
async fn whichever_answer_is_lost_the_ban_is_in_force_on_all_nodes_and_begins_once() {
    // Two answers about strikes, one about the edit, and none.
    for lost in 0..4 {
        let redis = Fake::new();
        let (one, other) = (redis.node(POLICY), redis.node(POLICY));
        let mut versions = [0; 3];
        for _ in 0..3 {
            offend(&one).await;
        }
        redis.lose_answers(lost..lost + 1);
        assert_eq!(follow(&one, &mut versions, 0).await, lost == 3, "answer {lost}");
        assert!(follow(&one, &mut versions, 0).await);
        assert!(follow(&other, &mut versions, 1).await);
        assert_eq!((answer(&one).await, answer(&other).await), (Answer::Banned, Answer::Banned));
        assert_eq!(begun(&[&one, &other]), (1, 1), "answer {lost}");
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_a_flush_is_dropped_no_offence_is_lost_or_counts_twice() {
    for dropped in 0..30 {
        for (offences, expected) in [(2, Answer::Allowed), (3, Answer::Banned)] {
            let redis = Fake::new();
            redis.set_delay(Duration::from_millis(1));
            redis.set_answer_delay(Duration::from_millis(1));
            let (one, other) = (redis.node(POLICY), redis.node(POLICY));
            let mut versions = [0; 3];
            for _ in 0..offences {
                offend(&one).await;
            }
            let follow_one = one.flush_offences();
            let _ = timeout(Duration::from_millis(dropped), follow_one).await;
            assert!(follow(&one, &mut versions, 0).await);
            assert!(follow(&other, &mut versions, 1).await);
            assert_eq!(answer(&other).await, expected, "{offences}, dropped after {dropped} ms");
            assert_eq!(answer(&one).await, expected, "{offences}, dropped after {dropped} ms");
            let bans = u64::from(offences == 3);
            assert_eq!(begun(&[&one, &other]), (bans, bans as usize), "after {dropped} ms");
            assert_eq!(one.ban_usage().lost_strikes, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_ban_of_a_node_that_died_before_it_told_of_it_begins_with_the_next_offence() {
    let redis = Fake::new();
    let [one, other, third] = [redis.node(POLICY), redis.node(POLICY), redis.node(POLICY)];
    let mut versions = [0; 3];
    for _ in 0..3 {
        let _ = one.strike("login", &["ann"]).await.unwrap();
    }
    assert_eq!(answer(&one).await, Answer::Banned);
    drop(one);
    assert!(follow(&other, &mut versions, 1).await);
    sleep(Duration::from_secs(600)).await;
    offend(&other).await;
    assert!(follow(&other, &mut versions, 1).await);
    assert!(follow(&third, &mut versions, 2).await);
    assert_eq!((answer(&other).await, answer(&third).await), (Answer::Banned, Answer::Banned));
    for node in [&other, &third] {
        let rest = node.bans()[0].until().since(node.store().now());
        assert!(rest <= Duration::from_secs(3000), "{rest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_ban_of_a_report_that_was_not_answered_begins_without_another_offence() {
    for is_dropped in [false, true] {
        let redis = Fake::new();
        let node = redis.node(POLICY);
        for _ in 0..2 {
            assert!(node.strike("login", &["ann"]).await.unwrap().is_none());
        }
        redis.lose_answers(1..2);
        let longest = Duration::from_millis(if is_dropped { 1 } else { 1000 });
        let reported = timeout(longest, node.strike("login", &["ann"])).await;
        assert_eq!(reported.is_err(), is_dropped);
        assert!(reported.is_err() || reported.unwrap().is_err());
        node.flush_offences().await.unwrap();
        assert_eq!(answer(&node).await, Answer::Banned);
        assert_eq!(begun(&[&node]), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_lifted_while_offending_stays_free() {
    let redis = Fake::new();
    let (one, other) = (redis.node(POLICY), redis.node(POLICY));
    let mut versions = [0; 3];
    for _ in 0..3 {
        let _ = one.strike("login", &["ann"]).await.unwrap();
    }
    assert!(follow(&one, &mut versions, 0).await);
    assert!(follow(&other, &mut versions, 1).await);
    assert!(one.lift("user:ann").await.unwrap());
    offend(&one).await;
    assert!(follow(&one, &mut versions, 0).await);
    assert!(follow(&other, &mut versions, 1).await);
    assert_eq!((answer(&one).await, answer(&other).await), (Answer::Allowed, Answer::Allowed));
}

#[tokio::test(start_paused = true)]
async fn who_is_lifted_in_an_outage_is_forgiven_when_redis_is_back() {
    let redis = Fake::new();
    let (one, other) = (redis.node(POLICY), redis.node(POLICY));
    let mut versions = [0; 3];
    for _ in 0..3 {
        let _ = one.strike("login", &["ann"]).await.unwrap();
    }
    assert!(follow(&one, &mut versions, 0).await);
    assert!(follow(&other, &mut versions, 1).await);
    redis.set_down(true);
    assert!(one.lift("user:ann").await.unwrap_err().is_store());
    redis.set_down(false);
    for round in 0..2 {
        offend(&one).await;
        assert!(follow(&one, &mut versions, 0).await);
        assert!(follow(&other, &mut versions, 1).await);
        let answers = (answer(&one).await, answer(&other).await);
        assert_eq!(answers, (Answer::Allowed, Answer::Allowed), "{round}");
    }
}

/// Every offence counts once, whoever else counts at the same time.
#[tokio::test]
async fn of_many_who_strike_at_once_exactly_one_starts_the_ban() {
    let server = Server::redis();
    let options = Options::new(&server.url()).unwrap();
    let client = Client::connect(options.command_time_out(Duration::from_secs(5))).await.unwrap();
    let store = Arc::new(RedisStore::new(client, &Settings::default()).unwrap());
    let limits = Arc::new(store.open(&specs()).unwrap());
    for round in 0..10_u8 {
        let mut striking = JoinSet::new();
        for _ in 0..4 {
            let (store, limits) = (Arc::clone(&store), Arc::clone(&limits));
            striking.spawn(async move {
                let (rule, key) = (BanRule::new(4), Key::from_bytes(&[round]));
                store.strike(&limits, 0, &key, &rule, StrikeCall::new(1)).await.unwrap()
            });
        }
        let bans: Vec<_> = striking.join_all().await.into_iter().flatten().collect();
        assert!(bans.len() == 1 && bans[0].is_new, "{bans:?}");
    }
    let ttl = redis::cmd("KEYS").arg("spillgate:strikes:*").query(&mut server.admin());
    let keys: Vec<Vec<u8>> = ttl.unwrap();
    assert_eq!(keys.len(), 10);
    for key in keys {
        let ttl: i64 = redis::cmd("PTTL").arg(key).query(&mut server.admin()).unwrap();
        assert!(ttl > 3_600_000, "bans are remembered after they end: {ttl}");
    }
}
