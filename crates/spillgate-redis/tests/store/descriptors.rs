//! Descriptors, and quotas that come with a call, in a store that nodes share.

use std::time::Duration;

use spillgate_policy::{Descriptor, DescriptorOutcome, Descriptors, Gate, Policy};
use spillgate_redis::backend::Backend;
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use tokio::time::advance;

use super::fake::{Fake, Node};
use crate::common;

pub(crate) const POLICY: &str = r#"
[[limit]]
name = "user"
match = { domain = "edge", descriptor = { user = "*" } }
quota = "10/h"

[[limit]]
name = "path"
match = { domain = "edge", descriptor = { path = "*" } }
quota = "40/h"
"#;

pub(crate) async fn decide<E: Backend>(
    node: &Gate<RedisStore<E>>,
    descriptors: &[Descriptor<'_>],
) -> DescriptorOutcome<'static> {
    match node.try_decide(&Descriptors { domain: "edge", descriptors }, |it| {
        it.map(DescriptorOutcome::take)
    }) {
        Some(decided) => decided.unwrap(),
        None => node.decide(&Descriptors { domain: "edge", descriptors }).await.unwrap(),
    }
}

/// Whether a call passes, and what each of its descriptors has left.
pub(crate) async fn spend<E: Backend>(
    node: &Gate<RedisStore<E>>,
    descriptors: &[Descriptor<'_>],
) -> (bool, Vec<u64>) {
    let outcome = decide(node, descriptors).await;
    let left = outcome.descriptors().flat_map(|state| state.limits());
    let left = left.map(|limit| limit.decision().remaining()).collect();
    (outcome.is_allowed(), left)
}

pub(crate) fn hits<'a>(entries: &'a [(&'a str, &'a str)], hits: u64) -> Descriptor<'a> {
    Descriptor { hits, ..Descriptor::new(entries) }
}

pub(crate) fn by<'a>(quota: &str, descriptor: Descriptor<'a>) -> Descriptor<'a> {
    Descriptor { quota: Some(quota.parse().unwrap()), ..descriptor }
}

/// A call is spent under limits and by a quota of its own, in whatever slots these are.
async fn all_or_nothing<E: Backend>(node: &Gate<RedisStore<E>>) {
    for caller in 0..20 {
        let caller = format!("caller-{caller}");
        let (user, path, own) = ([("user", &*caller)], [("path", &*caller)], [("own", &*caller)]);
        let call = |own_hits| [hits(&user, 1), hits(&path, 2), by("30/h", hits(&own, own_hits))];
        for spent in 1..=10 {
            let left = vec![10 - spent, 40 - 2 * spent, 30 - spent];
            assert_eq!(spend(node, &call(1)).await, (true, left), "{caller}");
        }
        assert!(!spend(node, &call(1)).await.0, "denied by the limit");
        assert!(
            !spend(node, &[hits(&path, 1), by("30/h", hits(&own, 21))]).await.0,
            "by the quota"
        );
        assert_eq!(
            spend(node, &call(0).map(|one| Descriptor { hits: 0, ..one })).await.1,
            [0, 20, 20]
        );
        let give = Descriptor { gives_back: true, ..by("30/h", hits(&own, 4)) };
        assert_eq!(spend(node, &[hits(&path, 1), give]).await, (true, vec![19, 24]));
        let give = Descriptor { gives_back: true, ..hits(&path, 30) };
        assert_eq!(spend(node, &[give, by("30/h", hits(&own, 24))]).await, (true, vec![40, 0]));
    }
}

#[tokio::test(start_paused = true)]
async fn quotas_of_calls_and_limits_are_spent_together_in_one_round_trip_or_many() {
    for slots in [1, 200] {
        let redis = Fake::with_slots(slots);
        let node = redis.node(POLICY);
        all_or_nothing(&node).await;
        let stats = node.store().stats();
        assert_eq!(stats.kept_spends, 0);
        assert_eq!(stats.undone > 0, slots > 1, "what was spent is taken back over slots");
    }
    let redis = Fake::new();
    let node = redis.node(POLICY);
    let (user, own) = ([("user", "7")], [("own", "7")]);
    assert!(spend(&node, &[hits(&user, 1), by("30/h", hits(&own, 1))]).await.0);
    assert_eq!((redis.runs(), redis.exchanges()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn another_quota_finds_the_time_that_is_owed_on_every_node() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    let own = [("own", "7")];
    assert_eq!(spend(&node, &[by("1/min burst 10", hits(&own, 4))]).await, (true, vec![6]));
    assert_eq!(spend(&other, &[by("1/min burst 5", hits(&own, 1))]).await, (true, vec![0]));
    assert_eq!(spend(&node, &[by("1/s burst 100", hits(&own, 1))]).await, (false, vec![0]));
    advance(Duration::from_secs(201)).await;
    assert_eq!(spend(&node, &[by("1/s burst 100", hits(&own, 1))]).await, (true, vec![0]));
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_a_node_goes_by_its_share_of_the_quota_of_the_call() {
    let redis = Fake::new();
    let node: Node = redis.node(POLICY);
    redis.set_down(true);
    let own = [("own", "7")];
    let call = [by("20/h", hits(&own, 1))];
    let mut passed = 0;
    for _ in 0..20 {
        passed += usize::from(spend(&node, &call).await.0);
    }
    assert_eq!(passed, 10, "one of two nodes");
    let give = Descriptor { gives_back: true, ..by("20/h", hits(&own, 3)) };
    assert_eq!(spend(&node, &[give]).await, (true, vec![3]));
    redis.set_down(false);
    assert_eq!(spend(&node, &call).await, (true, vec![12]), "seven were spent here");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_given_back_in_an_outage_is_as_the_limit_says() {
    let redis = Fake::new();
    let user = [("user", "7")];
    let give = [Descriptor { gives_back: true, ..hits(&user, 3) }];
    for (outage, passes) in [("open", true), ("closed", false), ("local", true)] {
        let node = redis.node(
            &POLICY.replace("quota = \"10/h\"", &format!("quota = \"10/h\"\noutage = {outage:?}")),
        );
        redis.set_down(true);
        let checked = node.decide(&Descriptors { domain: "edge", descriptors: &give }).await;
        assert_eq!(checked.is_ok_and(|outcome| outcome.is_allowed()), passes, "{outage}");
        redis.set_down(false);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_in_shadow_that_cannot_be_given_back_to_changes_nothing() {
    let redis = Fake::new();
    let in_shadow = "quota = \"10/h\"\nmode = 'shadow'\noutage = 'closed'";
    let node = redis.node(&POLICY.replace("quota = \"10/h\"", in_shadow));
    redis.set_down(true);
    let user = [("user", "7")];
    let give = Descriptor { gives_back: true, ..hits(&user, 3) };
    let outcome = node.decide(&Descriptors { domain: "edge", descriptors: &[give] }).await.unwrap();
    assert!(outcome.is_allowed() && outcome.shadow_error().is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_back_while_others_spend_gives_back_all_the_same() {
    let redis = Fake::new();
    let (node, other) = (redis.node(POLICY), redis.node(POLICY));
    let own = [("own", "7")];
    assert!(spend(&node, &[by("20/h", hits(&own, 10))]).await.0);
    // Somebody is faster.
    let mut is_first = true;
    redis.before_run(move |model, entries| {
        let state = model.state(&entries[0].name);
        if let Some(mut state) = state.filter(|_| std::mem::take(&mut is_first)) {
            // One more token, which comes back in three minutes.
            let bits = state.word.to_bits() + 180_000_000_000;
            state.word = spillgate::algorithm::Word::from_bits(bits);
            model.set_state(entries[0].name, Some(state));
        }
    });
    let (give, runs) = (Descriptor { gives_back: true, ..by("20/h", hits(&own, 5)) }, redis.runs());
    assert!(spend(&node, &[give]).await.0);
    assert_eq!((redis.runs() - runs, redis.exchanges()), (1, 0), "one round trip");
    assert_eq!(spend(&other, &[by("20/h", hits(&own, 0))]).await, (true, vec![14]));
}

async fn real(url: &str) -> Gate<RedisStore<Client>> {
    let options = Options::new(url).unwrap().command_time_out(Duration::from_secs(5));
    let settings = Settings::default().nodes(1.try_into().unwrap());
    let store = RedisStore::new(Client::connect(options).await.unwrap(), &settings).unwrap();
    Gate::with_store(Policy::from_toml(POLICY).unwrap(), store).unwrap()
}

#[tokio::test]
async fn a_real_redis_spends_quotas_of_calls_and_limits_together() {
    let server = common::Server::redis();
    let node = real(&server.url()).await;
    all_or_nothing(&node).await;
    assert_eq!(node.store().stats().kept_spends, 0);
}

#[tokio::test]
async fn a_real_cluster_spends_quotas_of_calls_and_limits_together_over_slots() {
    let cluster = common::Cluster::start(false);
    let node = real(&cluster.url()).await;
    all_or_nothing(&node).await;
    let stats = node.store().stats();
    assert!(stats.undone > 0);
    assert_eq!(stats.kept_spends, 0);
}
