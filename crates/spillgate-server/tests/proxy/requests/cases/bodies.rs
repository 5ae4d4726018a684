//! Where a body ends.

use super::{GET, INSIDE, MALFORMED, POST, SILENCE, TOO_LARGE, case, get, post};
use crate::proxy::requests::Case;
use crate::proxy::requests::Outcome::{Forwarded, Refused, RefusedOr};

pub(super) fn lengths() -> Vec<Case> {
    let length = |value: &str| post(&format!("content-length: {value}\r\n"), "hello");
    let refused = |name, value| case(name, length(value), Refused(MALFORMED));
    vec![
        case("a plain length", length("5"), Forwarded(POST, "hello")),
        case("a length with zeros before it", length("005"), RefusedOr(POST, "hello")),
        case("a length among spaces and tabs", length(" \t5\t "), Forwarded(POST, "hello")),
        refused("a length with a plus", "+5"),
        refused("a length with a minus", "-5"),
        refused("a length in hexadecimal", "0x5"),
        refused("a length with a fraction", "5.0"),
        refused("a length of two words", "5 5"),
        refused("a length that is empty", ""),
        refused("a length that is a word", "five"),
        refused("a length beyond 64 bits", "18446744073709551621"),
        refused("a list of different lengths", "5, 6"),
        case("a list of equal lengths", length("5, 5"), RefusedOr(POST, "hello")),
        case(
            "two different lengths",
            post("content-length: 5\r\ncontent-length: 6\r\n", "hello!"),
            Refused(MALFORMED),
        ),
        case(
            "two lengths, the smaller first, and a request in between",
            post(&format!("content-length: 0\r\ncontent-length: {}\r\n", INSIDE.len()), INSIDE),
            Refused(MALFORMED),
        ),
        case(
            "two equal lengths",
            post("content-length: 5\r\ncontent-length: 5\r\n", "hello"),
            RefusedOr(POST, "hello"),
        ),
        case(
            "a header that only looks like a length",
            post("content_length: 50\r\ncontent-length: 5\r\n", "hello"),
            Forwarded(POST, "hello"),
        ),
        case("a body with GET", get("content-length: 5\r\n") + "hello", Forwarded(GET, "hello")),
    ]
}

pub(super) fn encodings() -> Vec<Case> {
    let chunked = "5\r\nhello\r\n0\r\n\r\n";
    let encoded = |value: &str| post(&format!("transfer-encoding: {value}\r\n"), chunked);
    let refused = |name, value| case(name, encoded(value), Refused(MALFORMED));
    let inside = format!("0\r\n\r\n{INSIDE}");
    let whole = inside.len();
    vec![
        case("plain chunks", encoded("chunked"), Forwarded(POST, "hello")),
        case("chunks in capitals", encoded("Chunked"), Forwarded(POST, "hello")),
        case("chunks after a tab", encoded("\tchunked"), Forwarded(POST, "hello")),
        case(
            "a length, then chunks with a request behind them",
            post(&format!("content-length: {whole}\r\ntransfer-encoding: chunked\r\n"), &inside),
            Refused(MALFORMED),
        ),
        case(
            "chunks, then a length, with a request behind them",
            post(&format!("transfer-encoding: chunked\r\ncontent-length: {whole}\r\n"), &inside),
            Refused(MALFORMED),
        ),
        case(
            "chunks that hold a request, and a length that ends before it",
            post(
                "content-length: 4\r\ntransfer-encoding: chunked\r\n",
                &format!("{:x}\r\n{INSIDE}\r\n0\r\n\r\n", INSIDE.len()),
            ),
            Refused(MALFORMED),
        ),
        case(
            "a length and an encoding that is none",
            post(&format!("content-length: {whole}\r\ntransfer-encoding: xchunked\r\n"), &inside),
            Refused(MALFORMED),
        ),
        refused("an encoding that is the identity", "identity"),
        refused("an encoding after chunks", "chunked, identity"),
        refused("an encoding before chunks", "gzip, chunked"),
        refused("chunks twice", "chunked, chunked"),
        refused("an encoding that is unknown", "xchunked"),
        refused("chunks with a parameter", "chunked;q=1"),
        refused("chunks in quotes", "\"chunked\""),
        refused("chunks after a vertical tab", "\x0bchunked"),
        refused("an encoding that is empty", ""),
        refused("chunks after a comma", ",chunked"),
        case(
            "two headers of encodings",
            post("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", chunked),
            Refused(MALFORMED),
        ),
        case(
            "two headers of chunks",
            post("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", chunked),
            Refused(MALFORMED),
        ),
        case(
            "chunks in HTTP/1.0",
            format!(
                "POST {{path}} HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunked}"
            ),
            Refused(MALFORMED),
        ),
    ]
}

pub(super) fn chunks() -> Vec<Case> {
    let chunks = |body: &str| post("transfer-encoding: chunked\r\n", body);
    let refused = |name, body: &str| case(name, chunks(body), Refused(MALFORMED));
    let extension = "x".repeat(100_000);
    let trailers = format!("x-long: {}\r\n", "x".repeat(200_000));
    vec![
        case("chunks with zeros", chunks("005\r\nhello\r\n000\r\n\r\n"), Forwarded(POST, "hello")),
        case("an extension", chunks("5;a=b\r\nhello\r\n0\r\n\r\n"), Forwarded(POST, "hello")),
        case("a trailer", chunks("5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n"), Forwarded(POST, "hello")),
        case(
            "a trailer that is a length",
            chunks("5\r\nhello\r\n0\r\ncontent-length: 50\r\n\r\n"),
            RefusedOr(POST, "hello"),
        ),
        case("a space after a size", chunks("5 \r\nhello\r\n0\r\n\r\n"), RefusedOr(POST, "hello")),
        refused("a size that is no number", "g\r\nhello\r\n0\r\n\r\n"),
        refused("a size that is empty", "\r\nhello\r\n0\r\n\r\n"),
        refused("a size with a minus", "-5\r\nhello\r\n0\r\n\r\n"),
        refused("a size with a plus", "+5\r\nhello\r\n0\r\n\r\n"),
        refused("a size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        refused("a size after a space", " 5\r\nhello\r\n0\r\n\r\n"),
        refused("a size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        case(
            "the largest size",
            chunks("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
            Refused(&[SILENCE, 400, 408, 504]),
        ),
        refused("a size that ends with LF", "5\nhello\r\n0\r\n\r\n"),
        refused("a size that ends with CR", "5\rhello\r\n0\r\n\r\n"),
        refused("a chunk longer than its size", "5\r\nhello world\r\n0\r\n\r\n"),
        refused("a chunk that ends with LF", "5\r\nhello\n0\r\n\r\n"),
        refused("a chunk without an end", "5\r\nhello0\r\n\r\n"),
        refused("an extension with LF", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        refused("an extension of the last chunk with LF", "5\r\nhello\r\n0;a\n\r\n"),
        refused("an extension with CR", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        refused(
            "an extension that hides a size",
            "2;\nxx\r\n5\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        ),
        refused(
            "a trailer that ends with LF, and a request behind what is none",
            "0\r\nx: a\n\r\nx: b\r\ncontent-length: 1000\r\n\r\nGET /smuggled HTTP/1.1\nhost: a\n\n",
        ),
        refused("a trailer that is none", "5\r\nhello\r\n0\r\nx sum: 1\r\n\r\n"),
        case(
            "an extension without end",
            chunks(&format!("5;{extension}\r\nhello\r\n0\r\n\r\n")),
            Refused(TOO_LARGE),
        ),
        case(
            "trailers without end",
            chunks(&format!("5\r\nhello\r\n0\r\n{trailers}\r\n")),
            Refused(TOO_LARGE),
        ),
    ]
}
