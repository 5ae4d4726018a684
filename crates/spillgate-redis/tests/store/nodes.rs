//! Which nodes share, and what is said if they do not.

use std::time::Duration;

use spillgate_policy::Policy;
use spillgate_redis::backend::{Announcement, Backend, Member};
use spillgate_redis::{Fingerprint, Name, Secret, Settings};
use tokio::time::sleep;

use super::fake::{Fake, Node};

const API: &str = "[[limit]]\nname = 'api'\nby-name = true\nper = 'ip'\nquota = '10/s burst 20'\n";
const LOGIN: &str = "[[limit]]\nname = 'login'\nby-name = true\nper = 'ip'\nquota = '5/min'\n";

/// Longer than nodes take to hear of each other, and of the end of one.
const A_WHILE: Duration = Duration::from_secs(8);

fn with(secret: &str) -> Settings {
    Settings::default().secret(Secret::new(secret).unwrap())
}

const ONE: &str = "sixteen bytes it is";
const OTHER: &str = "sixteen bytes it was";

fn print_of(settings: &Settings, policy: &str) -> Fingerprint {
    Fake::new().node_with(policy, settings).store().fingerprint().unwrap()
}

/// How many nodes there are, and those of another secret and of another policy.
fn counts(node: &Node) -> (u32, u32, u32) {
    let stats = node.store().stats();
    (stats.nodes, stats.agreement.other_secret, stats.agreement.other_policy)
}

#[tokio::test]
async fn what_matters_for_sharing_changes_a_fingerprint_and_nothing_else_does() {
    let own = print_of(&with(ONE), &format!("{API}{LOGIN}"));
    let same = format!("# a comment\n{LOGIN}\noutage = 'open'\n{API}");
    assert_eq!(own, print_of(&with(ONE), &same));
    for other in [
        API.to_owned(),
        format!("{API}{LOGIN}").replace("'login'", "'logins'"),
        format!("{API}{LOGIN}").replace("5/min", "6/min"),
        format!("{API}{LOGIN}").replace("burst 20", "burst 21"),
        format!("{API}{LOGIN}algorithm = 'fixed-window'\n"),
        format!("{API}{LOGIN}").replacen("'ip'", "'user'", 1),
    ] {
        let other = print_of(&with(ONE), &other);
        assert_eq!(other.secret, own.secret);
        assert_ne!(other.policy, own.policy);
    }
}

#[tokio::test]
async fn a_fingerprint_tells_nothing_of_a_policy_to_those_with_another_secret() {
    let (one, other) = (print_of(&with(ONE), API), print_of(&with(OTHER), API));
    assert_ne!(one.secret, other.secret);
    assert_ne!(one.policy, other.policy);
    assert_eq!(print_of(&Settings::default(), API).secret, 0, "there is none");
}

/// Were they others, nodes of two versions would warn of each other.
#[tokio::test]
async fn fingerprints_are_the_same_from_version_to_version() {
    let own = print_of(&with(ONE), API);
    assert_eq!((own.secret, own.policy), (41_360, 20_448));
}

#[tokio::test(start_paused = true)]
async fn nodes_of_another_secret_are_seen_and_do_not_count_and_those_of_another_policy_do() {
    let redis = Fake::new();
    let [one, two, other] = [ONE, ONE, OTHER].map(|secret| redis.node_with(API, &with(secret)));
    sleep(A_WHILE).await;
    assert_eq!(counts(&one), (2, 1, 0));
    assert_eq!(counts(&two), (2, 1, 0));
    assert_eq!(counts(&other), (1, 2, 0));
    // A reload.
    two.replace(Policy::from_toml(LOGIN).unwrap()).unwrap();
    sleep(A_WHILE).await;
    assert_eq!(counts(&one), (2, 1, 1));
    assert_eq!(counts(&two), (2, 1, 1));
    assert_eq!(counts(&other), (1, 2, 0));
    // It dies, and the other one ends in order.
    drop(other);
    two.store().shutdown().await;
    sleep(A_WHILE).await;
    assert_eq!(counts(&one), (1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_in_order_is_not_counted_any_more() {
    let redis = Fake::new();
    let nodes = [redis.node_with(API, &with(ONE)), redis.node_with(API, &with(ONE))];
    sleep(A_WHILE).await;
    let look = Announcement { joins: None, leaves: None, lifetime: A_WHILE, lists: true };
    assert_eq!(redis.announce(&look).await.unwrap().count, 2);
    nodes[0].store().shutdown().await;
    assert_eq!(redis.announce(&look).await.unwrap().count, 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_announced_once_a_second_with_the_call_for_edits_if_there_is_one() {
    let redis = Fake::new();
    let node = redis.node_with(API, &with(ONE));
    sleep(A_WHILE).await;
    let (mut version, before) = (0, redis.announcements());
    for pause in [400, 1000] {
        for _ in 0..20_000 / pause {
            node.follow(&mut version).await.unwrap();
            sleep(Duration::from_millis(pause)).await;
        }
    }
    let following = redis.announcements() - before;
    assert!((44..=46).contains(&following), "{following} in 40 seconds");
    sleep(Duration::from_secs(10)).await;
    let alone = redis.announcements() - before - following;
    assert!((8..=9).contains(&alone), "{alone} in 10 seconds");
    // And never again after it has left.
    node.store().shutdown().await;
    let before = redis.announcements();
    node.follow(&mut version).await.unwrap();
    assert_eq!(redis.announcements(), before);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_do_not_tell_count_as_before() {
    let redis = Fake::new();
    let old = Member { node: Name::from_bytes([7; 16]), fingerprint: None };
    let lifetime = Duration::from_secs(3600);
    let join = Announcement { joins: Some(old), leaves: None, lifetime, lists: false };
    let node = redis.node_with(API, &with(ONE));
    for _ in 0..5 {
        redis.announce(&join).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(counts(&node), (2, 0, 0));
    assert_eq!(node.store().stats().agreement.unknown, 1);
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_configured_stands_and_fingerprints_are_told_all_the_same() {
    let redis = Fake::new();
    let nine = 9.try_into().unwrap();
    let one = redis.node_with(API, &with(ONE).nodes(nine));
    let _other = redis.node_with(API, &with(OTHER).nodes(nine));
    sleep(A_WHILE).await;
    assert_eq!(counts(&one), (9, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn who_refuses_joins_only_those_that_are_the_same() {
    let redis = Fake::new();
    let one = redis.node_with(API, &with(ONE));
    sleep(A_WHILE).await;
    let strict = |secret| with(secret).refuse_mismatch(true);
    let same = redis.node_with(API, &strict(ONE));
    same.store().join().await.unwrap();
    for (policy, secret, why) in [
        (API, OTHER, "2 other nodes have another secret"),
        (LOGIN, ONE, "2 other nodes have another policy"),
    ] {
        let refused = redis.node_with(policy, &strict(secret));
        sleep(A_WHILE).await;
        let error = refused.store().join().await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(counts(&one), (2, 0, 0), "it was never seen");
    }
    // Who cannot look goes on, and warns when it can.
    redis.set_down(true);
    let late = redis.node_with(LOGIN, &strict(ONE));
    late.store().join().await.unwrap();
    redis.set_down(false);
    sleep(A_WHILE).await;
    assert_eq!(counts(&late), (3, 0, 2));
}
