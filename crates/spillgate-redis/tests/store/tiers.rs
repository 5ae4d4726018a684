//! A caller has one allowance, whatever the tier that it is asked for in.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http::Request;
use spillgate::AlgorithmKind;
use spillgate_policy::{Gate, Policy, RequestView};
use spillgate_redis::backend::Backend;
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};

use super::fake::{Fake, Node, left, passes};
use crate::common;

/// Proxies tell the tier, and which team a call counts for.
pub(crate) fn policy(algorithm: &str, [none, silver, gold]: [&str; 3]) -> String {
    format!(
        "[identity]\ntrusted-proxies = ['10.0.0.0/8']\ntier-header = 'x-tier'\n\
         [[limit]]\nname = 'l'\nper = 'header:x-team'\nquota = '{none}'\n\
         algorithm = '{algorithm}'\n\
         [tier.silver]\nl = '{silver}'\n[tier.gold]\nl = '{gold}'"
    )
}

const DAILY: [&str; 3] = ["5/day", "6/day", "7/day"];

/// How many of so many calls in a tier pass.
async fn pass<E: Backend>(node: &Gate<RedisStore<E>>, tier: &str, calls: usize) -> usize {
    let request = Request::builder().header("x-tier", tier).header("x-team", "t");
    let parts = request.body(()).unwrap().into_parts().0;
    let asked = RequestView::from_parts(&parts, Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
    let mut passed = 0;
    for _ in 0..calls {
        passed += usize::from(node.decide(&asked).await.unwrap().is_allowed());
    }
    passed
}

/// A node that remembers no denials, so that each decision is Redis's.
fn forgetful(redis: &Fake, policy: &str) -> Node {
    let settings = Settings::default().nodes(2.try_into().unwrap()).remembered(0);
    redis.node_with(policy, &settings)
}

#[tokio::test(start_paused = true)]
async fn who_asks_in_every_tier_has_one_allowance_and_a_denial_costs_one_call() {
    for kind in AlgorithmKind::ALL {
        let redis = Fake::new();
        let node = forgetful(&redis, &policy(kind.name(), DAILY));
        let passed = [
            pass(&node, "gold", 9).await,
            pass(&node, "silver", 3).await,
            pass(&node, "", 3).await,
        ];
        assert_eq!(passed, [7, 0, 0], "{kind}");
        // One exchange for each change of tiers.
        assert_eq!((redis.runs(), redis.exchanges()), (15, 2), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_better_tier_adds_what_it_has_more() {
    use AlgorithmKind as Kind;
    for kind in [Kind::FixedWindow, Kind::FirstHitWindow, Kind::SlidingWindow, Kind::IntervalBucket]
    {
        let redis = Fake::new();
        let node = forgetful(&redis, &policy(kind.name(), DAILY));
        let passed = [
            pass(&node, "", 9).await,
            pass(&node, "silver", 9).await,
            pass(&node, "gold", 9).await,
        ];
        assert_eq!(passed, [5, 1, 1], "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_a_denial_counts_in_every_tier() {
    let redis = Fake::new();
    let node = redis.node(&policy("fixed-window", DAILY));
    assert_eq!(pass(&node, "", 9).await, 5);
    assert_eq!(pass(&node, "silver", 9).await, 1);
    assert_eq!(pass(&node, "", 9).await, 0);
    assert!(redis.runs() <= 9, "{}", redis.runs());
}

#[tokio::test(start_paused = true)]
async fn when_quotas_change_what_was_spent_stays_in_tokens() {
    for kind in AlgorithmKind::ALL {
        let redis = Fake::new();
        let node = forgetful(&redis, &policy(kind.name(), ["40/day", "60/day", "80/day"]));
        assert_eq!(pass(&node, "gold", 20).await, 20, "{kind}");
        let doubled = policy(kind.name(), ["80/day", "120/day", "160/day"]);
        let _ = node.replace(Policy::from_toml(&doubled).unwrap()).unwrap();
        assert_eq!(pass(&node, "gold", 200).await, 140, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_gets_tiers_keeps_what_was_spent_in_tokens() {
    for kind in AlgorithmKind::ALL {
        let redis = Fake::new();
        let alone = policy(kind.name(), ["10/day", "1/day", "1/day"]);
        let alone = alone.split("[tier").next().unwrap().to_owned();
        let node = forgetful(&redis, &alone);
        assert_eq!(pass(&node, "", 4).await, 4, "{kind}");
        let tiered = policy(kind.name(), ["20/day", "20/day", "40/day"]);
        let _ = node.replace(Policy::from_toml(&tiered).unwrap()).unwrap();
        assert_eq!(pass(&node, "", 30).await, 16, "{kind}");
        let _ = node.replace(Policy::from_toml(&alone).unwrap()).unwrap();
        assert_eq!(pass(&node, "", 30).await, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_count_is_refilled_by_the_amount_of_the_tier_that_asks() {
    let redis = Fake::new();
    let quotas = ["1/h burst 10", "2/h burst 10", "10/h"];
    let node = forgetful(&redis, &policy("interval-bucket", quotas));
    assert_eq!(pass(&node, "gold", 20).await, 10);
    assert_eq!(pass(&node, "", 20).await, 0);
    tokio::time::sleep(Duration::from_secs(3601)).await;
    assert_eq!(pass(&node, "", 20).await, 1);
}

#[tokio::test(start_paused = true)]
async fn slices_of_one_tier_are_not_spent_in_another() {
    let redis = Fake::new();
    redis.set_delay(Duration::from_micros(100));
    let quotas = ["1000/s burst 2000", "100/s burst 200", "10000/s burst 20000"];
    let leased = policy("token-bucket", quotas).replace("per =", "sharing = 'leased'\nper =");
    let nodes = [redis.node(&leased), redis.node(&leased)];
    let began = tokio::time::Instant::now();
    // What each call takes, of the two seconds that any bucket holds.
    let mut micros = 0;
    for round in 0..3000 {
        let (tier, price) = [("", 1_000), ("silver", 10_000), ("gold", 100)][round % 3];
        micros += price * pass(&nodes[round % 2], tier, 5).await as u128;
    }
    let most = 2_000_000 + began.elapsed().as_micros();
    assert!(micros <= most, "{micros} of {most}");
    assert!(micros > most / 4, "{micros} of {most}");
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_each_tier_has_its_share() {
    for kind in AlgorithmKind::ALL {
        let redis = Fake::new();
        // Four nodes, and a tier that has less than a token for each.
        let settings = Settings::default().nodes(4.try_into().unwrap());
        let node = redis.node_with(&policy(kind.name(), ["3/day", "8/day", "40/day"]), &settings);
        redis.set_down(true);
        let passed = pass(&node, "gold", 99).await;
        assert_eq!(passed, 10, "{kind}");
        assert_eq!(pass(&node, "", 9).await, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_takes_the_tokens_of_the_callers_tier() {
    let redis = Fake::new();
    let tiers = "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '10/h'\n\
                 [tier.gold]\ncallers = ['user:alice']\nl = '100/h'";
    let node = redis.node(tiers);
    assert_eq!(passes(&node, "l", "alice", 30).await, 30);
    node.set_override(
        "l",
        &["alice"],
        "40/h".parse().unwrap(),
        spillgate_policy::Terms::permanent(),
    )
    .await
    .unwrap();
    assert_eq!(left(&node, "l", "alice").await, 10);
    assert_eq!(passes(&node, "l", "alice", 30).await, 10);
    node.remove_override("l", &["alice"]).await.unwrap();
    assert_eq!(left(&node, "l", "alice").await, 60);
}

#[tokio::test(start_paused = true)]
async fn tiers_that_start_empty_fill_at_their_own_pace() {
    for algorithm in ["token-bucket", "interval-bucket"] {
        let redis = Fake::new();
        let quotas = ["10/s burst 100", "20/s burst 100", "40/s burst 100"];
        let empty = policy(algorithm, quotas).replace("per =", "start = 'empty'\nper =");
        let node = forgetful(&redis, &empty);
        assert_eq!(pass(&node, "gold", 9).await, 0, "{algorithm}");
        tokio::time::sleep(Duration::from_millis(1010)).await;
        assert_eq!(pass(&node, "gold", 99).await, 40, "{algorithm}");
    }
}

/// All of it through the scripts: tiers, overrides that come and go, and new policies.
#[tokio::test]
async fn real_servers_keep_one_allowance_and_what_was_spent_before_an_override() {
    for redis in [common::Server::redis(), common::Server::valkey()] {
        let time_out = Duration::from_secs(10);
        let options = Options::new(&redis.url()).unwrap().command_time_out(time_out);
        let server = Client::connect(options).await.unwrap();
        let settings = Settings::default().nodes(1.try_into().unwrap()).remembered(0);
        let node = Gate::with_store(
            Policy::from_toml("limit = []").unwrap(),
            RedisStore::new(server, &settings).unwrap(),
        );
        let node = node.unwrap();
        for kind in AlgorithmKind::ALL {
            let tiered = policy(kind.name(), ["5/day", "6/day", "700/day"])
                .replace("name = 'l'", &format!("name = '{kind}'"))
                .replace("\nl = ", &format!("\n{kind} = "));
            let _ = node.replace(Policy::from_toml(&tiered).unwrap()).unwrap();
            assert_eq!(pass(&node, "gold", 701).await, 700, "{kind}");
            assert_eq!(pass(&node, "", 1).await, 0, "{kind}");
            let team = ["t"];
            for punished in ["1/day", "900/day"] {
                let (quota, terms) =
                    (punished.parse().unwrap(), spillgate_policy::Terms::permanent());
                node.set_override(kind.name(), &team, quota, terms).await.unwrap();
                pass(&node, "gold", 1).await;
            }
            node.remove_override(kind.name(), &team).await.unwrap();
            assert_eq!(pass(&node, "gold", 1).await, 0, "{kind}");
            assert_eq!(pass(&node, "silver", 1).await, 0, "{kind}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_call_has_cost_is_charged_in_the_tier_that_its_caller_has_now() {
    let redis = Fake::new();
    let quotas = ["6/min burst 100", "20 per 10 s", "7/day"];
    let node = forgetful(&redis, &policy("token-bucket", quotas));
    let (parts, ()) = Request::builder().header("x-team", "t").body(()).unwrap().into_parts();
    let asked = RequestView::from_parts(&parts, Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
    let receipt = node.decide(&asked).await.unwrap().receipt().unwrap();
    tokio::time::advance(Duration::from_millis(10_001)).await;
    assert_eq!(pass(&node, "silver", 1).await, 1);
    // Nothing is owed any more.
    tokio::time::advance(Duration::from_millis(500)).await;
    node.settle_actual(receipt, 61).await.unwrap();
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(pass(&node, "silver", 99).await, 20);
}
