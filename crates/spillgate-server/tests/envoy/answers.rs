//! What is answered to a call, field by field.

use spillgate_server::protocol::grpc::messages::DescriptorStatus;
use tonic::Code;

use crate::envoy::client::{Client, OK, OVER_LIMIT, descriptor, metric, outcome, start};

const HOUR: i32 = 3;

const FILE: &str = "\
domain: edge
descriptors:
- key: address
  rate_limit: {unit: hour, requests_per_unit: 2, name: per address}
- {key: free, rate_limit: {unlimited: true}}
- {key: shut, rate_limit: {unit: hour, requests_per_unit: 0}}
- {key: known}
- {key: tried, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
- {key: base, rate_limit: {unit: hour, requests_per_unit: 1, name: base}}
- {key: better, rate_limit: {unit: hour, requests_per_unit: 5, replaces: [{name: base}]}}
";

fn limit(status: &DescriptorStatus) -> (String, u32, i32) {
    let limit = status.current_limit.clone().unwrap();
    (limit.name, limit.requests_per_unit, limit.unit)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_one_status_for_each_descriptor_in_their_order() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let descriptors =
        [("nobody", "x"), ("address", "1"), ("free", "x"), ("known", "x"), ("address", "2")];
    let descriptors = descriptors.map(|entry| descriptor(&[entry]));
    let answer = client.ask("edge", &descriptors).await;
    assert_eq!(answer.overall_code, OK);
    let [unknown, first, free, known, second] = &answer.statuses[..] else { panic!("{answer:?}") };
    for status in &answer.statuses {
        assert_eq!(status.code, OK);
    }
    for status in [first, second] {
        assert_eq!(limit(status), ("per address".to_owned(), 2, HOUR));
        assert_eq!(status.limit_remaining, 1);
        let reset = status.duration_until_reset.unwrap();
        assert!((0..=3600).contains(&reset.seconds), "{reset:?}");
    }
    for status in [unknown, known, free] {
        assert!(status.current_limit.is_none() && status.duration_until_reset.is_none());
    }
    assert_eq!(free.limit_remaining, u32::MAX);
    let output = answer.response_headers_to_add;
    let output: Vec<_> = output.iter().map(|header| (&*header.key, &*header.value)).collect();
    assert_eq!(output[0], ("ratelimit-policy", "\"per address\";q=2;w=3600"));
    assert!(
        output[1].0 == "ratelimit" && output[1].1.starts_with("\"per address\";r=1;t="),
        "{output:?}"
    );
    assert_eq!(output.len(), 2, "{output:?}");
    for (name, count) in [("unknown-descriptor", 1.0), ("unlimited", 2.0), ("allowed", 2.0)] {
        assert_eq!(outcome(&server, name), count, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_descriptor_denies_the_call_and_nothing_is_spent() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let (one, two) = (descriptor(&[("address", "1")]), descriptor(&[("address", "2")]));
    for _ in 0..2 {
        assert_eq!(client.status("edge", &one).await.code, OK);
    }
    for _ in 0..3 {
        let answer = client.ask("edge", &[two.clone(), one.clone()]).await;
        assert_eq!(answer.overall_code, OVER_LIMIT);
        let [free, denied] = &answer.statuses[..] else { panic!("{answer:?}") };
        assert_eq!((free.code, free.limit_remaining), (OK, 2));
        assert_eq!((denied.code, denied.limit_remaining), (OVER_LIMIT, 0));
        let retry =
            answer.response_headers_to_add.iter().find(|header| header.key == "retry-after");
        assert!((1..=3600).contains(&retry.unwrap().value.parse().unwrap()));
    }
    assert_eq!(outcome(&server, "denied"), 3.0);
    let denied = "spillgate_requests_total{limit=\"edge/address\",outcome=\"denied\"}";
    assert_eq!(metric(&server, denied), 3.0);
    let log = server.stop();
    assert!(log.contains("denied limit=\"edge/address\"") && log.contains("domain=edge"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_never_let_through_is_denied_without_an_end() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let answer = client.ask("edge", &[descriptor(&[("shut", "x")])]).await;
    assert_eq!(answer.overall_code, OVER_LIMIT);
    let status = &answer.statuses[0];
    assert_eq!((status.code, status.limit_remaining), (OVER_LIMIT, 0));
    let (_, amount, unit) = limit(status);
    assert_eq!((amount, unit), (0, HOUR));
    assert!(answer.response_headers_to_add.is_empty(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_in_shadow_denies_nobody_and_is_counted() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    for _ in 0..3 {
        let status = client.status("edge", &descriptor(&[("tried", "x")])).await;
        assert_eq!(status.code, OK);
        assert!(status.current_limit.is_none());
    }
    assert_eq!(outcome(&server, "shadow-denied"), 2.0);
    assert_eq!(outcome(&server, "allowed"), 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_takes_the_place_of_another_in_the_same_call() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let (base, better) = (descriptor(&[("base", "x")]), descriptor(&[("better", "x")]));
    for left in (0..5).rev() {
        let answer = client.ask("edge", &[base.clone(), better.clone()]).await;
        assert_eq!(answer.overall_code, OK);
        assert_eq!(answer.statuses[0], DescriptorStatus { code: OK, ..Default::default() });
        assert_eq!(answer.statuses[1].limit_remaining, left);
    }
    assert_eq!(client.status("edge", &base).await.code, OK, "nothing was spent of it");
    assert_eq!(client.status("edge", &base).await.code, OVER_LIMIT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_known_of_other_domains_and_everything_passes_there() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    for _ in 0..4 {
        let status = client.status("other", &descriptor(&[("address", "1")])).await;
        assert_eq!(status, DescriptorStatus { code: OK, ..DescriptorStatus::default() });
    }
    assert_eq!(outcome(&server, "unknown-domain"), 4.0);
    assert_eq!(metric(&server, "spillgate_grpc_calls_total{code=\"OK\"}"), 4.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_asks_nothing_is_refused() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let one = [descriptor(&[("address", "1")])];
    let many = vec![one[0].clone(); 257];
    let long = [descriptor(&[("address", "1"); 65])];
    for (domain, descriptors, expected) in [
        ("", &one[..], "domain must not be empty"),
        ("edge", &[], "descriptor list must not be empty"),
        ("edge", &many, "too many descriptors: at most 256"),
        ("edge", &long, "too many entries: at most 64"),
    ] {
        let error = client.try_ask(domain, 0, descriptors).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(expected), "{error}");
    }
    assert_eq!(metric(&server, "spillgate_grpc_calls_total{code=\"INVALID_ARGUMENT\"}"), 4.0);
    assert_eq!(client.status("edge", &one[0]).await.limit_remaining, 1, "nothing was spent");
}
