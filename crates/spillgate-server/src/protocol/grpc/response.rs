//! What is answered to a call.

use std::time::Duration;

use bytes::Bytes;
use spillgate_policy::{
    DescriptorKind, DescriptorOutcome, DescriptorState, Descriptors, Error, LimitState,
};
use tonic::Status;

use super::GrpcServer;
use super::messages::{Code, DescriptorStatus, HeaderValue, RateLimit, RateLimitResponse};
use super::metadata::metadata;
use super::reply::wrapped;
use super::request::DecodedRequest;
use super::stats::DescriptorResult;
use crate::envoy;

/// Answers a call at once, if the store can decide at once.
pub(super) fn at_once(
    server: &GrpcServer,
    request: &DecodedRequest,
) -> Option<Result<Bytes, Status>> {
    let entries = request.entries();
    let descriptors = request.descriptors(&entries);
    let checked = server.app.enforcer().try_decide(
        &Descriptors { domain: &request.message.domain, descriptors: &descriptors },
        |it| it.map(DescriptorOutcome::take),
    )?;
    Some(answer(server, request, checked))
}

pub(super) async fn later(server: &GrpcServer, request: &DecodedRequest) -> Result<Bytes, Status> {
    let entries = request.entries();
    let descriptors = request.descriptors(&entries);
    let checked = server
        .app
        .enforcer()
        .decide(&Descriptors { domain: &request.message.domain, descriptors: &descriptors })
        .await;
    answer(server, request, checked)
}

fn answer(
    server: &GrpcServer,
    request: &DecodedRequest,
    checked: Result<DescriptorOutcome<'_>, Error>,
) -> Result<Bytes, Status> {
    let outcome = checked.map_err(|error| match error.is_store() {
        // Envoy applies its failure mode then.
        true => Status::unavailable(error.for_clients()),
        false => Status::invalid_argument(error.to_string()),
    })?;
    for descriptor in outcome.descriptors() {
        server.stats.count_descriptor(result(&outcome, descriptor));
    }
    Ok(wrapped(&response(server, request, &outcome)))
}

fn response(
    server: &GrpcServer,
    request: &DecodedRequest,
    outcome: &DescriptorOutcome<'_>,
) -> RateLimitResponse {
    let header = |(name, value): (http::HeaderName, http::HeaderValue)| HeaderValue {
        key: name.as_str().to_owned(),
        // Headers of limits are texts.
        value: value.to_str().unwrap_or_default().to_owned(),
    };
    // A limit that lets nothing through has no quota to tell of.
    let is_open = request.closed().all(|is_closed| !is_closed);
    let headers = is_open.then(|| server.app.enforcer().descriptor_headers(outcome).map(header));
    RateLimitResponse {
        overall_code: code(!outcome.is_allowed()),
        statuses: outcome.descriptors().zip(request.closed()).map(status).collect(),
        response_headers_to_add: headers.into_iter().flatten().collect(),
        dynamic_metadata: metadata(&request.message, outcome),
    }
}

fn code(is_denied: bool) -> i32 {
    if is_denied { Code::OverLimit as i32 } else { Code::Ok as i32 }
}

/// The status of a descriptor, by the limit that is nearest to denying it.
fn status((descriptor, is_closed): (DescriptorState<'_>, bool)) -> DescriptorStatus {
    let is_exceeded = descriptor.is_denied() || descriptor.exceeds_quota();
    let code = code(is_exceeded);
    let Some(limit) = nearest(descriptor) else {
        let limit_remaining = match descriptor.kind() {
            DescriptorKind::Unlimited => u32::MAX,
            _ => 0,
        };
        return DescriptorStatus { code, limit_remaining, ..DescriptorStatus::default() };
    };
    let decision = limit.decision();
    let name = limit.shown_name().unwrap_or(limit.name()).to_owned();
    let unit = decision.window().map_or(0, |window| envoy::lasting(window) as i32);
    if is_closed || limit.is_closed() {
        let current_limit = Some(RateLimit { name, requests_per_unit: 0, unit });
        return DescriptorStatus { code, current_limit, ..DescriptorStatus::default() };
    }
    let requests_per_unit = small(decision.limit());
    DescriptorStatus {
        code,
        current_limit: Some(RateLimit { name, requests_per_unit, unit }),
        limit_remaining: small(decision.remaining()),
        duration_until_reset: decision.reset_after().map(duration),
    }
}

fn nearest(descriptor: DescriptorState<'_>) -> Option<LimitState<'_>> {
    let quota_mode = || descriptor.limits().filter(LimitState::is_quota_mode);
    let exceeded = quota_mode().find(|limit| limit.decision().is_denied());
    let denies = descriptor.is_denied();
    exceeded.filter(|_| !denies).or_else(|| descriptor.nearest()).or_else(|| quota_mode().next())
}

fn result(outcome: &DescriptorOutcome<'_>, descriptor: DescriptorState<'_>) -> DescriptorResult {
    use DescriptorResult as R;
    match descriptor.kind() {
        DescriptorKind::Unknown if !outcome.knows_domain() => R::UnknownDomain,
        DescriptorKind::Unknown => R::UnknownDescriptor,
        DescriptorKind::Known | DescriptorKind::Unlimited | DescriptorKind::Replaced => {
            R::Unlimited
        }
        DescriptorKind::Limited if descriptor.is_denied() => R::Denied,
        DescriptorKind::Limited if descriptor.exceeds_quota() => R::QuotaExceeded,
        DescriptorKind::Limited if descriptor.exceeded().next().is_some() => R::ShadowDenied,
        DescriptorKind::Limited => R::Allowed,
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Rounded up to whole seconds, which is all that Envoy shows.
fn duration(time: Duration) -> prost_types::Duration {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    prost_types::Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}
