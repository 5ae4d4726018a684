//! Detects browsers. A web page can make them send any bytes to any port, wrapped in HTTP or TLS.
//! So the connection is closed at the first line that no client sends.

/// How the first line of an HTTP request begins. None of these is a command here.
const METHODS: [&[u8]; 10] = [
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"OPTIONS ",
    b"PUT ",
    b"DELETE ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
    b"PRI ",
];

/// True if no Redis client sends a line with this start.
pub(super) fn is_foreign(start: &[u8]) -> bool {
    let is_host = || start.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"host:"));
    // A TLS handshake begins with 22. No name of a command has such bytes.
    let is_binary = start.first().is_some_and(|byte| {
        byte.is_ascii_control() && !byte.is_ascii_whitespace() || !byte.is_ascii()
    });
    is_binary || is_host() || METHODS.iter().any(|method| start.starts_with(method))
}
