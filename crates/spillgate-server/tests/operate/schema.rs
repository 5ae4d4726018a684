//! The JSON schema of the configuration file agrees with the program.

use serde_json::{Map, Value, json};
use spillgate_testing::program;
use toml::de::{DeTable, DeValue};

use super::documents::read;
use super::pages::configurations;
use crate::common::server::{Home, run, spillgate};

/// Validates each of some documents, and prints a JSON list of booleans.
const VALIDATE: &str = "\
import json, sys, jsonschema_rs
schema, documents = json.load(sys.stdin)
assert jsonschema_rs.meta.is_valid(schema)
validator = jsonschema_rs.Draft202012Validator(schema)
print(json.dumps([validator.is_valid(document) for document in documents]))
";

fn schema() -> Value {
    serde_json::from_str(&run(spillgate().arg("schema"))).unwrap()
}

/// Which documents are valid by the schema, according to a validator of others.
fn validate(documents: &[Value]) -> Vec<bool> {
    // With the validator that Schemathesis uses.
    let home = Home::new("");
    std::fs::write(home.path("input"), json!([schema(), documents]).to_string()).unwrap();
    let mut command = program("target/schemathesis/bin/python");
    command.args(["-c", VALIDATE]);
    command.stdin(std::fs::File::open(home.path("input")).unwrap());
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn json_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => json!(number.to_string().parse::<i64>().unwrap()),
        DeValue::Float(number) => json!(number.to_string().parse::<f64>().unwrap()),
        DeValue::Boolean(it) => json!(it),
        DeValue::Datetime(moment) => json!(moment.to_string()),
        DeValue::Array(values) => values.iter().map(|it| json_of(it.get_ref())).collect(),
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(key, it)| (key.to_string(), json_of(it.get_ref())));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

fn parse(text: &str) -> Value {
    json_of(&DeValue::Table(DeTable::parse(text).unwrap().into_inner()))
}

const COMPLETE: &str = "crates/spillgate-policy/src/config/file/complete.toml";

#[test]
fn every_example_of_docs_and_deploy_is_valid() {
    let mut examples = configurations();
    for file in ["deploy/spillgate.toml", "deploy/envoy/spillgate.toml", COMPLETE] {
        examples.push((file.to_owned(), read(file)));
    }
    let documents: Vec<_> = examples.iter().map(|(_, text)| parse(text)).collect();
    assert!(documents.len() > 20);
    for (valid, (place, text)) in validate(&documents).into_iter().zip(&examples) {
        assert!(valid, "{place}:\n{text}");
    }
}

/// A file with every key of a policy, and every setting.
fn complete() -> Value {
    let mut complete = parse(&read(COMPLETE));
    let schema = schema();
    for table in ["server", "store", "proxy"] {
        let keys = schema["properties"][table]["properties"].as_object().unwrap();
        let value = |schema: &Value| match schema.get("anyOf").unwrap_or(schema) {
            Value::Array(forms) => forms[0]["examples"][0].clone(),
            schema if schema["type"] == "boolean" => json!(true),
            schema if schema["type"] == "integer" => schema["minimum"].clone(),
            schema if schema["enum"].is_array() => schema["enum"][0].clone(),
            schema => schema["examples"][0].clone(),
        };
        complete[table] = keys.iter().map(|(key, schema)| (key.clone(), value(schema))).collect();
    }
    complete
}

/// Every path to a value of a document.
fn pointers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                pointers(value, &format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
    found.push(path.to_owned());
}

/// Tables whose keys are names that people choose: any text is right there.
fn is_open(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap();
    let parts: Vec<_> = path.split('/').collect();
    let names = ["header", "descriptor"].contains(&last) && parts.contains(&"match");
    let overrides = parts.iter().rev().nth(1) == Some(&"override");
    names || overrides || path.starts_with("/tier") || path == "/priority/tier"
}

#[test]
fn what_is_not_right_is_not_valid() {
    let complete = complete();
    let mut paths = Vec::new();
    pointers(&complete, "", &mut paths);
    let mut wrong = vec![("the file itself".to_owned(), complete.clone())];
    for path in &paths {
        let mut changed = complete.clone();
        let value = changed.pointer_mut(path).unwrap();
        // Nothing in a file is a list of lists of lists.
        *value = json!([[[1]]]);
        wrong.push((format!("{path} is a list of lists"), changed));
        let mut changed = complete.clone();
        if let Some(members) = changed.pointer_mut(path).and_then(Value::as_object_mut)
            && !is_open(path)
        {
            members.insert("no-such-key".to_owned(), json!("x"));
            wrong.push((format!("{path} has an unknown key"), changed));
        }
    }
    for (path, value) in [
        ("/limit/0/name", Value::Null),
        ("/limit/0/quota", Value::Null),
        ("/limit/0/algorithm", json!("token-buckets")),
        ("/limit/0/mode", json!("off")),
        ("/limit/0/when-full", json!("drop")),
        ("/limit/0/sharing", json!("loose")),
        ("/limit/0/outage", json!("maybe")),
        ("/limit/0/capacity", json!(-1)),
        ("/limit/0/concurrent", json!(5)),
        ("/limit/3/concurrent/limit", json!(0)),
        ("/identity/ipv4-prefix", json!(33)),
        ("/identity/ipv6-prefix", json!(129)),
        ("/path-spelling/ignore-case", json!("sometimes")),
        ("/priority/default", json!("urgent")),
        ("/server/max-connections", json!(0)),
        ("/server/log-format", json!("xml")),
        ("/server/public-metrics", json!("yes")),
        ("/store/pool-size", json!(65)),
        ("/proxy/host-header", json!("drop")),
    ] {
        let mut changed = complete.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = changed.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(key)),
            value => drop(parent.insert(key.to_owned(), value)),
        }
        wrong.push((format!("{path} is wrong"), changed));
    }
    let documents: Vec<_> = wrong.iter().map(|(_, document)| document.clone()).collect();
    let valid = validate(&documents);
    assert!(valid[0], "what is changed is valid");
    assert!(wrong.len() > 300, "{}", wrong.len());
    let missed: Vec<_> = valid.iter().zip(&wrong).skip(1).filter(|(valid, _)| **valid).collect();
    let missed: Vec<_> = missed.into_iter().map(|(_, (what, _))| what).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn the_schema_has_every_setting_with_its_help() {
    let schema = schema();
    assert_eq!(schema["title"], "Spillgate configuration");
    for (table, page) in [("server", "server"), ("store", "cluster"), ("proxy", "proxy")] {
        let page = read(&format!("docs/{page}.md"));
        let rows = page.split("\n## All settings\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let rows = rows.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        let keys = schema["properties"][table]["properties"].as_object().unwrap();
        assert_eq!(rows.clone().count(), keys.len(), "{table}");
        for key in rows {
            assert!(keys[key]["description"].is_string(), "{table}.{key}");
        }
    }
}
