use std::collections::BTreeMap;
use std::net::IpAddr;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;
use spillgate_policy::RequestView;

use super::{Key, Text};
use crate::protocol::http::problem::Problem;

/// A request that a program is about to serve.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Request")]
pub(in crate::protocol::http) struct Original<'a> {
    /// The method: `GET` if absent.
    #[serde(borrow)]
    #[schemars(regex(pattern = TOKEN))]
    method: Option<Text<'a>>,
    /// The path as it was sent; a query does not matter.
    #[serde(borrow)]
    #[schemars(regex(pattern = r"^(/[^#]*$|\*$)"))]
    path: Text<'a>,
    /// The host, if it is not in the headers.
    #[serde(borrow)]
    host: Option<Text<'a>>,
    /// The headers, as far as the policy looks at them: a text each, or a list of texts.
    #[serde(borrow, default)]
    #[schemars(schema_with = "headers")]
    headers: BTreeMap<Text<'a>, Key<'a>>,
    /// The address at the other end of the connection. Without it the caller is anonymous,
    /// unless a header names it.
    #[serde(default)]
    #[schemars(schema_with = "address")]
    ip: Option<IpAddr>,
}

/// Names of methods and headers.
const TOKEN: &str = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

fn headers(_: &mut SchemaGenerator) -> Schema {
    let text = json!({ "type": "string", "pattern": r"^[^\x00-\x08\x0A-\x1F\x7F]*$" });
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": TOKEN },
        "additionalProperties": { "anyOf": [text, { "type": "array", "items": text }] },
    })
}

fn address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "format": "ipv4" },
            { "type": "string", "format": "ipv6" },
            { "type": "null" },
        ],
    })
}

/// A request in the types that a policy reads.
pub(in crate::protocol::http) struct Message<'a> {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    original: &'a Original<'a>,
}

impl<'a> Original<'a> {
    pub(in crate::protocol::http) fn message(&'a self) -> Result<Message<'a>, Problem> {
        let path = self.path.as_str();
        if !path.starts_with('/') && path != "*" {
            return Err(Problem::bad_request(format_args!(
                "invalid path {path:?}; it must begin with a slash"
            )));
        }
        if path.contains('#') {
            return Err(Problem::bad_request(
                "path has a fragment; leave \"#\" out, or refuse the request",
            ));
        }
        let method = self.method.as_ref().map_or("GET", Text::as_str);
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| {
            Problem::bad_request(format_args!("invalid method {method:?}; use one such as \"GET\""))
        })?;
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for (name, values) in &self.headers {
            let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|_| {
                Problem::bad_request(format_args!("invalid header name {:?}", name.as_str()))
            })?;
            for value in values.parts() {
                // It may be a secret, so it is not shown.
                let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
                    Problem::bad_request(format_args!(
                        "control characters in the value of header {name}"
                    ))
                })?;
                headers.append(&name, value);
            }
        }
        Ok(Message { method, uri: Uri::default(), headers, original: self })
    }
}

impl Message<'_> {
    pub(in crate::protocol::http) fn request(&self) -> RequestView<'_> {
        let Original { path, host, ip, .. } = self.original;
        let path = path.as_str().split('?').next().unwrap_or_default();
        let request = RequestView::new(&self.method, &self.uri, &self.headers, *ip).with_path(path);
        match host {
            Some(host) => request.with_host(Some(host.as_str())),
            None => request,
        }
    }
}
