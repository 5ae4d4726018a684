use http::Method;
use schemars::json_schema;
use spillgate_enforce::MetricsFormat;

use super::{Level, Operation, Route, route, schema};
use crate::live::{HistoryReport, Status, TopReport};
use crate::protocol::http::parameters::{Parameter, ParameterType};
use crate::protocol::http::terms::{self, COMMENT, EXPIRES, TTL};
use crate::protocol::http::{
    auth, bans, check, events, explain, limits, lists, live, overrides, page, pages, permits,
    policy, reply, reports, reserve,
};

const PART: Parameter = Parameter {
    name: "part",
    kind: ParameterType::Texts,
    description: "Further parts of the key, in order, if the limit is counted per several",
};
const COST: Parameter = Parameter {
    name: "cost",
    kind: ParameterType::Whole(0, u64::MAX),
    description: "Cost of the check; 1 if absent",
};
pub(in crate::protocol::http) const DENY: Parameter = Parameter {
    name: "deny",
    kind: ParameterType::Whole(400, 499),
    description: "Status of refusals, for proxies that accept few",
};

/// The most frequent first.
pub(in crate::protocol::http) static ROUTES: &[Route] = &[
    route(Method::POST, "/v1/check", Operation::Check, Level::Client)
        .says("Decides a check, and spends its cost if it is allowed.")
        .takes(schema::<check::CheckBody<'static>>)
        .gives(schema::<check::CheckResponse<'static>>)
        .fails(&[404, 503]),
    route(Method::GET, auth::PATH, Operation::Auth, Level::Proxy)
        .says("Decides the request that a proxy describes in headers.")
        .asks(&[DENY])
        .fails(&[403, 429, 503]),
    route(Method::POST, "/v1/reserve", Operation::Reserve, Level::Client)
        .says("Spends an estimate, to be settled when the cost is known.")
        .takes(schema::<reserve::ReserveBody<'static>>)
        .gives(schema::<reserve::Reserved<'static>>)
        .fails(&[404, 503]),
    route(Method::POST, "/v1/settle", Operation::Settle, Level::Client)
        .says("Replaces a reservation by the actual cost, once.")
        .takes(schema::<reserve::SettleBody<'static>>)
        .gives(schema::<reserve::Settled<'static>>)
        .fails(&[404, 409, 503]),
    route(Method::POST, "/v1/permits", Operation::Acquire, Level::Client)
        .says("Acquires permits of a concurrency limit, to be released or renewed in time.")
        .takes(schema::<permits::AcquireBody<'static>>)
        .gives(schema::<permits::AcquiredPermit<'static>>)
        .fails(&[404, 422, 503]),
    route(Method::POST, "/v1/permits/{permit}/renew", Operation::Renew, Level::Client)
        .says("Extends the time in which a permit expires.")
        .takes(schema::<permits::RenewBody>)
        .gives(schema::<permits::Renewed>)
        .fails(&[404, 422, 503]),
    route(Method::DELETE, "/v1/permits/{permit}", Operation::Release, Level::Client)
        .says("Releases a permit, once.")
        .asks(&[reports::ENDING])
        .fails(&[404, 503]),
    route(Method::POST, "/v1/strikes", Operation::Strike, Level::Client)
        .says("Reports an offence under a limit that bans.")
        .takes(schema::<bans::StrikeBody<'static>>)
        .gives(schema::<bans::Struck>)
        .fails(&[404, 503]),
    route(Method::POST, "/v1/reports", Operation::Report, Level::Client)
        .says("Reports how calls ended, to adaptive limits.")
        .takes(schema::<reports::ReportsBody<'static>>)
        .fails(&[404]),
    route(Method::GET, "/v1/limits", Operation::Limits, Level::Admin)
        .says("Lists the limits of the policy and their state.")
        .gives(schema::<limits::LimitList>),
    route(Method::GET, "/v1/limits/{limit}/keys/{key}", Operation::Peek, Level::Admin)
        .says("Returns what a check would decide, without spending.")
        .asks(&[PART, COST])
        .gives(schema::<check::CheckResult<'static>>)
        .fails(&[404, 503]),
    route(Method::DELETE, "/v1/limits/{limit}/keys/{key}", Operation::Reset, Level::Admin)
        .says("Resets the state of a caller.")
        .asks(&[PART])
        .fails(&[404, 503]),
    route(Method::PUT, "/v1/limits/{limit}/keys/{key}/override", Operation::SetOverride, Level::Admin)
        .says("Sets a caller's own quota. What it has spent stays spent.")
        .asks(&[PART])
        .takes(schema::<overrides::OverrideBody<'static>>)
        .fails(&[404, 422, 503]),
    route(Method::DELETE, "/v1/limits/{limit}/keys/{key}/override", Operation::RemoveOverride, Level::Admin)
        .says("Removes a caller's own quota that was set at run time.")
        .asks(&[PART])
        .fails(&[404, 422, 503]),
    route(Method::GET, "/v1/overrides", Operation::Overrides, Level::Admin)
        .says("Lists the callers that have their own quota.")
        .gives(schema::<overrides::OverrideList>),
    route(Method::GET, "/v1/limits/{limit}/overrides", Operation::LimitOverrides, Level::Admin)
        .says("Lists the callers that have their own quota under a limit.")
        .gives(schema::<overrides::OverrideList>)
        .fails(&[404]),
    route(Method::GET, "/v1/policy", Operation::Policy, Level::Admin)
        .says("Returns the policy in force.")
        .gives_text(policy::TOML),
    route(Method::PUT, "/v1/policy", Operation::ReplacePolicy, Level::Admin)
        .says("Replaces the policy, if the new one is valid.")
        .takes_text(policy::TOML)
        .gives(schema::<spillgate_policy::Changes>)
        .fails(&[422]),
    route(Method::GET, "/v1/lists/{list}", Operation::List, Level::Admin)
        .says("Lists the entries of the list allow or block.")
        .gives(schema::<lists::ListEntries>)
        .fails(&[404]),
    route(Method::GET, "/v1/lists/{list}/{entry}", Operation::ListEntry, Level::Admin)
        .says("Returns one entry of a list.")
        .gives(schema::<lists::ShownEntry>)
        .fails(&[404, 422]),
    route(Method::PUT, "/v1/lists/{list}/{entry}", Operation::AddToList, Level::Admin)
        .says("Adds an entry to a list, or replaces its expiry and comment.")
        .asks(&[TTL, EXPIRES, COMMENT])
        .may_take(schema::<terms::TermsBody<'static>>)
        .gives(schema::<lists::Edited>)
        .fails(&[404, 422, 503]),
    route(Method::DELETE, "/v1/lists/{list}/{entry}", Operation::RemoveFromList, Level::Admin)
        .says("Removes an entry from a list.")
        .gives(schema::<lists::Edited>)
        .fails(&[404, 422]),
    route(Method::GET, "/v1/bans", Operation::Bans, Level::Admin)
        .says("Lists the bans in force, by their end.")
        .gives(schema::<bans::BanList>),
    route(Method::GET, "/v1/bans/{caller}", Operation::ShowBan, Level::Admin)
        .says("Returns the ban of a caller.")
        .gives(schema::<bans::BanEntry>)
        .fails(&[404, 422]),
    route(Method::PUT, "/v1/bans/{caller}", Operation::SetBan, Level::Admin)
        .says("Bans a caller, or changes when its ban ends.")
        .takes(schema::<bans::BanBody<'static>>)
        .gives(schema::<bans::BanEntry>)
        .fails(&[422, 503]),
    route(Method::DELETE, "/v1/bans/{caller}", Operation::LiftBan, Level::Admin)
        .says("Lifts the ban of a caller, and forgets its strikes.")
        .fails(&[404, 422, 503]),
    route(Method::POST, "/v1/explain", Operation::Explain, Level::Admin)
        .says("Explains how a request or the descriptors of a call would be decided, without spending. As text if that is accepted.")
        .takes(schema::<explain::ExplainBody<'static>>)
        .gives(schema::<explain::Explained>)
        .or_gives(&[reply::TEXT])
        .fails(&[422, 503]),
    route(Method::GET, "/v1/status", Operation::Status, Level::Client)
        .says("Returns how the server is doing: rates, limits, callers that are denied most, upstreams. As server-sent events, once per second, if they are accepted.")
        .asks(&[live::REVEAL])
        .gives(schema::<Status>)
        .or_gives(&[events::EVENT_STREAM])
        .fails(&[503]),
    route(Method::GET, "/v1/history", Operation::History, Level::Client)
        .says("Returns counts of requests during the last minutes.")
        .asks(&[live::MINUTES])
        .gives(schema::<HistoryReport>),
    route(Method::GET, "/v1/top", Operation::Top, Level::Client)
        .says("Lists who was denied and allowed most in the last 5 to 10 minutes, per limit.")
        .asks(&[live::LIMIT, live::COUNT, live::REVEAL])
        .gives(schema::<TopReport>)
        .fails(&[404]),
    route(Method::GET, "/v1/openapi.json", Operation::OpenApi, Level::Client)
        .says("Returns this document.")
        .gives(|_| json_schema!({ "type": "object" })),
    route(Method::GET, "/metrics", Operation::Metrics, Level::Metrics)
        .says("Returns metrics for Prometheus.")
        .gives_text(MetricsFormat::Text.content_type())
        .or_gives(&[MetricsFormat::OpenMetrics.content_type()]),
    route(Method::GET, "/healthz", Operation::Health, Level::Probe)
        .says("Liveness probe.")
        .gives_text(reply::TEXT),
    route(Method::GET, "/readyz", Operation::Ready, Level::Probe)
        .says("Readiness probe: 503 during startup and shutdown.")
        .gives(schema::<pages::Ready>)
        .gives_same_with(503),
    route(Method::GET, "/", Operation::Home, Level::Page)
        .says("Returns the live page to a browser, and an overview to others, who need the token elsewhere than on loopback.")
        .gives_text(reply::TEXT)
        .or_gives(&[page::HTML])
        .fails(&[401]),
    route(Method::GET, "/assets/{file}", Operation::PageFile, Level::Page)
        .says("Returns a file of the live page.")
        .gives_text(page::SCRIPT)
        .or_gives(&[page::HTML, page::STYLE, page::SVG])
        .fails(&[404]),
];
