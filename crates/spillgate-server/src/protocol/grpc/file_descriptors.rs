//! What reflection tells of the rate-limit service: its messages, field by field, as the
//! `.proto` files of Envoy have them, without their comments and options.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
    OneofDescriptorProto, ServiceDescriptorProto,
};

const SERVICE: &str = "envoy/service/ratelimit/v3/rls.proto";
const DESCRIPTOR: &str = "envoy/extensions/common/ratelimit/v3/ratelimit.proto";
const UNIT: &str = "envoy/type/v3/ratelimit_unit.proto";
const HEADER: &str = "envoy/config/core/v3/base.proto";
const DURATION: &str = "google/protobuf/duration.proto";
const STRUCT: &str = "google/protobuf/struct.proto";
const TIMESTAMP: &str = "google/protobuf/timestamp.proto";
const WRAPPERS: &str = "google/protobuf/wrappers.proto";

/// The files of the service, and those that they import.
pub(super) fn file_descriptors() -> FileDescriptorSet {
    let moment = || vec![scalar("seconds", 1, Type::Int64), scalar("nanos", 2, Type::Int32)];
    let wrapper = message("UInt64Value", vec![scalar("value", 1, Type::Uint64)]);
    let header = vec![
        scalar("key", 1, Type::String),
        scalar("value", 2, Type::String),
        scalar("raw_value", 3, Type::Bytes),
    ];
    let google = "google.protobuf";
    FileDescriptorSet {
        file: vec![
            file(DURATION, google, &[], vec![message("Duration", moment())]),
            file(TIMESTAMP, google, &[], vec![message("Timestamp", moment())]),
            file(WRAPPERS, google, &[], vec![wrapper]),
            structs(),
            FileDescriptorProto {
                enum_type: vec![units("RateLimitUnit", &[("MONTH", 5), ("YEAR", 6)])],
                ..file(UNIT, "envoy.type.v3", &[], Vec::new())
            },
            file(HEADER, "envoy.config.core.v3", &[], vec![message("HeaderValue", header)]),
            descriptor(),
            service(),
        ],
    }
}

fn service() -> FileDescriptorProto {
    let request = vec![
        scalar("domain", 1, Type::String),
        many(nested("descriptors", 2, ".envoy.extensions.common.ratelimit.v3.RateLimitDescriptor")),
        scalar("hits_addend", 3, Type::Uint32),
    ];
    let method = MethodDescriptorProto {
        name: some("ShouldRateLimit"),
        input_type: some(".envoy.service.ratelimit.v3.RateLimitRequest"),
        output_type: some(".envoy.service.ratelimit.v3.RateLimitResponse"),
        ..MethodDescriptorProto::default()
    };
    let imports = [HEADER, DESCRIPTOR, DURATION, STRUCT, TIMESTAMP];
    let messages = vec![message("RateLimitRequest", request), response()];
    FileDescriptorProto {
        service: vec![ServiceDescriptorProto {
            name: some("RateLimitService"),
            method: vec![method],
            ..ServiceDescriptorProto::default()
        }],
        ..file(SERVICE, "envoy.service.ratelimit.v3", &imports, messages)
    }
}

fn response() -> DescriptorProto {
    const QUOTA: &str = ".envoy.service.ratelimit.v3.RateLimitResponse.Quota";
    const CODE: &str = ".envoy.service.ratelimit.v3.RateLimitResponse.Code";
    const HEADER_VALUE: &str = ".envoy.config.core.v3.HeaderValue";
    let fields = vec![
        choice("overall_code", 1, CODE),
        many(nested(
            "statuses",
            2,
            ".envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus",
        )),
        many(nested("response_headers_to_add", 3, HEADER_VALUE)),
        many(nested("request_headers_to_add", 4, HEADER_VALUE)),
        scalar("raw_body", 5, Type::Bytes),
        nested("dynamic_metadata", 6, ".google.protobuf.Struct"),
        nested("quota", 7, QUOTA),
    ];
    let status = vec![
        choice("code", 1, CODE),
        nested("current_limit", 2, ".envoy.service.ratelimit.v3.RateLimitResponse.RateLimit"),
        scalar("limit_remaining", 3, Type::Uint32),
        nested("duration_until_reset", 4, ".google.protobuf.Duration"),
        nested("quota", 5, QUOTA),
    ];
    let limit = vec![
        scalar("name", 3, Type::String),
        scalar("requests_per_unit", 1, Type::Uint32),
        choice("unit", 2, ".envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit"),
    ];
    let quota = vec![
        scalar("requests", 1, Type::Uint32),
        FieldDescriptorProto {
            oneof_index: Some(0),
            ..nested("valid_until", 2, ".google.protobuf.Timestamp")
        },
        scalar("id", 3, Type::String),
    ];
    DescriptorProto {
        enum_type: vec![choices("Code", &[("UNKNOWN", 0), ("OK", 1), ("OVER_LIMIT", 2)])],
        nested_type: vec![
            DescriptorProto {
                enum_type: vec![units("Unit", &[("WEEK", 7), ("MONTH", 5), ("YEAR", 6)])],
                ..message("RateLimit", limit)
            },
            one_of("expiration_specifier", message("Quota", quota)),
            message("DescriptorStatus", status),
        ],
        ..message("RateLimitResponse", fields)
    }
}

fn descriptor() -> FileDescriptorProto {
    let package = "envoy.extensions.common.ratelimit.v3";
    let name = |inner: &str| format!(".{package}.RateLimitDescriptor.{inner}");
    let fields = vec![
        many(nested("entries", 1, &name("Entry"))),
        nested("limit", 2, &name("RateLimitOverride")),
        nested("hits_addend", 3, ".google.protobuf.UInt64Value"),
        scalar("is_negative_hits", 4, Type::Bool),
    ];
    let entry = vec![scalar("key", 1, Type::String), scalar("value", 2, Type::String)];
    let given = vec![
        scalar("requests_per_unit", 1, Type::Uint32),
        choice("unit", 2, ".envoy.type.v3.RateLimitUnit"),
    ];
    let whole = DescriptorProto {
        nested_type: vec![message("Entry", entry), message("RateLimitOverride", given)],
        ..message("RateLimitDescriptor", fields)
    };
    file(DESCRIPTOR, package, &[UNIT, WRAPPERS], vec![whole])
}

fn structs() -> FileDescriptorProto {
    let value = || nested("value", 2, ".google.protobuf.Value");
    let entry = DescriptorProto {
        options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
        ..message("FieldsEntry", vec![scalar("key", 1, Type::String), value()])
    };
    let kinds = [
        choice("null_value", 1, ".google.protobuf.NullValue"),
        scalar("number_value", 2, Type::Double),
        scalar("string_value", 3, Type::String),
        scalar("bool_value", 4, Type::Bool),
        nested("struct_value", 5, ".google.protobuf.Struct"),
        nested("list_value", 6, ".google.protobuf.ListValue"),
    ];
    let kinds = kinds.map(|kind| FieldDescriptorProto { oneof_index: Some(0), ..kind });
    let whole = DescriptorProto {
        nested_type: vec![entry],
        ..message("Struct", vec![many(nested("fields", 1, ".google.protobuf.Struct.FieldsEntry"))])
    };
    let list = vec![many(nested("values", 1, ".google.protobuf.Value"))];
    let messages =
        vec![whole, one_of("kind", message("Value", kinds.to_vec())), message("ListValue", list)];
    FileDescriptorProto {
        enum_type: vec![choices("NullValue", &[("NULL_VALUE", 0)])],
        ..file(STRUCT, "google.protobuf", &[], messages)
    }
}

fn file(
    name: &str,
    package: &str,
    imports: &[&str],
    messages: Vec<DescriptorProto>,
) -> FileDescriptorProto {
    FileDescriptorProto {
        name: some(name),
        package: some(package),
        dependency: imports.iter().map(|import| (*import).to_owned()).collect(),
        message_type: messages,
        syntax: some("proto3"),
        ..FileDescriptorProto::default()
    }
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: some(name), field, ..DescriptorProto::default() }
}

fn one_of(name: &str, message: DescriptorProto) -> DescriptorProto {
    let oneof_decl = vec![OneofDescriptorProto { name: some(name), options: None }];
    DescriptorProto { oneof_decl, ..message }
}

fn scalar(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: some(name),
        number: Some(number),
        label: Some(Label::Optional as i32),
        r#type: Some(kind as i32),
        ..FieldDescriptorProto::default()
    }
}

fn nested(name: &str, number: i32, of: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: some(of), ..scalar(name, number, Type::Message) }
}

fn choice(name: &str, number: i32, of: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: some(of), ..scalar(name, number, Type::Enum) }
}

fn many(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto { label: Some(Label::Repeated as i32), ..field }
}

fn units(name: &str, long: &[(&str, i32)]) -> EnumDescriptorProto {
    let short = [("UNKNOWN", 0), ("SECOND", 1), ("MINUTE", 2), ("HOUR", 3), ("DAY", 4)];
    choices(name, &[&short, long].concat())
}

fn choices(name: &str, values: &[(&str, i32)]) -> EnumDescriptorProto {
    let value = |(name, number): &(&str, i32)| EnumValueDescriptorProto {
        name: some(name),
        number: Some(*number),
        options: None,
    };
    EnumDescriptorProto {
        name: some(name),
        value: values.iter().map(value).collect(),
        ..EnumDescriptorProto::default()
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}
