//! What tools are told of the services.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::quota::ExpirationSpecifier;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    DescriptorStatus, Quota, RateLimit,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{
    Duration, ListValue, Struct, Timestamp, UInt64Value, Value,
};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use tokio_stream::iter;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1alpha;

use crate::common::server::Server;
use crate::envoy::client::{channel, start};

const POLICY: &str = "[[limit]]\nname = 'api'\nmatch = { domain = 'edge' }\nquota = '5/h'\n";

async fn ask(server: &Server, questions: Vec<MessageRequest>) -> Vec<MessageResponse> {
    let mut client = ServerReflectionClient::new(channel(server).await);
    let requests = questions.into_iter().map(|question| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(question),
    });
    let mut answers = client.server_reflection_info(iter(requests)).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        all.push(answer.message_response.unwrap());
    }
    all
}

/// Everything that is told of the rate-limit service, file by file, as a tool asks.
async fn pool(server: &Server) -> DescriptorPool {
    let mut pool = DescriptorPool::new();
    let symbol = "envoy.service.ratelimit.v3.RateLimitService".to_owned();
    let mut wanted = vec![MessageRequest::FileContainingSymbol(symbol)];
    let mut files = Vec::new();
    while let Some(question) = wanted.pop() {
        let [MessageResponse::FileDescriptorResponse(answer)] =
            &ask(server, vec![question]).await[..]
        else {
            panic!("it is not told");
        };
        for bytes in &answer.file_descriptor_proto {
            let file = prost_types::FileDescriptorProto::decode(&bytes[..]).unwrap();
            wanted.extend(file.dependency.iter().cloned().map(MessageRequest::FileByFilename));
            files.retain(|known: &prost_types::FileDescriptorProto| known.name != file.name);
            files.push(file);
        }
    }
    files.reverse();
    pool.add_file_descriptor_protos(files).unwrap();
    pool
}

fn everything_asked() -> RateLimitRequest {
    RateLimitRequest {
        domain: "d".to_owned(),
        descriptors: vec![RateLimitDescriptor {
            entries: vec![Entry { key: "k".to_owned(), value: "v".to_owned() }],
            limit: Some(RateLimitOverride { requests_per_unit: 1, unit: 6 }),
            hits_addend: Some(UInt64Value { value: 7 }),
            is_negative_hits: true,
        }],
        hits_addend: 3,
    }
}

fn everything_answered() -> RateLimitResponse {
    let header =
        HeaderValue { key: "k".to_owned(), value: "v".to_owned(), raw_value: b"r".to_vec() };
    let valid = ExpirationSpecifier::ValidUntil(Timestamp { seconds: 1, nanos: 2 });
    let quota = Quota { requests: 1, id: "i".to_owned(), expiration_specifier: Some(valid) };
    let kinds = [
        Kind::NullValue(0),
        Kind::NumberValue(1.5),
        Kind::StringValue("s".to_owned()),
        Kind::BoolValue(true),
        Kind::StructValue(Struct::default()),
    ];
    let values = kinds.map(|kind| Value { kind: Some(kind) }).to_vec();
    let list = Value { kind: Some(Kind::ListValue(ListValue { values })) };
    RateLimitResponse {
        overall_code: 2,
        statuses: vec![DescriptorStatus {
            code: 1,
            current_limit: Some(RateLimit { name: "n".to_owned(), requests_per_unit: 5, unit: 7 }),
            limit_remaining: 4,
            duration_until_reset: Some(Duration { seconds: 1, nanos: 2 }),
            quota: Some(quota.clone()),
        }],
        response_headers_to_add: vec![header.clone()],
        request_headers_to_add: vec![header],
        raw_body: b"body".to_vec(),
        dynamic_metadata: Some(Struct { fields: [("list".to_owned(), list)].into() }),
        quota: Some(quota),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_told_field_by_field_as_they_are() {
    let (_home, server) = start(POLICY, &[], &[]);
    let pool = pool(&server).await;
    let output = [
        ("RateLimitRequest", everything_asked().encode_to_vec()),
        ("RateLimitResponse", everything_answered().encode_to_vec()),
    ];
    for (name, bytes) in output {
        let name = format!("envoy.service.ratelimit.v3.{name}");
        let message = pool.get_message_by_name(&name).unwrap();
        let read = DynamicMessage::decode(message, &bytes[..]).unwrap();
        assert!(!read.to_string().contains("unknown") && !has_unknown(&read), "{read}");
        assert_eq!(read.encoded_len(), bytes.len());
    }
}

/// True if anything in a message is not told.
fn has_unknown(message: &DynamicMessage) -> bool {
    fn in_value(value: &prost_reflect::Value) -> bool {
        match value {
            prost_reflect::Value::Message(message) => has_unknown(message),
            prost_reflect::Value::List(values) => values.iter().any(in_value),
            prost_reflect::Value::Map(values) => values.values().any(in_value),
            _ => false,
        }
    }
    message.unknown_fields().next().is_some() || message.fields().any(|(_, value)| in_value(value))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_are_listed_in_both_versions() {
    let (_home, server) = start(POLICY, &[], &[]);
    let answers = ask(&server, vec![MessageRequest::ListServices(String::new())]).await;
    let [MessageResponse::ListServicesResponse(listed)] = &answers[..] else {
        panic!("{answers:?}")
    };
    let names: Vec<_> = listed.service.iter().map(|service| &*service.name).collect();
    for name in ["envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let mut older =
        v1alpha::server_reflection_client::ServerReflectionClient::new(channel(&server).await);
    let question = v1alpha::server_reflection_request::MessageRequest::ListServices(String::new());
    let request =
        v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut answers = older.server_reflection_info(iter([request])).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().is_some());
}
