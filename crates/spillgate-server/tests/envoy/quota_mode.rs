//! Limits in quota mode, and the metadata of limits.

use prost_types::Struct;
use prost_types::value::Kind;
use spillgate_server::protocol::grpc::messages::RateLimitResponse;

use crate::envoy::client::{Client, OK, OVER_LIMIT, descriptor, outcome, start, with_hits};

/// By the year, so that no window ends while a test runs.
const FILE: &str = "\
domain: edge
descriptors:
- key: service
  value: one
  quota_mode: true
  rate_limit: {unit: year, requests_per_unit: 1}
  metadata: {route: {name: one, weight: 010}, first: 1}
- key: service
  value: two
  quota_mode: true
  rate_limit: {unit: year, requests_per_unit: 2}
  metadata: {route: {name: two, zone: north}, second: true}
- {key: plain, rate_limit: {unit: year, requests_per_unit: 9}, metadata: {plain: [~, x]}}
- {key: bare, rate_limit: {unit: year, requests_per_unit: 9}}
";

fn codes(answer: &RateLimitResponse) -> (i32, Vec<i32>) {
    (answer.overall_code, answer.statuses.iter().map(|status| status.code).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_over_the_limit_once_all_its_quotas_are() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let call = [("service", "one"), ("service", "two"), ("plain", "x")];
    let call = call.map(|entry| descriptor(&[entry]));
    assert_eq!(codes(&client.ask("edge", &call).await), (OK, vec![OK, OK, OK]));
    let answer = client.ask("edge", &call).await;
    assert_eq!(codes(&answer), (OK, vec![OVER_LIMIT, OK, OK]));
    assert_eq!(answer.statuses[0].limit_remaining, 0);
    assert_eq!(answer.statuses[0].current_limit.as_ref().unwrap().requests_per_unit, 1);
    for _ in 0..3 {
        let answer = client.ask("edge", &call).await;
        assert_eq!(codes(&answer), (OVER_LIMIT, vec![OVER_LIMIT, OVER_LIMIT, OK]));
        let names: Vec<_> =
            answer.response_headers_to_add.iter().map(|message| &*message.key).collect();
        assert_eq!(names, ["ratelimit-policy", "ratelimit", "retry-after"]);
        assert_eq!(answer.statuses[2].limit_remaining, 7, "what is denied spends nothing else");
    }
    assert_eq!(outcome(&server, "quota-exceeded"), 1.0);
    assert_eq!(outcome(&server, "denied"), 6.0);
    let log = server.stop();
    assert!(log.contains("denied limit=\"edge/service="), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_that_are_told_after_the_work_count_beyond_the_quota() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let two = descriptor(&[("service", "two")]);
    let (look, work) = (with_hits(&two, 0), with_hits(&two, 5));
    assert_eq!(client.status("edge", &look).await.code, OK);
    assert_eq!(client.status("edge", &work).await.code, OVER_LIMIT);
    assert_eq!(client.status("edge", &look).await.code, OVER_LIMIT);
    assert_eq!(client.status("edge", &with_hits(&two, 1)).await.code, OVER_LIMIT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_filter_is_told_of_limits_that_are_not_exceeded() {
    let (_home, server) = start("", &[("edge.yaml", FILE)], &[]);
    let mut client = Client::to(&server).await;
    let call = [("service", "one"), ("service", "two"), ("plain", "x")];
    let mut call = call.map(|entry| descriptor(&[entry]));
    call[1] = with_hits(&call[1], 1);
    let (number, text) = (Kind::NumberValue, |text: &str| Kind::StringValue(text.to_owned()));

    let message = client.try_ask("edge", 1, &call).await.unwrap().dynamic_metadata.unwrap();
    assert_eq!(field(&message, "domain"), text("edge"));
    assert_eq!(field(&message, "hitsAddend"), number(1.0));
    assert_eq!(field(&message, "quotaModeEnabled"), Kind::BoolValue(true));
    assert_eq!(list(&message, "quotaModeViolations"), []);
    let descriptors = list(&message, "descriptors");
    let Kind::StructValue(second) = &descriptors[1] else { panic!("{message:?}") };
    assert_eq!(list(second, "entries"), [text("service=two")]);
    assert_eq!(field(second, "hitsAddend"), number(1.0));
    // The first value stays, and tables become one.
    let metadata = table(&message, "metadata");
    let route = table(&metadata, "route");
    assert_eq!(field(&route, "name"), text("one"));
    assert_eq!(field(&route, "weight"), number(8.0));
    assert_eq!(field(&route, "zone"), text("north"));
    assert_eq!(field(&metadata, "first"), number(1.0));
    assert_eq!(field(&metadata, "second"), Kind::BoolValue(true));
    assert_eq!(list(&metadata, "plain"), [Kind::NullValue(0), text("x")]);

    let message = client.ask("edge", &call).await.dynamic_metadata.unwrap();
    assert_eq!(list(&message, "quotaModeViolations"), [number(0.0)]);
    assert!(!message.fields.contains_key("hitsAddend"));
    let metadata = table(&message, "metadata");
    assert_eq!(field(&table(&metadata, "route"), "name"), text("two"));
    assert!(!metadata.fields.contains_key("first"));

    // Metadata is told without a limit in quota mode, and nothing is where there is neither.
    let message = client.ask("edge", &call[2..]).await.dynamic_metadata.unwrap();
    assert_eq!(field(&message, "quotaModeEnabled"), Kind::BoolValue(false));
    assert!(table(&message, "metadata").fields.contains_key("plain"));
    let bare = [descriptor(&[("bare", "x")])];
    assert!(client.ask("edge", &bare).await.dynamic_metadata.is_none());
}

fn field(table: &Struct, name: &str) -> Kind {
    table.fields[name].kind.clone().unwrap()
}

fn list(table: &Struct, name: &str) -> Vec<Kind> {
    let Kind::ListValue(list) = field(table, name) else { panic!("{table:?}") };
    list.values.into_iter().map(|value| value.kind.unwrap()).collect()
}

fn table(table: &Struct, name: &str) -> Struct {
    let Kind::StructValue(found) = field(table, name) else { panic!("{table:?}") };
    found
}
