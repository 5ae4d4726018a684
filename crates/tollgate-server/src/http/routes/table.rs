use http::Method;

use super::{Level, Operation, Route, route, schema};
use crate::http::parameters::Parameter;
use crate::http::{check, explain, keys, limits, lists, pages, policy, reserve};

const PART: Parameter = Parameter {
    name: "part",
    is_list: true,
    description: "The further parts of a key, in their order, if the limit is counted per several",
};
const COST: Parameter =
    Parameter { name: "cost", is_list: false, description: "What a call would cost; 1 if absent" };
pub(in crate::http) const DENY: Parameter = Parameter {
    name: "deny",
    is_list: false,
    description: "The status of a refusal in place of 429 and 403, from 400 to 599",
};

/// Whatever is asked most comes first.
pub(in crate::http) static ROUTES: &[Route] = &[
    route(Method::POST, "/v1/check", Operation::Check, Level::Client)
        .says("May this happen now? Spends if it may.")
        .takes(schema::<check::CheckBody<'static>>)
        .gives(schema::<check::CheckAnswer<'static>>),
    route(Method::GET, "/auth", Operation::Auth, Level::Proxy)
        .says("May the request pass that a proxy describes in headers?")
        .asks(&[DENY]),
    route(Method::POST, "/v1/reserve", Operation::Reserve, Level::Client)
        .says("Spends an estimate, to be settled when the cost is known.")
        .takes(schema::<reserve::ReserveBody<'static>>)
        .gives(schema::<reserve::Reserved<'static>>),
    route(Method::POST, "/v1/settle", Operation::Settle, Level::Client)
        .says("Replaces what was reserved by the actual cost, once.")
        .takes(schema::<reserve::SettleBody<'static>>)
        .gives(schema::<reserve::Settled<'static>>),
    route(Method::GET, "/v1/limits", Operation::Limits, Level::Admin)
        .says("Every limit of the policy, and how it is doing.")
        .gives(schema::<limits::Limits>),
    route(Method::GET, "/v1/limits/{limit}/keys/{key}", Operation::Peek, Level::Admin)
        .says("What a call would be answered, without spending.")
        .asks(&[PART, COST])
        .gives(schema::<check::Answer<'static>>),
    route(Method::DELETE, "/v1/limits/{limit}/keys/{key}", Operation::Reset, Level::Admin)
        .says("Makes a caller as if the limit had never seen it.")
        .asks(&[PART]),
    route(Method::PUT, "/v1/limits/{limit}/keys/{key}/override", Operation::SetOverride, Level::Admin)
        .says("Gives a caller a quota of its own. What it has spent stays spent.")
        .asks(&[PART])
        .takes(schema::<keys::OverrideBody>),
    route(Method::DELETE, "/v1/limits/{limit}/keys/{key}/override", Operation::RemoveOverride, Level::Admin)
        .says("Takes a caller's own quota away.")
        .asks(&[PART]),
    route(Method::GET, "/v1/policy", Operation::Policy, Level::Admin)
        .says("The text of the policy in force.")
        .gives_text(policy::TOML),
    route(Method::PUT, "/v1/policy", Operation::ReplacePolicy, Level::Admin)
        .says("Puts another policy in force, if nothing is wrong with it.")
        .takes_text(policy::TOML)
        .gives(schema::<policy::Replaced>),
    route(Method::GET, "/v1/lists/{list}", Operation::List, Level::Admin)
        .says("The entries of the list allow or block.")
        .gives(schema::<lists::Entries>),
    route(Method::PUT, "/v1/lists/{list}/{entry}", Operation::AddToList, Level::Admin)
        .says("Puts an entry on a list.")
        .gives(schema::<lists::Edited>),
    route(Method::DELETE, "/v1/lists/{list}/{entry}", Operation::RemoveFromList, Level::Admin)
        .says("Takes an entry off a list.")
        .gives(schema::<lists::Edited>),
    route(Method::POST, "/v1/explain", Operation::Explain, Level::Admin)
        .says("Why a request would be decided as it would, without spending. As text if that is accepted.")
        .takes(schema::<explain::ExplainBody<'static>>)
        .gives(schema::<tollgate_policy::Explanation>),
    route(Method::GET, "/v1/openapi.json", Operation::OpenApi, Level::Client)
        .says("This document.")
        .gives_text("application/json"),
    route(Method::GET, "/metrics", Operation::Metrics, Level::Metrics)
        .says("What is counted, for Prometheus.")
        .gives_text(tollgate_tower::Metrics::CONTENT_TYPE),
    route(Method::GET, "/healthz", Operation::Health, Level::Probe)
        .says("The process lives.")
        .gives_text("text/plain"),
    route(Method::GET, "/readyz", Operation::Ready, Level::Probe)
        .says("The server is ready: 503 if it is starting or about to end.")
        .gives(schema::<pages::Ready>),
    route(Method::GET, "/", Operation::Home, Level::Client)
        .says("What this is, and where things are.")
        .gives_text("text/plain"),
];
