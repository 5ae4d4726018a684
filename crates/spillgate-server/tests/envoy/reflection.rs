//! What tools are told of the services.

use std::collections::HashMap;

use bytes::Buf;
use futures_util::stream::iter;
use prost::{Message, decode_length_delimiter};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::value::Kind;
use prost_types::{
    DescriptorProto, Duration, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    ListValue, MethodDescriptorProto, Struct,
};
use serde_json::{Map, Value, json};
use spillgate_server::protocol::grpc::messages::{
    Code, DescriptorStatus, Entry, HeaderValue, RateLimit, RateLimitDescriptor, RateLimitOverride,
    RateLimitRequest, RateLimitResponse, Unit,
};
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

/// What is told of the rate-limit service: messages and enums by their full names, which begin
/// with a dot.
#[derive(Default)]
struct Told {
    messages: HashMap<String, DescriptorProto>,
    enums: HashMap<String, EnumDescriptorProto>,
    methods: Vec<MethodDescriptorProto>,
}

impl Told {
    /// Asks file by file, as a tool does.
    async fn by(server: &Server) -> Self {
        let symbol = "envoy.service.ratelimit.v3.RateLimitService".to_owned();
        let mut wanted = vec![MessageRequest::FileContainingSymbol(symbol)];
        let mut told = Self::default();
        while let Some(question) = wanted.pop() {
            let [MessageResponse::FileDescriptorResponse(answer)] =
                &ask(server, vec![question]).await[..]
            else {
                panic!("it is not told");
            };
            for bytes in &answer.file_descriptor_proto {
                let file = FileDescriptorProto::decode(&bytes[..]).unwrap();
                let scope = format!(".{}", file.package());
                told.add(&scope, file.message_type, file.enum_type);
                told.methods.extend(file.service.into_iter().flat_map(|service| service.method));
                wanted.extend(file.dependency.into_iter().map(MessageRequest::FileByFilename));
            }
        }
        let fields = told.messages.values().flat_map(|message| &message.field);
        for name in fields.filter_map(|field| field.type_name.as_ref()) {
            assert!(told.messages.contains_key(name) || told.enums.contains_key(name), "{name}");
        }
        told
    }

    fn add(
        &mut self,
        scope: &str,
        messages: Vec<DescriptorProto>,
        enums: Vec<EnumDescriptorProto>,
    ) {
        for told in enums {
            self.enums.insert(format!("{scope}.{}", told.name()), told);
        }
        for mut told in messages {
            let name = format!("{scope}.{}", told.name());
            self.add(
                &name,
                std::mem::take(&mut told.nested_type),
                std::mem::take(&mut told.enum_type),
            );
            self.messages.insert(name, told);
        }
    }

    /// A message in JSON, read by what is told of it. What is not told fails.
    fn read(&self, name: &str, mut bytes: &[u8]) -> Value {
        let mut message = Map::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let told = &self.messages[name].field;
            let field = told.iter().find(|field| field.number() as u64 == key >> 3);
            let field = field.unwrap_or_else(|| panic!("{name} has no field {}", key >> 3));
            let value = match (key & 7, field.r#type()) {
                (1, Type::Double) => bytes.get_f64_le().into(),
                (2, kind) => {
                    let length = varint(&mut bytes) as usize;
                    let (own, rest) = bytes.split_at(length);
                    bytes = rest;
                    match kind {
                        Type::String => str::from_utf8(own).unwrap().into(),
                        Type::Message => self.read(field.type_name(), own),
                        _ => panic!("a text or a message for {field:?} of {name}"),
                    }
                }
                (0, _) => self.number(field, varint(&mut bytes)),
                (wire, _) => panic!("wire type {wire} for {field:?} of {name}"),
            };
            if field.label() == Label::Repeated {
                let list = message.entry(field.name()).or_insert(json!([]));
                list.as_array_mut().unwrap().push(value);
            } else {
                assert!(message.insert(field.name().to_owned(), value).is_none(), "{field:?}");
            }
        }
        Value::Object(message)
    }

    fn number(&self, field: &FieldDescriptorProto, number: u64) -> Value {
        match field.r#type() {
            Type::Bool => (number != 0).into(),
            Type::Uint32 => u32::try_from(number).unwrap().into(),
            Type::Int32 => i32::try_from(number).unwrap().into(),
            Type::Uint64 | Type::Int64 => number.into(),
            Type::Enum => {
                let mut values = self.enums[field.type_name()].value.iter();
                values.find(|value| value.number() as u64 == number).unwrap().name().into()
            }
            _ => panic!("a number for {field:?}"),
        }
    }
}

/// Everything that is no text, message or `double` is written as lengths are.
fn varint(bytes: &mut &[u8]) -> u64 {
    decode_length_delimiter(bytes).unwrap() as u64
}

/// A request with every field, and what should be read in it.
fn everything_asked() -> (RateLimitRequest, Value) {
    let request = RateLimitRequest {
        domain: "d".to_owned(),
        descriptors: vec![RateLimitDescriptor {
            entries: vec![Entry { key: "k".to_owned(), value: "v".to_owned() }],
            limit: Some(RateLimitOverride { requests_per_unit: u32::MAX, unit: Unit::Year as i32 }),
            hits_addend: Some(u64::MAX),
            is_negative_hits: true,
        }],
        hits_addend: u32::MAX - 1,
    };
    let limit = json!({ "requests_per_unit": u32::MAX, "unit": "YEAR" });
    let descriptor = json!({
        "entries": [{ "key": "k", "value": "v" }],
        "limit": limit,
        "hits_addend": { "value": u64::MAX },
        "is_negative_hits": true,
    });
    let told = json!({ "domain": "d", "descriptors": [descriptor], "hits_addend": u32::MAX - 1 });
    (request, told)
}

/// The same for a response.
fn everything_answered() -> (RateLimitResponse, Value) {
    let kinds = [
        (Kind::NullValue(0), json!({ "null_value": "NULL_VALUE" })),
        (Kind::NumberValue(1.5), json!({ "number_value": 1.5 })),
        (Kind::StringValue("s".to_owned()), json!({ "string_value": "s" })),
        (Kind::BoolValue(true), json!({ "bool_value": true })),
        (Kind::StructValue(Struct::default()), json!({ "struct_value": {} })),
    ];
    let (values, told): (Vec<_>, Vec<_>) = kinds.into_iter().unzip();
    let values = values.into_iter().map(|kind| prost_types::Value { kind: Some(kind) }).collect();
    let list = prost_types::Value { kind: Some(Kind::ListValue(ListValue { values })) };
    let metadata = json!({ "key": "list", "value": { "list_value": { "values": told } } });
    let response = RateLimitResponse {
        overall_code: Code::OverLimit as i32,
        statuses: vec![DescriptorStatus {
            code: Code::Ok as i32,
            current_limit: Some(RateLimit {
                name: "n".to_owned(),
                requests_per_unit: u32::MAX,
                unit: Unit::Week as i32,
            }),
            limit_remaining: u32::MAX - 1,
            duration_until_reset: Some(Duration { seconds: 1, nanos: 2 }),
        }],
        response_headers_to_add: vec![HeaderValue { key: "k".to_owned(), value: "v".to_owned() }],
        dynamic_metadata: Some(Struct { fields: [("list".to_owned(), list)].into() }),
    };
    let limit = json!({ "name": "n", "requests_per_unit": u32::MAX, "unit": "WEEK" });
    let status = json!({
        "code": "OK",
        "current_limit": limit,
        "limit_remaining": u32::MAX - 1,
        "duration_until_reset": { "seconds": 1, "nanos": 2 },
    });
    let told = json!({
        "overall_code": "OVER_LIMIT",
        "statuses": [status],
        "response_headers_to_add": [{ "key": "k", "value": "v" }],
        "dynamic_metadata": { "fields": [metadata] },
    });
    (response, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_told_field_by_field_as_they_are() {
    let (_home, server) = start(POLICY, &[], &[]);
    let told = Told::by(&server).await;
    let [method] = &told.methods[..] else { panic!("{:?}", told.methods) };
    assert_eq!(method.name(), "ShouldRateLimit");
    let ((request, asked), (response, answered)) = (everything_asked(), everything_answered());
    assert_eq!(told.read(method.input_type(), &request.encode_to_vec()), asked);
    assert_eq!(told.read(method.output_type(), &response.encode_to_vec()), answered);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enums_are_told_value_by_value_as_they_are() {
    let (_home, server) = start(POLICY, &[], &[]);
    let told = Told::by(&server).await;
    for name in [
        ".envoy.service.ratelimit.v3.RateLimitResponse.Code",
        ".envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit",
        ".envoy.type.v3.RateLimitUnit",
    ] {
        for value in &told.enums[name].value {
            let own = match name.ends_with("Code") {
                true => format!("{:?}", Code::try_from(value.number()).unwrap()),
                false => format!("{:?}", Unit::try_from(value.number()).unwrap()),
            };
            assert_eq!(own.to_uppercase(), value.name().replace('_', ""), "{name}");
        }
    }
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
