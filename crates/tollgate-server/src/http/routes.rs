//! The table of routes: the router follows it, and the OpenAPI document is made from it.

use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::problem::Problem;
use super::{check, explain, keys, limits, lists, pages, policy, reserve};

/// A method and a path, and what is done there.
pub(super) struct Route {
    pub(super) method: Method,
    /// Segments in braces stand for any.
    pub(super) path: &'static str,
    pub(super) operation: Operation,
    pub(super) level: Level,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Parameter],
    pub(super) request: Content,
    pub(super) response: Content,
}

/// A parameter in the query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) is_list: bool,
    pub(super) description: &'static str,
}

/// What a body is.
pub(super) enum Content {
    None,
    Json(fn(&mut SchemaGenerator) -> Schema),
    Text(&'static str),
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Anyone.
    Probe,
    /// Anyone on loopback, or if metrics are open.
    Metrics,
    /// Anyone on loopback.
    Client,
    /// Proxies, which are told by their address: the headers are their clients'.
    Proxy,
    /// Whoever has the token.
    Admin,
}

/// A route that was found, with the segments that stand in braces, as they were sent.
pub(super) struct Found<'p> {
    pub(super) route: &'static Route,
    pub(super) segments: [&'p str; 2],
}

macro_rules! operations {
    ($($operation:ident $name:literal,)*) => {
        /// What is done at a route.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Operation {
            $($operation,)*
        }

        impl Operation {
            pub(super) const ALL: &[Self] = &[$(Self::$operation,)*];

            /// The name in metrics and in the OpenAPI document.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)*
                }
            }
        }
    };
}

operations! {
    Check "check",
    Reserve "reserve",
    Settle "settle",
    Auth "auth",
    Limits "limits",
    Peek "peek",
    Reset "reset",
    SetOverride "set-override",
    RemoveOverride "remove-override",
    Policy "policy",
    ReplacePolicy "replace-policy",
    List "list",
    AddToList "add-to-list",
    RemoveFromList "remove-from-list",
    Explain "explain",
    OpenApi "openapi",
    Metrics "metrics",
    Health "health",
    Ready "ready",
    Home "home",
}

const PART: Parameter = Parameter {
    name: "part",
    is_list: true,
    description: "The further parts of a key, in their order, if the limit is counted per several",
};
const COST: Parameter =
    Parameter { name: "cost", is_list: false, description: "What a call would cost; 1 if absent" };
const DENY: Parameter = Parameter {
    name: "deny",
    is_list: false,
    description: "The status of a refusal in place of 429 and 403, from 400 to 599",
};

/// Whatever is asked most comes first.
pub(super) static ROUTES: &[Route] = &[
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

const fn route(method: Method, path: &'static str, operation: Operation, level: Level) -> Route {
    let (query, request, response) = (&[], Content::None, Content::None);
    Route { method, path, operation, level, summary: "", query, request, response }
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Route {
    const fn says(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    const fn asks(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    const fn takes(mut self, schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        self.request = Content::Json(schema);
        self
    }

    const fn takes_text(mut self, content_type: &'static str) -> Self {
        self.request = Content::Text(content_type);
        self
    }

    const fn gives(mut self, schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        self.response = Content::Json(schema);
        self
    }

    const fn gives_text(mut self, content_type: &'static str) -> Self {
        self.response = Content::Text(content_type);
        self
    }

    /// The segments in braces, if the path is one of this route.
    fn matches<'p>(&self, path: &'p str) -> Option<[&'p str; 2]> {
        if self.path == path {
            return Some([""; 2]);
        }
        let mut segments = [""; 2];
        let mut places = segments.iter_mut();
        let mut given = path.split('/');
        for wanted in self.path.split('/') {
            let given = given.next()?;
            if wanted.starts_with('{') && !given.is_empty() {
                *places.next()? = given;
            } else if wanted != given {
                return None;
            }
        }
        given.next().is_none().then_some(segments)
    }
}

/// Finds the route of a request. `HEAD` is a `GET` without the body.
pub(super) fn find<'p>(method: &Method, path: &'p str) -> Result<Found<'p>, Problem> {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let mut others = String::new();
    for route in ROUTES {
        let Some(segments) = route.matches(path) else { continue };
        if route.method == *method {
            return Ok(Found { route, segments });
        }
        let comma = if others.is_empty() { "" } else { ", " };
        others.extend([comma, route.method.as_str()]);
    }
    if others.is_empty() {
        return Err(Problem::not_found(
            "there is nothing at this path; /v1/openapi.json tells what there is",
        ));
    }
    let detail = format!("{method} is not for this path; use {others}");
    Err(Problem::method_not_allowed(detail, &others))
}
