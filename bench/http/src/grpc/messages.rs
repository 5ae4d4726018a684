//! The messages of both services, as far as they are used: written by hand, so that nothing
//! is generated when this is built.

/// `throttlecrab.ThrottleRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ThrottleRequest {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(int32, tag = "2")]
    pub max_burst: i32,
    #[prost(int32, tag = "3")]
    pub count_per_period: i32,
    #[prost(int32, tag = "4")]
    pub period: i32,
    #[prost(int32, tag = "5")]
    pub quantity: i32,
}

/// `throttlecrab.ThrottleResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ThrottleResponse {
    #[prost(bool, tag = "1")]
    pub allowed: bool,
    #[prost(int32, tag = "2")]
    pub limit: i32,
    #[prost(int32, tag = "3")]
    pub remaining: i32,
    #[prost(int32, tag = "4")]
    pub retry_after: i32,
    #[prost(int32, tag = "5")]
    pub reset_after: i32,
}

/// `envoy.service.ratelimit.v3.RateLimitRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RateLimitRequest {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(message, repeated, tag = "2")]
    pub descriptors: Vec<Descriptor>,
    #[prost(uint32, tag = "3")]
    pub hits_addend: u32,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `envoy.service.ratelimit.v3.RateLimitResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    pub overall_code: i32,
    #[prost(message, repeated, tag = "2")]
    pub statuses: Vec<Status>,
    #[prost(message, repeated, tag = "3")]
    pub response_headers_to_add: Vec<Entry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(message, optional, tag = "2")]
    pub current_limit: Option<CurrentLimit>,
    #[prost(uint32, tag = "3")]
    pub limit_remaining: u32,
    #[prost(message, optional, tag = "4")]
    pub duration_until_reset: Option<Duration>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CurrentLimit {
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    #[prost(int32, tag = "2")]
    pub unit: i32,
    #[prost(string, tag = "3")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Duration {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// `Code.OK` of a response, and of a status.
pub const OK: i32 = 1;
