use std::collections::HashSet;

use serde_json::Value;

use spillgate_policy::ListKind;

use super::client::{Reply, ask, raw};
use super::server::{Server, TOKEN};

async fn document() -> Value {
    let server = Server::start().await;
    ask(&server, "GET /v1/openapi.json").send().await.json()
}

/// Every reference of a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.push(reference.clone());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
        _ => {}
    }
}

/// Names in alphabetical order.
fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn the_document_is_openapi_whose_references_lead_somewhere() {
    let document = document().await;
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."), "{document}");
    assert!(is_text(&document["info"]["title"]) && is_text(&document["info"]["version"]));
    let there = |value| match Value::get(value, "$ref") {
        Some(reference) => document.pointer(&reference.as_str().unwrap()[1..]).unwrap(),
        None => value,
    };
    let mut operations = HashSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        assert!(path.starts_with('/'), "{path}");
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{method} {path}: {operation}");
            assert!(["get", "put", "post", "delete"].contains(&method.as_str()), "{place}");
            assert!(is_text(&operation["operationId"]), "{place}");
            assert!(operations.insert(&operation["operationId"]), "{place} is there twice");
            let parameters = operation["parameters"].as_array().unwrap();
            let parameters: Vec<_> = parameters.iter().map(there).collect();
            for parameter in &parameters {
                let is_in = parameter["in"].as_str().unwrap();
                assert!(["path", "query", "header"].contains(&is_in), "{place}");
                assert!(is_text(&parameter["name"]), "{place}");
                assert!(parameter["schema"].is_object(), "{place}");
                assert!(is_in != "path" || parameter["required"] == true, "{place}");
            }
            let of_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
            let named = sorted(of_path.map(|parameter| parameter["name"].as_str().unwrap()));
            let braces = path.split('{').skip(1).map(|rest| rest.split_once('}').unwrap().0);
            assert_eq!(sorted(braces), named, "{place}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(!responses.is_empty(), "{place}");
            for (status, response) in responses {
                let class = status.strip_suffix("XX").unwrap_or(&status[..1]);
                assert!(status.len() == 3 && "12345".contains(class), "{place}");
                assert!(is_text(&there(response)["description"]), "{status} of {place}");
            }
            let responses = responses.values().map(there);
            let bodies = operation.get("requestBody").map(there).into_iter().chain(responses);
            for media in bodies.filter_map(|body| body["content"].as_object()) {
                assert!(!media.is_empty(), "{place}");
                for (kind, media) in media {
                    assert!(kind.contains('/') && media["schema"].is_object(), "{kind}, {place}");
                }
            }
        }
    }
    assert_eq!(operations.len(), 36);
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let place = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn every_route_is_described_and_every_described_route_is_there() {
    let server = Server::start().await;
    let document = document().await;
    let mut routes = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            routes += 1;
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{method} {path}");
            let path =
                path.replace("{limit}", "api").replace("{list}", "block").replace(['{', '}'], "");
            let line = format!("{} {path}", method.to_uppercase());
            let reply = ask(&server, &line).send().await;
            // Known, whatever else may be missing.
            let is_missing = reply.body.contains("there is nothing at this path");
            assert!(!is_missing && reply.status != 405, "{line}: {reply:?}");
        }
    }
    assert_eq!(routes, 36);
}

#[tokio::test]
async fn answers_are_as_the_document_says() {
    let server = Server::start().await;
    let document = document().await;
    let schema = &document["components"]["schemas"]["Decision"];
    let body = r#"{"request":{"path":"/","ip":"192.0.2.1"}}"#;
    let answer = ask(&server, "POST /v1/check").json(body).send().await.json();
    let known = schema["properties"].as_object().unwrap();
    let answer = answer.as_object().unwrap();
    assert!(answer.keys().all(|key| known.contains_key(key)), "{answer:?}");
    let required = schema["required"].as_array().unwrap();
    assert!(required.iter().all(|key| answer.contains_key(key.as_str().unwrap())), "{required:?}");
    assert!(required.len() >= 7, "{required:?}");
}

/// The lines of all routes, and what the document says of them.
fn routes(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, methods)| {
        let path = path.replace("{limit}", "api").replace("{list}", "block");
        let path = path.replace("{key}", "user:1").replace("{entry}", "192.0.2.1");
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, route)| (format!("{} {path}", method.to_uppercase()), route))
    });
    routes.collect()
}

#[tokio::test]
async fn parameters_and_bodies_that_a_route_does_not_take_are_refused() {
    let server = Server::start().await;
    let document = document().await;
    for (line, route) in routes(&document) {
        let is_probe = line.ends_with("z") || line.ends_with("/metrics");
        for query in ["tll=3600", "x", "%63ots=1", "cost", "&&x=y"] {
            let takes_cost = route["operationId"] == "peek" && query == "cost";
            let asked = ask(&server, &format!("{line}?{query}")).token();
            let asked = match &route["requestBody"]["content"] {
                Value::Null => asked,
                content if content.get("application/json").is_some() => asked.json("{}"),
                _ => asked.body("application/toml", "x"),
            };
            let reply = asked.send().await;
            if is_probe {
                assert_eq!(reply.status, 200, "{line}?{query}");
            } else {
                assert_eq!(reply.status, 400, "{line}?{query}: {reply:?}");
                let says = if takes_cost { "invalid cost" } else { "unknown query parameter" };
                assert!(reply.detail().contains(says), "{line}?{query}: {reply:?}");
            }
        }
        if route["requestBody"].is_null() {
            let reply = ask(&server, &line).token().json("{\"ttl\":3600}").send().await;
            assert_eq!(reply.status, 400, "{line}: {reply:?}");
            assert!(reply.detail().contains("no body"), "{line}: {reply:?}");
            let chunked = format!(
                "{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
                 transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            );
            let chunked = Reply::parse(&raw(&server, chunked.as_bytes()).await);
            assert!(chunked.detail().contains("no body"), "{line}: {chunked:?}");
            assert!(server.app.gate().listed(ListKind::Block).is_empty());
            let empty = ask(&server, &line).token().header("content-length", "0").send().await;
            let is_auth = line == "GET /auth";
            assert_eq!(empty.status == 400, is_auth, "{line}: {empty:?}");
            let _ = server.app.gate().unlist(ListKind::Block, "192.0.2.1").await;
        }
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let server = Server::start().await;
    let document = document().await;
    let routes = routes(&document);
    let lines = routes.iter().filter_map(|(line, _)| line.strip_prefix("GET "));
    // What it counts may change with each request.
    let changes = ["/metrics", "/v1/status", "/v1/history", "/v1/top"];
    for path in lines.filter(|path| !changes.contains(path)).chain(["/nowhere", "/v1/check"]) {
        let get = ask(&server, &format!("GET {path}")).token().send().await;
        let head = ask(&server, &format!("HEAD {path}")).token().send().await;
        assert_eq!((head.status, head.body.as_str()), (get.status, ""), "{path}");
        // An error says which method it was.
        let length = get.body.replace("GET", "HEAD").len().to_string();
        let length = if get.status == 405 { length } else { get.body.len().to_string() };
        assert_eq!(head.header("content-length"), Some(length.as_str()), "{path}: {head:?}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
    }
    let metrics = ask(&server, "HEAD /metrics").send().await;
    let length: usize = metrics.header("content-length").unwrap().parse().unwrap();
    assert!(length > 1000 && metrics.body.is_empty(), "{metrics:?}");
}
