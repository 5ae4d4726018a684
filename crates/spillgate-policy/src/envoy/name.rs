use std::fmt::Write;

/// The name of the limit at a node: `edge/remote_address=10.0.0.1/path=%2Fv1*`. It is unique,
/// and can stand in headers, metrics and logs.
pub(crate) fn node_name(above: &str, key: &str, value: Option<&str>) -> String {
    let mut name = if above.is_empty() { String::new() } else { format!("{above}/") };
    encode(&mut name, key);
    if let Some(value) = value {
        name.push('=');
        encode(&mut name, value);
    }
    name
}

/// Writes a text with all that could be taken for something else percent-encoded.
fn encode(name: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !br#"/=%"'\"#.contains(&byte) {
            name.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_what_is_plain_and_encodes_the_rest() {
        let domain = node_name("", "edge", None);
        let address = node_name(&domain, "remote_address", Some("10.0.0.1"));
        assert_eq!(address, "edge/remote_address=10.0.0.1");
        let path = node_name(&address, "path", Some("/v1*"));
        assert_eq!(path, "edge/remote_address=10.0.0.1/path=%2Fv1*");
        assert_eq!(node_name("", "a b\n\"é%='\\", None), "a%20b%0A%22%C3%A9%25%3D%27%5C");
    }

    #[test]
    fn an_empty_value_is_not_the_same_as_none() {
        assert_ne!(node_name("edge", "key", Some("")), node_name("edge", "key", None));
    }
}
