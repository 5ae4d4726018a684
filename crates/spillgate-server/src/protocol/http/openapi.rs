//! `GET /v1/openapi.json`: the table of routes as OpenAPI 3.1.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use bytes::Bytes;
use http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::auth;
use super::parameters::{Parameter, ParameterType};
use super::problem::{Document, PROBLEM, Problem};
use super::reply::{Reply, content};
use super::routes::{Content, Level, Operation, ROUTES, Route};

pub(super) fn run() -> Result<Reply, Problem> {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| Bytes::from(document().to_string()));
    Ok(content("application/json", text.clone()))
}

fn document() -> Value {
    let mut schemas = Schemas::new();
    let problem = schemas.of_responses.subschema_for::<Document<'_>>();
    let mut paths = Map::new();
    for route in ROUTES {
        let described = operation(route, &mut schemas);
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Spillgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Is this caller allowed to make this request right now?",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas.definitions(),
            "responses": problems(&problem),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn problems(problem: &Schema) -> Map<String, Value> {
    let statuses: BTreeSet<_> = ROUTES.iter().flat_map(Route::failures).collect();
    let statuses = statuses.into_iter().filter_map(|status| StatusCode::from_u16(status).ok());
    let problems = statuses.map(|status| {
        let mut response = json!({ "description": status.canonical_reason() });
        // A head that is too large is refused before anybody looks at it.
        if status != StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE {
            response["content"] = json!({ PROBLEM: { "schema": problem } });
        }
        if let Some((name, description)) = header(status) {
            let schema = json!({ "type": "string" });
            response["headers"] = json!({ name: { "description": description, "schema": schema } });
        }
        (status.as_u16().to_string(), response)
    });
    problems.collect()
}

/// The header that a problem of this status comes with.
fn header(status: StatusCode) -> Option<(&'static str, &'static str)> {
    match status {
        StatusCode::UNAUTHORIZED => Some(("WWW-Authenticate", "A bearer token is required")),
        StatusCode::METHOD_NOT_ALLOWED => Some(("Allow", "Methods of the path")),
        StatusCode::SERVICE_UNAVAILABLE => Some(("Retry-After", "Seconds until a retry")),
        _ => None,
    }
}

/// Schemas of bodies. An optional key of a request may be required in a response.
struct Schemas {
    of_requests: SchemaGenerator,
    of_responses: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        Self {
            of_requests: settings.clone().into_generator(),
            of_responses: settings.for_serialize().into_generator(),
        }
    }

    fn definitions(mut self) -> Map<String, Value> {
        let mut all = self.of_requests.take_definitions(true);
        all.extend(self.of_responses.take_definitions(true));
        all.values_mut().for_each(without_links);
        all
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut described = json!({
        "operationId": route.operation.name(),
        "summary": route.summary,
        "parameters": parameters(route),
        "security": security(route.level),
        "responses": responses(route, &mut schemas.of_responses),
    });
    if let Some(content) = media(&route.request, &mut schemas.of_requests) {
        let required = !matches!(route.request, Content::OptionalJson(_));
        described["requestBody"] = json!({ "required": required, "content": content });
    }
    described
}

/// What may be answered. Proxies choose themselves which status a refusal has.
fn responses(route: &Route, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let refused = |status: &str| json!({ "$ref": format!("#/components/responses/{status}") });
    let failures = route.failures().into_iter().map(|status| status.to_string());
    let mut responses: Map<_, _> = failures
        .map(|status| {
            let refused = refused(&status);
            (status, refused)
        })
        .collect();
    if route.operation == Operation::Auth {
        responses.extend(["4XX", "5XX"].map(|class| (class.to_owned(), refused("403"))));
    }
    let mut answered = response(route, generator);
    responses.insert(success(route).to_owned(), answered.clone());
    if let Some(status) = route.same_with {
        answered["description"] = json!("Not ready, and why.");
        responses.insert(status.to_string(), answered);
    }
    responses
}

fn success(route: &Route) -> &'static str {
    match (&route.response, route.level) {
        (Content::None, Level::Client | Level::Admin) => "204",
        _ => "200",
    }
}

/// On loopback most routes need no token, which is an empty requirement.
fn security(level: Level) -> Value {
    match level {
        Level::Probe | Level::Page | Level::Proxy => json!([]),
        Level::Metrics | Level::Client => json!([{}, { "token": [] }]),
        Level::Admin => json!([{ "token": [] }]),
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        let schema = match name {
            "list" => json!({ "type": "string", "enum": ["allow", "block"] }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    let in_query = route.query.iter().map(|Parameter { name, kind, description }| {
        let schema = match kind {
            ParameterType::Text => json!({ "type": "string", "minLength": 1 }),
            ParameterType::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            ParameterType::OneOf(values) => json!({ "type": "string", "enum": values }),
            ParameterType::Whole(from, to) => {
                json!({ "type": "integer", "minimum": from, "maximum": to })
            }
        };
        json!({ "name": name, "in": "query", "description": description, "schema": schema })
    });
    let in_headers = auth::described_by().filter(|_| route.operation == Operation::Auth);
    let in_headers = in_headers.map(|name| {
        let description = "Of the request, as the proxy writes it; all of one family";
        let schema = json!({ "type": "string" });
        json!({ "name": name.as_str(), "in": "header", "description": description, "schema": schema })
    });
    in_path.chain(in_query).chain(in_headers).collect()
}

fn response(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let description = "Success.";
    let Some(mut content) = media(&route.response, generator) else {
        return json!({ "description": description });
    };
    for other in route.alternatives {
        content[other] = json!({ "schema": { "type": "string" } });
    }
    json!({ "description": description, "content": content })
}

fn media(content: &Content, generator: &mut SchemaGenerator) -> Option<Value> {
    match content {
        Content::None => None,
        Content::Json(schema) | Content::OptionalJson(schema) => {
            let schema: Schema = schema(generator);
            Some(json!({ "application/json": { "schema": schema } }))
        }
        Content::Text(content_type) => {
            Some(json!({ (*content_type): { "schema": { "type": "string", "pattern": "\\S" } } }))
        }
    }
}

/// Descriptions are written for Rust as well, where words lead to other pages.
fn without_links(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(description)) = members.get_mut("description") {
                *description = plain(description);
            }
            members.values_mut().for_each(without_links);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_links),
        _ => {}
    }
}

/// A text in which `[words](place)` and `[words]` are words, without the path of a Rust name.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, (words, after))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once(']')?)))
    {
        let place = after.strip_prefix('(').and_then(|place| place.split_once(')'));
        rest = place.map_or(after, |(_, after)| after);
        let words = words.trim_matches('`');
        plain.extend([before, words.rsplit("::").next().unwrap_or(words)]);
    }
    (plain + rest).replace("`None`", "null")
}
