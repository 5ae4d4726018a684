//! `GET /v1/openapi.json`: the table of routes as OpenAPI 3.1, whose schemas are JSON
//! Schema.

use std::sync::OnceLock;

use bytes::Bytes;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::parameters::Parameter;
use super::problem::{Document, Problem};
use super::reply::{Reply, content};
use super::routes::{Content, Level, ROUTES, Route};

pub(super) fn run() -> Result<Reply, Problem> {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| Bytes::from(document().to_string()));
    Ok(content("application/json", text.clone()))
}

/// The document.
fn document() -> Value {
    let mut schemas = Schemas::new();
    let problem = schemas.of_responses.subschema_for::<Document<'_>>();
    let mut paths = Map::new();
    for route in ROUTES {
        let described = operation(route, &mut schemas, &problem);
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "May this caller do this, now?",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas.definitions(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// What bodies look like. What may be absent from a request may always be there in a
/// response.
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
        all
    }
}

fn operation(route: &Route, schemas: &mut Schemas, problem: &Schema) -> Value {
    let mut described = json!({
        "operationId": route.operation.name(),
        "summary": route.summary,
        "parameters": parameters(route),
        "security": security(route.level),
        "responses": {
            (success(route)): response("As asked.", &route.response, &mut schemas.of_responses),
            "default": {
                "description": "Why it was not done.",
                "content": {
                    "application/problem+json": { "schema": problem },
                },
            },
        },
    });
    if let Some(content) = media(&route.request, &mut schemas.of_requests) {
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    described
}

/// The status if all goes well.
fn success(route: &Route) -> &'static str {
    match (&route.response, route.level) {
        (Content::None, Level::Admin) => "204",
        _ => "200",
    }
}

/// On loopback most routes need no token, which is an empty requirement.
fn security(level: Level) -> Value {
    match level {
        Level::Probe | Level::Proxy => json!([]),
        Level::Metrics | Level::Client => json!([{}, { "token": [] }]),
        Level::Admin => json!([{ "token": [] }]),
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some(json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string" },
        }))
    });
    let in_query = route.query.iter().map(|Parameter { name, is_list, description }| {
        let schema = match is_list {
            true => json!({ "type": "array", "items": { "type": "string" } }),
            false => json!({ "type": "integer", "minimum": 0 }),
        };
        json!({ "name": name, "in": "query", "description": description, "schema": schema })
    });
    in_path.chain(in_query).collect()
}

fn response(description: &str, content: &Content, generator: &mut SchemaGenerator) -> Value {
    match media(content, generator) {
        Some(content) => json!({ "description": description, "content": content }),
        None => json!({ "description": description }),
    }
}

/// What a body is, by its type.
fn media(content: &Content, generator: &mut SchemaGenerator) -> Option<Value> {
    match content {
        Content::None => None,
        Content::Json(schema) => {
            let schema: Schema = schema(generator);
            Some(json!({ "application/json": { "schema": schema } }))
        }
        Content::Text(content_type) => {
            Some(json!({ (*content_type): { "schema": { "type": "string" } } }))
        }
    }
}
