//! The JSON schema of a configuration file.

use serde_json::{Map, Value, json};

use super::args::declarations;

/// The JSON schema of a configuration file: the policy, and all settings.
pub(crate) fn schema() -> Result<Value, serde_json::Error> {
    let mut schema: Value = serde_json::from_str(&spillgate_policy::schema())?;
    schema["title"] = "Spillgate configuration".into();
    let mut tables: Map<String, Value> = Map::new();
    for setting in declarations(&[]) {
        let keys = tables.entry(setting.section.name()).or_insert_with(|| json!({}));
        keys[setting.key] = setting.schema;
    }
    for (table, keys) in tables {
        let table = &mut schema["properties"][table];
        table["properties"] = keys;
        table["additionalProperties"] = false.into();
    }
    Ok(schema)
}
