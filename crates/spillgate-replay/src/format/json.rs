//! JSON lines.

use serde_json::{Map, Value};

use super::Context;
use super::fields::{Field, Fields, field};
use crate::Skip;

/// Reads an object, and those within it that describe the request (Caddy).
pub(super) fn read(line: &[u8], context: &Context, fields: &mut Fields) -> Result<(), Skip> {
    fields.clear();
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err(Skip::Malformed);
    }
    let object: Map<String, Value> = match serde_json::from_slice(line) {
        Ok(object) => object,
        // nginx leaves bytes that are no UTF-8 as they are.
        Err(_) => {
            serde_json::from_str(&String::from_utf8_lossy(line)).map_err(|_| Skip::Malformed)?
        }
    };
    read_object(&object, context, fields);
    if let Some(Value::Object(request)) = object.get("request") {
        read_object(request, context, fields);
        if let Some(Value::Object(headers)) = request.get("headers") {
            read_headers(headers, context, fields);
        }
    }
    if let Some(Value::Object(headers)) = object.get("headers") {
        read_headers(headers, context, fields);
    }
    Ok(())
}

fn read_object(object: &Map<String, Value>, context: &Context, fields: &mut Fields) {
    for (name, value) in object {
        if let Some(ranked) = field(name, context) {
            set(fields, ranked, value);
        }
    }
}

fn read_headers(headers: &Map<String, Value>, context: &Context, fields: &mut Fields) {
    for (name, value) in headers {
        let Some(place) = context.wanted.place(&name.to_ascii_lowercase()) else { continue };
        match value {
            Value::Array(values) => {
                values.iter().for_each(|value| set(fields, (Field::Header(place), 0), value));
            }
            value => set(fields, (Field::Header(place), 0), value),
        }
    }
}

fn set(fields: &mut Fields, ranked: (Field, u8), value: &Value) {
    match value {
        Value::String(text) => fields.set(ranked, text.as_bytes()),
        Value::Number(number) => match number.as_f64() {
            // Shown without an exponent. A double has microseconds of our time.
            Some(float) if number.is_f64() => fields.set(ranked, format!("{float:.6}").as_bytes()),
            _ => fields.set(ranked, number.to_string().as_bytes()),
        },
        _ => {}
    }
}
