//! A request or a response as it was on the wire.

/// One message, whose header names are in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) start: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Whether the body ended as the head had promised.
    pub(crate) is_whole: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Known(usize),
    Chunked,
    UntilClose,
}

impl Message {
    /// Reads a head, without the empty line, and forgives nothing.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(head).map_err(|error| error.to_string())?;
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let headers: Result<Vec<_>, _> = lines.map(field).collect();
        let message = Self { start, headers: headers?, ..Self::default() };
        let is_odd = |byte: char| matches!(byte, '\r' | '\n' | '\0');
        if message.start.contains(is_odd) || message.start.split(' ').count() < 3 {
            return Err(format!("a first line that is none: {:?}", message.start));
        }
        message.length(None)?;
        Ok(message)
    }

    pub(crate) fn status(&self) -> u16 {
        let status = self.start.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no response: {self:?}"))
    }

    pub(crate) fn path(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(given, _)| given == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a header, which is there once at most.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} is there {} times: {self:?}", all.len());
        all.first().copied()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What is wrong, of a problem document.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], self.status(), "{self:?}");
        problem["detail"].as_str().unwrap_or_else(|| panic!("no detail: {self:?}")).to_owned()
    }

    /// Where the body ends; of a response if it is told the method that it answers.
    pub(crate) fn length(&self, answers: Option<&str>) -> Result<Length, String> {
        let (lengths, encodings) = (self.all("content-length"), self.all("transfer-encoding"));
        let none = if answers.is_some() { Length::UntilClose } else { Length::Known(0) };
        let length = match (&lengths[..], &encodings[..]) {
            ([], []) => none,
            ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                Length::Known(length.parse().map_err(|_| format!("the length {length:?}"))?)
            }
            ([], [encoding]) if encoding.eq_ignore_ascii_case("chunked") => Length::Chunked,
            _ => return Err(format!("the lengths {lengths:?} and encodings {encodings:?}")),
        };
        let has_no_body = answers.is_some()
            && (matches!(self.status(), 100..200 | 204 | 304) || answers == Some("HEAD"));
        Ok(if has_no_body { Length::Known(0) } else { length })
    }
}

/// A header or trailer.
pub(crate) fn field(line: &str) -> Result<(String, String), String> {
    let (name, value) = line.split_once(':').ok_or_else(|| format!("no header: {line:?}"))?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("the header name {name:?}"));
    }
    if value.contains(['\r', '\n', '\0']) {
        return Err(format!("the value {value:?} of {name}"));
    }
    Ok((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()))
}
