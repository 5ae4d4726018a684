//! Requests to the same endpoint: paths that differ in an id count together.

use crate::Record;

/// The longest name of an endpoint that is kept.
const MAX_LENGTH: usize = 200;

/// Writes method and path, with `{id}` for segments that are numbers or long identifiers.
#[inline]
pub(crate) fn write(record: &Record<'_>, endpoint: &mut Vec<u8>) {
    endpoint.clear();
    endpoint.extend_from_slice(record.method);
    endpoint.push(b' ');
    let path = record.path.as_bytes();
    // Only digits make a segment an id.
    if !path.iter().any(u8::is_ascii_digit) {
        endpoint.extend_from_slice(path);
    } else {
        for (place, segment) in path.split(|byte| *byte == b'/').enumerate() {
            if place > 0 {
                endpoint.push(b'/');
            }
            endpoint.extend_from_slice(if is_id(segment) { b"{id}" } else { segment });
        }
    }
    endpoint.truncate(MAX_LENGTH);
}

fn is_id(segment: &[u8]) -> bool {
    let is_number = !segment.is_empty() && segment.iter().all(u8::is_ascii_digit);
    let is_long = segment.len() >= 16
        && segment.iter().any(u8::is_ascii_digit)
        && segment.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_number || is_long
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_left_out_and_names_stay() {
        for (path, endpoint) in [
            ("/", "GET /"),
            ("/users/7/posts/12", "GET /users/{id}/posts/{id}"),
            ("/v2/items", "GET /v2/items"),
            ("/o/0b9f3c52-7a1e-4c0d-9a7e-0d3f5e1b2a99", "GET /o/{id}"),
            ("/a-rather-long-name-of-a-page", "GET /a-rather-long-name-of-a-page"),
        ] {
            let mut text = Vec::new();
            write(&crate::testing::record(path), &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), endpoint);
        }
    }
}
