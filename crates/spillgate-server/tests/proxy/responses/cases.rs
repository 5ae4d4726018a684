use super::Case;
use super::Outcome::{self, BadGateway, CutOff, Told, ToldOrBadGateway};

pub(super) fn all() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(encodings());
    cases.extend(heads());
    cases.extend(statuses());
    cases.extend(bodiless());
    cases
}

/// The upstream sends this to a `GET`, and hangs up.
fn case(name: &'static str, sent: impl Into<Vec<u8>>, outcome: Outcome) -> Case {
    Case { name, method: "GET", sent: sent.into(), hangs_up: true, outcome }
}

/// The upstream keeps the connection.
fn kept(case: Case) -> Case {
    Case { hangs_up: false, ..case }
}

fn head(case: Case) -> Case {
    Case { method: "HEAD", ..case }
}

fn with(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}")
}

fn lengths() -> Vec<Case> {
    let length = |value: &str| with(&format!("content-length: {value}\r\n"), "hello");
    let another = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    vec![
        case("a true length", length("5"), Told(200, "hello")),
        case("a length that is too long", length("50"), CutOff),
        kept(case("a length that is too short", length("4"), Told(200, "hell"))),
        kept(case("another response behind", length("5") + another, Told(200, "hello"))),
        case("a length that is a word", length("five"), BadGateway),
        case("a length with a plus", length("+5"), BadGateway),
        case("a length with a minus", length("-5"), BadGateway),
        case("a length beyond 64 bits", length("18446744073709551621"), BadGateway),
        case("different lengths", length("5\r\ncontent-length: 4"), BadGateway),
        case("different lengths in one", length("5, 4"), BadGateway),
        case("equal lengths", length("5\r\ncontent-length: 5"), ToldOrBadGateway(200, "hello")),
        case("equal lengths in one", length("5, 5"), BadGateway),
        case("no length", with("", "hello"), Told(200, "hello")),
        case("HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", Told(200, "hello")),
    ]
}

fn encodings() -> Vec<Case> {
    let chunks = |body: &str| with("transfer-encoding: chunked\r\n", body);
    let encoded =
        |value: &str| with(&format!("transfer-encoding: {value}\r\n"), "5\r\nhello\r\n0\r\n\r\n");
    let both = "content-length: 5\r\ntransfer-encoding: chunked\r\n";
    let both_turned = "transfer-encoding: chunked\r\ncontent-length: 5\r\n";
    let whole = "5\r\nhello\r\n0\r\n\r\n";
    vec![
        kept(case("plain chunks", encoded("chunked"), Told(200, "hello"))),
        kept(case(
            "chunks with an extension",
            chunks("5;a=b\r\nhello\r\n0\r\n\r\n"),
            Told(200, "hello"),
        )),
        case("a length and chunks", with(both, whole), BadGateway),
        case("chunks and a length", with(both_turned, whole), BadGateway),
        case("chunks and another encoding", encoded("gzip, chunked"), BadGateway),
        case("an encoding after chunks", encoded("chunked, identity"), BadGateway),
        case("chunks twice", encoded("chunked\r\ntransfer-encoding: chunked"), BadGateway),
        case("an encoding that nobody knows", encoded("xchunked"), BadGateway),
        case(
            "chunks in HTTP/1.0",
            encoded("chunked").replacen("1.1", "1.0", 1),
            ToldOrBadGateway(200, "hello"),
        ),
        case("chunks without the last", chunks("5\r\nhello\r\n"), CutOff),
        case("a chunk that breaks off", chunks("5\r\nhel"), CutOff),
        case("a size that is no number", chunks("x\r\nhello\r\n0\r\n\r\n"), CutOff),
        case("a size beyond 64 bits", chunks("10000000000000005\r\nhello\r\n0\r\n\r\n"), CutOff),
        case("a chunk without an end", chunks("5\r\nhello0\r\n\r\n"), CutOff),
        case("a size that ends with LF", chunks("5\nhello\r\n0\r\n\r\n"), CutOff),
    ]
}

fn heads() -> Vec<Case> {
    let odd = |name, header: &str| {
        case(name, with(&format!("{header}\r\ncontent-length: 5\r\n"), "hello"), BadGateway)
    };
    let many: String = (0..1000).map(|number| format!("x-{number}: y\r\n")).collect();
    vec![
        case("nothing at all", "", BadGateway),
        case("half a head", "HTTP/1.1 200 OK\r\ncontent-", BadGateway),
        case("nonsense", "nonsense\r\n\r\n", BadGateway),
        case("a head without end", with(&"x".repeat(2_000_000), ""), BadGateway),
        case("too many headers", with(&many, "hello"), BadGateway),
        odd("a name that is empty", ": a"),
        odd("a name with NUL", "x\0y: a"),
        odd("a value with NUL", "x: a\0b"),
        odd("a value with a bare CR", "x: a\rset-cookie: b"),
        odd("a line without a colon", "nonsense"),
        odd("a header that goes on in the next line", "x: a\r\n b: c"),
        odd("a space before the colon", "x : a"),
        case(
            "lines that end with LF alone",
            "HTTP/1.1 200 OK\nx: a\ncontent-length: 5\n\nhello",
            ToldOrBadGateway(200, "hello"),
        ),
    ]
}

fn statuses() -> Vec<Case> {
    let status = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\nhello");
    let early = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n";
    vec![
        kept(case("no reason", status("200 "), Told(200, "hello"))),
        kept(case("a status of one's own", status("299 Fine"), Told(299, "hello"))),
        case("a status of two digits", status("20 OK"), BadGateway),
        case("a status of four digits", status("2000 OK"), BadGateway),
        case("a status that is a word", status("two OK"), BadGateway),
        case("another version", status("200 OK").replacen("1.1", "2.0", 1), BadGateway),
        kept(case(
            "100 before",
            format!("HTTP/1.1 100 Continue\r\n\r\n{}", status("200 OK")),
            Told(200, "hello"),
        )),
        kept(case("103 before", format!("{early}{}", status("200 OK")), Told(200, "hello"))),
        kept(case(
            "103 twice before",
            format!("{early}{early}{}", status("200 OK")),
            Told(200, "hello"),
        )),
        case("100 alone", "HTTP/1.1 100 Continue\r\n\r\n", BadGateway),
        case(
            "101 that nobody asked for",
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello",
            BadGateway,
        ),
        kept(case("204", "HTTP/1.1 204 No Content\r\n\r\n", Told(204, ""))),
        kept(case(
            "204 with a body",
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
            Told(204, ""),
        )),
        kept(case(
            "204 with a length",
            "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello",
            ToldOrBadGateway(204, ""),
        )),
        kept(case(
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
            Told(304, ""),
        )),
        kept(case("304 with a body", "HTTP/1.1 304 Not Modified\r\n\r\nhello", Told(304, ""))),
        head(kept(case("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", Told(200, "")))),
        head(kept(case(
            "HEAD with chunks",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            Told(200, ""),
        ))),
        head(kept(case("HEAD with a body", status("200 OK"), Told(200, "")))),
    ]
}

/// Responses that have no body, whatever their lengths say.
fn bodiless() -> Vec<Case> {
    const LENGTHS: [(&str, &str); 10] = [
        ("a length that is a word", "content-length: abc"),
        ("a length with a minus", "content-length: -5"),
        ("a length with a plus", "content-length: +5"),
        ("a length that is empty", "content-length:"),
        ("a length beyond 64 bits", "content-length: 18446744073709551621"),
        ("two different lengths", "content-length: 5\r\ncontent-length: 6"),
        ("two lengths in one", "content-length: 5, 6"),
        ("a length and chunks", "content-length: 5\r\ntransfer-encoding: chunked"),
        ("another encoding", "transfer-encoding: gzip, chunked"),
        ("chunks twice", "transfer-encoding: chunked\r\ntransfer-encoding: chunked"),
    ];
    let all = LENGTHS.into_iter().flat_map(|(name, lengths)| {
        let with = |status: &str| format!("HTTP/1.1 {status}\r\n{lengths}\r\n\r\n");
        [
            head(kept(case(name, with("200 OK"), BadGateway))),
            head(kept(case(name, with("404 Not Found"), BadGateway))),
            kept(case(name, with("204 No Content"), BadGateway)),
            kept(case(name, with("304 Not Modified"), BadGateway)),
            // Those that are not the last are for the proxy alone.
            kept(case(
                name,
                with("103 Early Hints") + "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
                Told(200, "hello"),
            )),
        ]
    });
    let old = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    all.chain([head(kept(case("HEAD with chunks in HTTP/1.0", old, BadGateway)))]).collect()
}
