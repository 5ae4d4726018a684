//! The table of routes, for the router and the OpenAPI document.

mod table;

use std::collections::BTreeSet;

use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

pub(super) use self::table::{DENY, ROUTES};
use super::parameters::{Parameter, Query, query};
use super::problem::Problem;

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
    /// Other types that the response has if they are asked for.
    pub(super) alternatives: &'static [&'static str],
    /// Another status with the same response.
    pub(super) same_with: Option<u16>,
    /// Statuses of errors, besides those of all such routes.
    failures: &'static [u16],
    /// Probes may add parameters that the route does not know.
    ignores_query: bool,
}

pub(super) enum Content {
    None,
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// There need not be any.
    OptionalJson(fn(&mut SchemaGenerator) -> Schema),
    Text(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Probe,
    /// Anyone: what a browser loads before its user can enter the token.
    Page,
    /// Anyone on loopback, or if metrics are open.
    Metrics,
    Client,
    /// Proxies, by address: the headers are their clients'.
    Proxy,
    /// With the token.
    Admin,
}

/// A route that was found, with the segments that stand in braces, as they were sent.
#[derive(Clone, Copy)]
pub(super) struct Found<'p> {
    pub(super) route: &'static Route,
    pub(super) segments: [&'p str; 2],
}

macro_rules! operations {
    ($($operation:ident $name:literal,)*) => {
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
    Acquire "acquire",
    Renew "renew",
    Release "release",
    Strike "strike",
    Report "report",
    Auth "auth",
    Limits "limits",
    Peek "peek",
    Reset "reset",
    SetOverride "set-override",
    RemoveOverride "remove-override",
    Overrides "overrides",
    LimitOverrides "limit-overrides",
    Policy "policy",
    ReplacePolicy "replace-policy",
    List "list",
    ListEntry "list-entry",
    AddToList "add-to-list",
    RemoveFromList "remove-from-list",
    Bans "bans",
    ShowBan "show-ban",
    SetBan "set-ban",
    LiftBan "lift-ban",
    Explain "explain",
    Status "status",
    History "history",
    Top "top",
    OpenApi "openapi",
    Metrics "metrics",
    Health "health",
    Ready "ready",
    Home "home",
    PageFile "page-file",
}

const fn route(method: Method, path: &'static str, operation: Operation, level: Level) -> Route {
    let (query, request, response) = (&[], Content::None, Content::None);
    let ignores_query = matches!(level, Level::Probe | Level::Metrics);
    Route {
        method,
        path,
        operation,
        level,
        summary: "",
        query,
        request,
        response,
        alternatives: &[],
        same_with: None,
        failures: &[],
        ignores_query,
    }
}

impl Operation {
    /// True if an operator changes something by it.
    pub(super) fn is_change(self) -> bool {
        use Operation as O;
        matches!(
            self,
            O::Reset
                | O::SetOverride
                | O::RemoveOverride
                | O::ReplacePolicy
                | O::AddToList
                | O::RemoveFromList
                | O::SetBan
                | O::LiftBan
        )
    }
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

    const fn may_take(mut self, schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        self.request = Content::OptionalJson(schema);
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

    const fn or_gives(mut self, content_types: &'static [&'static str]) -> Self {
        self.alternatives = content_types;
        self
    }

    const fn gives_same_with(mut self, status: u16) -> Self {
        self.same_with = Some(status);
        self
    }

    const fn fails(mut self, statuses: &'static [u16]) -> Self {
        self.failures = statuses;
        self
    }

    /// All statuses of errors.
    pub(super) fn failures(&self) -> BTreeSet<u16> {
        let heads: &[u16] = &[400, 403, 405, 408, 421, 431];
        let token: &[u16] = match self.level {
            Level::Probe | Level::Page | Level::Proxy => &[],
            Level::Metrics | Level::Client | Level::Admin => &[401],
        };
        let bodies: &[u16] = match self.request {
            Content::None => &[],
            Content::Json(_) | Content::OptionalJson(_) | Content::Text(_) => &[413, 415],
        };
        [heads, token, bodies, self.failures].concat().into_iter().collect()
    }

    pub(super) fn query(&self, text: Option<&str>) -> Result<Query, Problem> {
        if self.ignores_query { Ok(Query::default()) } else { query(self.query, text) }
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
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    let mut others = String::new();
    for route in ROUTES {
        let Some(segments) = route.matches(path) else { continue };
        if route.method == *wanted {
            return Ok(Found { route, segments });
        }
        let comma = if others.is_empty() { "" } else { ", " };
        let head = if route.method == Method::GET { ", HEAD" } else { "" };
        others.extend([comma, route.method.as_str(), head]);
    }
    if others.is_empty() {
        return Err(Problem::not_found(
            "there is nothing at this path; /v1/openapi.json tells what there is",
        ));
    }
    let detail = format!("{method} is not for this path; use {others}");
    Err(Problem::method_not_allowed(detail, &others))
}
