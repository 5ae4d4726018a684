use serde_json::Value;

use super::client::ask;
use super::server::Server;

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

#[tokio::test]
async fn the_document_is_openapi_whose_references_lead_somewhere() {
    let document = document().await;
    let parsed = oas3::from_json(document.to_string()).unwrap();
    assert_eq!(parsed.operations().count(), 20);
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
            let status = ask(&server, &line).send().await.status;
            // Known, whatever else may be missing.
            assert!(!matches!(status, 404 | 405), "{line}: {status}");
        }
    }
    assert_eq!(routes, 20);
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
