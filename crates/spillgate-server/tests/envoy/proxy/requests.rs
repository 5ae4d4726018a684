//! Requests through Envoy: which descriptors it sends, and what clients see.

use super::instance::Envoy;
use crate::envoy::client::{outcome, start};

/// A busy machine may take longer than Envoy waits, and then it passes requests on.
pub(super) const PATIENT: (&str, &str) = ("timeout: 0.1s", "timeout: 20s");

/// By the year, so that no window ends while a test runs.
const RULES: &str = "\
domain: edge
descriptors:
- key: remote_address
  rate_limit: {unit: year, requests_per_unit: 7, name: address}
- {key: remote_address, value: 127.0.0.9, rate_limit: {unlimited: true}}
- key: route
  value: login
  descriptors:
  - {key: remote_address, rate_limit: {unit: year, requests_per_unit: 2, name: logins}}
- {key: route, value: health, rate_limit: {unlimited: true}}
- key: route
  value: search
  descriptors:
  - {key: remote_address, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_told_what_is_left_and_refused_beyond_it() {
    let (_home, server) = start("", &[("edge.yaml", RULES)], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    for left in (0..7).rev() {
        let reply = envoy.get("/").await;
        assert_eq!(reply.status, 200, "{reply:?} {}", envoy.log());
        // Envoy's own, from the statuses.
        let limit = reply.header("x-ratelimit-limit").unwrap();
        assert!(limit.starts_with("7, 7;w=31536000;name=\"address\""), "{limit}");
        assert_eq!(reply.header("x-ratelimit-remaining"), Some(&*left.to_string()));
        assert!(reply.header("x-ratelimit-reset").unwrap().parse::<u64>().unwrap() > 0);
        // Ours.
        assert_eq!(reply.header("ratelimit-policy"), Some("\"address\";q=7;w=31536000"));
        let message = reply.header("ratelimit").unwrap();
        assert!(message.starts_with(&format!("\"address\";r={left};t=")), "{message}");
        assert_eq!(reply.header("retry-after"), None);
    }
    for _ in 0..5 {
        let reply = envoy.get("/").await;
        assert_eq!(reply.status, 429, "{reply:?}");
        assert_eq!(reply.header("x-ratelimit-remaining"), Some("0"));
        assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
        assert_eq!(reply.header("x-envoy-ratelimited"), Some("true"));
    }
    assert_eq!(envoy.served(), 7);
    // Each address by itself, and one without a limit.
    assert_eq!(envoy.get_from("/", [127, 0, 0, 2]).await.status, 200);
    for _ in 0..20 {
        let reply = envoy.get_from("/", [127, 0, 0, 9]).await;
        assert_eq!((reply.status, reply.header("x-ratelimit-limit")), (200, None), "{reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_descriptors_of_a_request_pass_together_or_not_at_all() {
    let (_home, server) = start("", &[("edge.yaml", RULES)], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    // A login counts twice: as a login, and as a request of its address.
    for left in ["1", "0"] {
        let reply = envoy.get("/login").await;
        assert_eq!((reply.status, reply.header("x-ratelimit-remaining")), (200, Some(left)));
        let limit = reply.header("x-ratelimit-limit").unwrap();
        assert!(
            limit.starts_with("2, ") && limit.contains("7;w=31536000;name=\"address\""),
            "{limit}"
        );
    }
    for _ in 0..10 {
        assert_eq!(envoy.get("/login").await.status, 429);
    }
    // Of the seven only two are spent: what was refused has cost nothing.
    let reply = envoy.get("/").await;
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("4"));
    assert_eq!(envoy.served(), 3);
    assert_eq!(outcome(&server, "denied"), 10.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unlimited_routes_and_limits_in_shadow_refuse_nobody() {
    let (_home, server) = start("", &[("edge.yaml", RULES)], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    for path in ["/health", "/search", "/search/x?y=1"] {
        for _ in 0..10 {
            let reply = envoy.get(path).await;
            assert_eq!(reply.status, 200, "{path}");
            assert_eq!(reply.header("x-ratelimit-limit"), None);
            assert_eq!(reply.header("ratelimit"), None);
        }
    }
    assert_eq!(outcome(&server, "unlimited"), 10.0);
    assert_eq!(outcome(&server, "shadow-denied"), 19.0);
    assert_eq!(envoy.served(), 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_the_policy_file_count_what_envoy_sends() {
    let policy = "\
        [[limit]]\nname = 'per-address'\nquota = '5/week'\n\
        match = { domain = 'edge', descriptor = { remote_address = '*' } }\n\
        [[limit.override]]\n'descriptor:remote_address' = '127.0.0.2'\nquota = '9/week'\n";
    let (_home, server) = start(policy, &[], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    for (client, admitted) in [([127, 0, 0, 1], 5), ([127, 0, 0, 2], 9)] {
        let mut passed = 0;
        for _ in 0..12 {
            let reply = envoy.get_from("/", client).await;
            passed += usize::from(reply.status == 200);
            let limit = reply.header("x-ratelimit-limit").unwrap();
            assert!(limit.starts_with(&format!("{admitted}, {admitted};w=604800")), "{limit}");
        }
        assert_eq!(passed, admitted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_exactly_the_quota_is_admitted() {
    let rules = RULES.replace("requests_per_unit: 7", "requests_per_unit: 200");
    let (_home, server) = start("", &[("edge.yaml", &rules)], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    let address = envoy.address;
    let clients = (0..8).map(|_| {
        tokio::spawn(async move {
            let mut statuses = Vec::new();
            for _ in 0..50 {
                statuses
                    .push(super::instance::get(address, "/", [127, 0, 0, 1].into()).await.status);
            }
            statuses
        })
    });
    let mut counts = [0, 0];
    for client in clients.collect::<Vec<_>>() {
        for status in client.await.unwrap() {
            counts[usize::from(status == 429)] += 1;
            assert!([200, 429].contains(&status), "{status}");
        }
    }
    assert_eq!((counts, envoy.served()), ([200, 200], 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_that_are_recommended_limit_what_envoy_sends() {
    const FILE: &str = include_str!("../../../../../deploy/envoy/ratelimit/edge.yaml");
    const POLICY: &str = include_str!("../../../../../deploy/envoy/spillgate.toml");
    let servers =
        [(start("", &[("edge.yaml", FILE)], &[]), "600"), (start(POLICY, &[], &[]), "20")];
    for ((_home, server), limit) in servers {
        let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
        let reply = envoy.get("/").await;
        assert_eq!(reply.status, 200);
        assert!(reply.header("x-ratelimit-limit").unwrap().starts_with(limit), "{reply:?}");
        // By the minute, which may end in between.
        let mut refused = 0;
        for _ in 0..12 {
            refused += usize::from(envoy.get("/login").await.status == 429);
        }
        assert!((2..=7).contains(&refused), "{refused}");
        assert_eq!(envoy.get("/health").await.header("x-ratelimit-limit"), None);
        assert_eq!(envoy.get("/search").await.header("x-ratelimit-limit"), None);
    }
}
