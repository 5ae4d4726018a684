use http::Method;
use schemars::json_schema;
use spillgate_enforce::MetricsFormat;

use super::{Level, Operation, Route, route, schema};
use crate::protocol::http::parameters::{Parameter, ParameterType};
use crate::protocol::http::{auth, check, explain, limits, lists, pages, policy, reply, reserve};

const PART: Parameter = Parameter {
    name: "part",
    kind: ParameterType::Texts,
    description: "The further parts of a key, in their order, if the limit is counted per several",
};
const COST: Parameter = Parameter {
    name: "cost",
    kind: ParameterType::Whole(0, u64::MAX),
    description: "What a call would cost; 1 if absent",
};
pub(in crate::protocol::http) const DENY: Parameter = Parameter {
    name: "deny",
    kind: ParameterType::Whole(400, 499),
    description: "The status of everything but a 200, for proxies that know few",
};

/// Whatever is asked most comes first.
pub(in crate::protocol::http) static ROUTES: &[Route] = &[
    route(Method::POST, "/v1/check", Operation::Check, Level::Client)
        .says("May this happen now? Spends if it may.")
        .takes(schema::<check::CheckBody<'static>>)
        .gives(schema::<check::CheckResponse<'static>>)
        .fails(&[404, 503]),
    route(Method::GET, auth::PATH, Operation::Auth, Level::Proxy)
        .says("May the request pass that a proxy describes in headers?")
        .asks(&[DENY])
        .fails(&[403, 429, 503]),
    route(Method::POST, "/v1/reserve", Operation::Reserve, Level::Client)
        .says("Spends an estimate, to be settled when the cost is known.")
        .takes(schema::<reserve::ReserveBody<'static>>)
        .gives(schema::<reserve::Reserved<'static>>)
        .fails(&[404, 503]),
    route(Method::POST, "/v1/settle", Operation::Settle, Level::Client)
        .says("Replaces what was reserved by the actual cost, once.")
        .takes(schema::<reserve::SettleBody<'static>>)
        .gives(schema::<reserve::Settled<'static>>)
        .fails(&[404, 409, 503]),
    route(Method::GET, "/v1/limits", Operation::Limits, Level::Admin)
        .says("Every limit of the policy, and how it is doing.")
        .gives(schema::<limits::LimitList>),
    route(Method::GET, "/v1/limits/{limit}/keys/{key}", Operation::Peek, Level::Admin)
        .says("What a call would be answered, without spending.")
        .asks(&[PART, COST])
        .gives(schema::<check::CheckResult<'static>>)
        .fails(&[404, 503]),
    route(Method::DELETE, "/v1/limits/{limit}/keys/{key}", Operation::Reset, Level::Admin)
        .says("Makes a caller as if the limit had never seen it.")
        .asks(&[PART])
        .fails(&[404, 503]),
    route(Method::PUT, "/v1/limits/{limit}/keys/{key}/override", Operation::SetOverride, Level::Admin)
        .says("Gives a caller a quota of its own. What it has spent stays spent.")
        .asks(&[PART])
        .takes(schema::<limits::OverrideBody<'static>>)
        .fails(&[404, 422, 503]),
    route(Method::DELETE, "/v1/limits/{limit}/keys/{key}/override", Operation::RemoveOverride, Level::Admin)
        .says("Takes a caller's own quota away.")
        .asks(&[PART])
        .fails(&[404, 503]),
    route(Method::GET, "/v1/policy", Operation::Policy, Level::Admin)
        .says("The text of the policy in force.")
        .gives_text(policy::TOML),
    route(Method::PUT, "/v1/policy", Operation::ReplacePolicy, Level::Admin)
        .says("Puts another policy in force, if nothing is wrong with it.")
        .takes_text(policy::TOML)
        .gives(schema::<policy::Replaced>)
        .fails(&[422]),
    route(Method::GET, "/v1/lists/{list}", Operation::List, Level::Admin)
        .says("The entries of the list allow or block.")
        .gives(schema::<lists::ListEntries>)
        .fails(&[404]),
    route(Method::PUT, "/v1/lists/{list}/{entry}", Operation::AddToList, Level::Admin)
        .says("Puts an entry on a list.")
        .gives(schema::<lists::Edited>)
        .fails(&[404, 422]),
    route(Method::DELETE, "/v1/lists/{list}/{entry}", Operation::RemoveFromList, Level::Admin)
        .says("Takes an entry off a list.")
        .gives(schema::<lists::Edited>)
        .fails(&[404, 422]),
    route(Method::POST, "/v1/explain", Operation::Explain, Level::Admin)
        .says("Why a request would be decided as it would, without spending. As text if that is accepted.")
        .takes(schema::<explain::ExplainBody<'static>>)
        .gives(schema::<spillgate_policy::Explanation>)
        .or_gives(&[reply::TEXT])
        .fails(&[503]),
    route(Method::GET, "/v1/openapi.json", Operation::OpenApi, Level::Client)
        .says("This document.")
        .gives(|_| json_schema!({ "type": "object" })),
    route(Method::GET, "/metrics", Operation::Metrics, Level::Metrics)
        .says("What is counted, for Prometheus.")
        .gives_text(MetricsFormat::Text.content_type())
        .or_gives(&[MetricsFormat::OpenMetrics.content_type()]),
    route(Method::GET, "/healthz", Operation::Health, Level::Probe)
        .says("The process lives.")
        .gives_text(reply::TEXT),
    route(Method::GET, "/readyz", Operation::Ready, Level::Probe)
        .says("The server is ready: 503 if it is starting or about to end.")
        .gives(schema::<pages::Ready>)
        .gives_same_with(503),
    route(Method::GET, "/", Operation::Home, Level::Client)
        .says("What this is, and where things are.")
        .gives_text(reply::TEXT),
];
