use serde_json::Value;

use super::client::{ask, send_all};
use super::server::Server;

/// What only somebody who reads the code would understand.
const RUST: [&str; 14] = [
    "::", "struct ", "[`", "](", "crate", "enum ", "tuple", "variant", "visitor", "u64", "f64",
    "usize", "Option", "None",
];

#[track_caller]
fn assert_plain(text: &str, of: &str) {
    for word in RUST {
        assert!(!text.contains(word), "{word:?} in {text:?} of {of}");
    }
}

/// Every description, and whatever else people read.
fn assert_all_plain(value: &Value, place: &str) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                assert_all_plain(member, &format!("{place}/{name}"));
            }
        }
        Value::Array(elements) => {
            elements.iter().for_each(|element| assert_all_plain(element, place));
        }
        Value::String(text) if !place.ends_with("format") => assert_plain(text, place),
        _ => {}
    }
}

#[tokio::test]
async fn the_document_is_written_for_users_of_any_language() {
    let server = Server::start().await;
    let document = ask(&server, "GET /v1/openapi.json").send().await.json();
    assert_all_plain(&document, "");
}

/// Values of every kind, in place of what is expected.
const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "[\"a\",1]",
    "{\"a\":1}",
    "{\"limit\":1}",
    "{\"path\":1}",
    "[{\"limit\":[]}]",
    "nul",
    "{",
    "[1",
    "\"\\ud800\"",
    "\"\u{1}\"",
    "'x'",
    "1 1",
];

#[tokio::test]
async fn errors_are_written_for_users_of_any_language() {
    let server = Server::start().await;
    let routes = [
        ("POST /v1/check", &["limit", "key", "cost", "request", "checks", "batch", "other"][..]),
        ("POST /v1/reserve", &["limit", "key", "cost", "expires_in", "other"]),
        ("POST /v1/settle", &["reservation", "cost", "other"]),
        ("POST /v1/explain", &["request", "other"]),
        (
            "PUT /v1/limits/api/keys/user:1/override",
            &["quota", "ttl", "expires", "comment", "other"],
        ),
        ("PUT /v1/lists/block/192.0.2.1", &["ttl", "expires", "comment", "other"]),
    ];
    let mut refused = 0;
    for (line, members) in routes {
        let mut bodies: Vec<_> = VALUES.iter().map(|value| (*value).to_owned()).collect();
        for (member, value) in
            members.iter().flat_map(|member| VALUES.iter().map(move |value| (member, value)))
        {
            bodies.push(format!("{{\"{member}\":{value}}}"));
            bodies
                .push(format!("{{\"limit\":\"api\",\"reservation\":\"0\",\"{member}\":{value}}}"));
            for inner in ["method", "path", "host", "headers", "ip", "other"] {
                bodies.push(format!("{{\"{member}\":{{\"path\":\"/\",\"{inner}\":{value}}}}}"));
                bodies
                    .push(format!("{{\"{member}\":[{{\"limit\":\"api\",\"{inner}\":{value}}}]}}"));
            }
        }
        let asks = bodies.iter().map(|body| ask(&server, line).token().json(body));
        let replies = send_all(&server, asks.collect()).await;
        for (body, reply) in bodies.iter().zip(&replies) {
            if reply.status >= 400 {
                refused += 1;
                assert!(reply.status < 500, "{line} {body}: {reply:?}");
                assert_plain(&reply.detail(), &format!("{line} {body}"));
            }
        }
    }
    assert!(refused > 3_000, "{refused}");
}
