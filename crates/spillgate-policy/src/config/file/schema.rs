use schemars::transform::{RecursiveTransform, Transform};
use schemars::{Schema, json_schema, schema_for};
use serde_json::json;
use spillgate::AlgorithmKind;
use spillgate::adaptive::PriorityClass;

use crate::config::compile::{CONTROLLERS, REFUSE, SIGNALS};
use crate::config::spec::{OUTAGE, SHARING, START, Spec, WHEN_FULL};

/// The JSON schema of the policy file, which lets an editor complete and check it.
#[must_use]
pub fn schema() -> String {
    let mut schema = schema_for!(Spec);
    RecursiveTransform(shorten).transform(&mut schema);
    RecursiveTransform(without_null).transform(&mut schema);
    name_words(&mut schema);
    require_quota(&mut schema);
    schema.insert("title".to_owned(), "Spillgate policy".into());
    if let Some(keys) = schema.pointer_mut("/properties").and_then(|keys| keys.as_object_mut()) {
        let texts = [
            ("server", "Settings of a server, which are no part of the policy."),
            ("store", "Where a server keeps what is spent, if many servers share that."),
            ("proxy", "What a server that is a reverse proxy stands in front of."),
        ];
        for (key, description) in texts {
            let table = json_schema!({ "description": description, "type": "object" });
            keys.insert(key.to_owned(), table.to_value());
        }
    }
    format!("{:#}", schema.as_value())
}

/// Takes out `null`, which TOML does not have: a key that is optional is left out.
fn without_null(schema: &mut Schema) {
    let null = json!({ "type": "null" });
    if let Some(types) = schema.get_mut("type").and_then(|types| types.as_array_mut()) {
        types.retain(|it| it != "null");
    }
    if let Some(forms) = schema.get_mut("anyOf").and_then(|forms| forms.as_array_mut()) {
        forms.retain(|form| *form != null);
    }
}

/// Names the words that a key can have, for keys that are texts to the decoder: the compiler knows
/// the words, and says which one was probably meant.
fn name_words(schema: &mut Schema) {
    for (place, words) in words() {
        let key = schema.pointer_mut(place).and_then(|key| key.as_object_mut());
        if let Some(key) = key {
            key.insert("enum".to_owned(), json!(words));
        }
    }
}

/// The places of such keys in the schema, and their words.
fn words() -> [(&'static str, Vec<&'static str>); 11] {
    fn names<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
        words.iter().map(|(word, _)| *word).collect()
    }
    let classes = PriorityClass::ALL.map(PriorityClass::name).to_vec();
    [
        ("/$defs/Limit/properties/algorithm", AlgorithmKind::ALL.map(AlgorithmKind::name).to_vec()),
        ("/$defs/Limit/properties/start", names(&START)),
        ("/$defs/Limit/properties/when-full", names(&WHEN_FULL)),
        ("/$defs/Limit/properties/sharing", names(&SHARING)),
        ("/$defs/Limit/properties/outage", names(&OUTAGE)),
        ("/$defs/Ban/properties/refuse", names(&REFUSE)),
        ("/$defs/Adaptive/properties/controller", names(&CONTROLLERS)),
        ("/$defs/Adaptive/properties/signal", names(&SIGNALS)),
        ("/$defs/Priority/properties/default", classes.clone()),
        ("/$defs/Priority/properties/tier/additionalProperties", classes.clone()),
        ("/$defs/PriorityRule/properties/class", classes),
    ]
}

/// A limit has one of the keys that say how much.
fn require_quota(schema: &mut Schema) {
    let limit = schema.pointer_mut("/$defs/Limit").and_then(|limit| limit.as_object_mut());
    if let Some(limit) = limit {
        let one = ["quota", "concurrent", "adaptive"].map(|key| json!({ "required": [key] }));
        limit.insert("oneOf".to_owned(), json!(one));
    }
}

/// Keeps the first paragraph of a description: the others are about Rust.
fn shorten(schema: &mut Schema) {
    let text = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    if let Some((first, _)) = text.split_once("\n\n") {
        let first = first.into();
        schema.insert("description".to_owned(), first);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use toml::de::{DeTable, DeValue};

    use super::*;

    const COMPLETE: &str = include_str!("complete.toml");

    /// Every key that a schema knows, with the path to it. Lists do not show, and `*`
    /// is any key.
    fn keys_of_schema(root: &Value, schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let definition = root.pointer(reference.trim_start_matches('#')).unwrap();
            keys_of_schema(root, definition, path, keys);
        }
        let variants = ["anyOf", "oneOf"].into_iter().filter_map(|of| schema[of].as_array());
        for schema in variants.flatten().chain(schema.get("items")) {
            keys_of_schema(root, schema, path, keys);
        }
        let others = [("*".to_owned(), &schema["additionalProperties"])];
        let others = others.into_iter().filter(|(_, schema)| schema.is_object());
        let named = schema["properties"].as_object().into_iter().flatten();
        for (key, schema) in named.map(|(key, schema)| (key.clone(), schema)).chain(others) {
            let path = format!("{path}/{key}");
            keys_of_schema(root, schema, &path, keys);
            keys.insert(path);
        }
    }

    /// Every key that is used in a file, written like those of the schema.
    fn keys_of_file(
        value: &DeValue<'_>,
        path: &str,
        known: &BTreeSet<String>,
        keys: &mut BTreeSet<String>,
    ) {
        for entry in value.as_array().into_iter().flat_map(|entries| entries.iter()) {
            keys_of_file(entry.get_ref(), path, known, keys);
        }
        for (key, value) in value.as_table().into_iter().flatten() {
            let named = format!("{path}/{}", key.get_ref());
            let path = if known.contains(&named) { named } else { format!("{path}/*") };
            keys_of_file(value.get_ref(), &path, known, keys);
            keys.insert(path);
        }
    }

    fn schema_keys() -> BTreeSet<String> {
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let mut keys = BTreeSet::new();
        keys_of_schema(&schema, &schema, "", &mut keys);
        keys
    }

    #[test]
    fn the_complete_example_uses_every_key_of_the_schema_and_no_other() {
        let known = schema_keys();
        let mut used = BTreeSet::new();
        let file = DeValue::Table(DeTable::parse(COMPLETE).unwrap().into_inner());
        keys_of_file(&file, "", &known, &mut used);
        assert_eq!(used, known);
    }

    #[test]
    fn the_decoder_accepts_every_key_of_the_schema_and_no_other() {
        let known = schema_keys();
        for (path, text) in [
            ("", "? = 0"),
            ("/identity", "identity.? = 0"),
            ("/identity/api-key", "identity.api-key = { ? = 0, header = 'h' }"),
            ("/identity/user", "identity.user = { ? = 0, header = 'h' }"),
            ("/limit", "limit = [{ ? = 0, name = 'n', quota = 'q' }]"),
            ("/limit/match", "limit = [{ match.? = 0, name = 'n', quota = 'q' }]"),
            (
                "/limit/cost",
                "limit = [{ cost = { ? = 0, header = 'h' }, name = 'n', quota = 'q' }]",
            ),
            ("/limit/concurrent", "limit = [{ concurrent = { ? = 0, limit = 1 }, name = 'n' }]"),
            ("/limit/adaptive", "limit = [{ adaptive.? = 0, name = 'n' }]"),
            ("/priority", "priority.? = 0"),
            ("/priority/rule", "priority.rule = [{ ? = 0, class = 'low' }]"),
            ("/priority/rule/match", "priority.rule = [{ match.? = 0, class = 'low' }]"),
            ("/limit/ban", "limit = [{ ban.? = 0, name = 'n', quota = 'q' }]"),
            ("/allow", "allow = [{ ? = 0, entry = '10.0.0.1' }]"),
            ("/block", "block = [{ ? = 0, entry = '10.0.0.1' }]"),
            ("/limit/settle", "limit = [{ settle.? = 0, name = 'n', quota = 'q' }]"),
        ] {
            let (_, problems) = super::super::decode(&text.replace('?', "zzzzzzzz"), None);
            let (_, accepted) = problems[0].message().split_once("; known are ").unwrap();
            let accepted: BTreeSet<_> =
                accepted.split(", ").map(|key| format!("{path}/{key}")).collect();
            let parent = |key: &&String| key.rsplit_once('/').is_some_and(|(head, _)| head == path);
            assert_eq!(accepted, known.iter().filter(parent).cloned().collect(), "{text}");
        }
    }

    #[test]
    fn the_schema_has_a_title_no_address_and_no_rust() {
        let schema = schema();
        assert!(!schema.contains("```"), "{schema}");
        let schema: Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(schema["title"], "Spillgate policy");
        assert_eq!(schema.get("$id"), None);
        assert!(!schema.to_string().contains("null"), "TOML has no null");
        assert!(schema["$defs"]["Limit"]["oneOf"].is_array());
        for (place, words) in words() {
            assert_eq!(schema.pointer(place).unwrap()["enum"], json!(words), "{place}");
        }
    }
}
