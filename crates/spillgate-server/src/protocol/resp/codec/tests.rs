use proptest::collection::vec;
use proptest::prelude::*;

use super::{Decoder, Limits, Protocol, ProtocolError, Writer};

/// What a stream of bytes asks for, and what is wrong with it in the end.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    requests: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

/// Decodes a stream that comes in pieces, each ending where `ends` says.
fn hear(stream: &[u8], ends: impl IntoIterator<Item = usize>, limits: &Limits) -> Heard {
    let mut heard = Heard::default();
    let mut decoder = Decoder::default();
    let mut used = 0;
    for end in ends {
        loop {
            match decoder.decode(&stream[used..end], limits) {
                Ok(Some(request)) => {
                    heard.requests.push(request.args.iter().map(<[u8]>::to_vec).collect());
                    used += request.length;
                }
                Ok(None) => break,
                Err(error) => {
                    heard.error = Some(error);
                    return heard;
                }
            }
        }
    }
    heard
}

fn hear_all(stream: &[u8]) -> Heard {
    hear(stream, [stream.len()], &Limits::default())
}

fn array(args: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).bytes());
        bytes.extend(arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// A line in which every argument is quoted, and every byte of it escaped.
fn line(args: &[Vec<u8>]) -> Vec<u8> {
    let quote = |arg: &Vec<u8>| {
        let escaped: String = arg.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("\"{escaped}\"")
    };
    let words: Vec<_> = args.iter().map(quote).collect();
    format!("{}\r\n", words.join(" ")).into_bytes()
}

fn args() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..12), 0..6)
}

/// Bytes that are a stream of requests, or nearly.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let alphabet = prop::sample::select(b"*$-0123456789\r\n\"'\\ xaPING:\x16\xff".to_vec());
    let piece = prop_oneof![
        4 => args().prop_map(|args| array(&args)),
        2 => args().prop_map(|args| line(&args)),
        1 => vec(alphabet, 0..20),
        1 => vec(any::<u8>(), 0..20),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// So small that streams run into each of them.
const TIGHT: Limits = Limits { arguments: 4, bulk: 8, request: 40, inline: 30, backlog: 0 };

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(requests in vec((args(), any::<bool>()), 0..6)) {
        let encode = |(args, as_line): &(Vec<Vec<u8>>, bool)| {
            if *as_line { line(args) } else { array(args) }
        };
        let stream: Vec<u8> = requests.iter().flat_map(encode).collect();
        let requests = requests.into_iter().map(|(args, _)| args).collect();
        prop_assert_eq!(hear_all(&stream), Heard { requests, error: None });
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same(
        stream in stream(),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
        is_tight in any::<bool>(),
    ) {
        let limits = if is_tight { TIGHT } else { Limits::default() };
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        ends.push(stream.len());
        ends.sort_unstable();
        let whole = hear(&stream, [stream.len()], &limits);
        prop_assert_eq!(&hear(&stream, ends, &limits), &whole);
        prop_assert_eq!(&hear(&stream, 0..=stream.len(), &limits), &whole);
    }

    #[test]
    fn no_bytes_are_too_strange(stream in vec(any::<u8>(), 0..300)) {
        let whole = hear_all(&stream);
        prop_assert_eq!(hear(&stream, 0..=stream.len(), &Limits::default()), whole);
    }

    #[test]
    fn an_error_is_one_line_whatever_it_quotes(text in ".{0,40}") {
        let mut out = Writer::default();
        out.error(format_args!("ERR {text}"));
        let reply = out.bytes();
        prop_assert!(reply.starts_with(b"-ERR ") && reply.ends_with(b"\r\n"));
        let line = &reply[..reply.len() - 2];
        prop_assert!(!line.contains(&b'\r') && !line.contains(&b'\n'));
    }
}

#[test]
fn lines_are_split_as_redis_splits_them() {
    let words = |line: &str| {
        let heard = hear_all(format!("{line}\n").as_bytes());
        let texts =
            heard.requests.concat().into_iter().map(|word| String::from_utf8(word).unwrap());
        heard.error.map_or_else(|| Ok(texts.collect::<Vec<_>>()), Err)
    };
    let is = |line: &str, expected: &[&str]| {
        assert_eq!(words(line), Ok(expected.iter().map(|word| (*word).to_owned()).collect()));
    };
    is("PING", &["PING"]);
    is("  PING \t hello  \r", &["PING", "hello"]);
    is("", &[]);
    is(r#"ECHO "a b" 'c d' """#, &["ECHO", "a b", "c d", ""]);
    is(r#"ECHO "\x41\n\t\"\\\q\xZZ""#, &["ECHO", "A\n\t\"\\qxZZ"]);
    is(r"ECHO 'it\'s \n'", &["ECHO", r"it's \n"]);
    is(r#"ECHO a"b c""#, &["ECHO", "ab c"]);
    for unbalanced in [r#"ECHO "a"#, "ECHO 'a", r#"ECHO "a"b"#, r#"ECHO "a\""#] {
        assert_eq!(words(unbalanced), Err(ProtocolError::Quotes), "{unbalanced}");
    }
}

#[test]
fn what_breaks_the_protocol_is_told_apart() {
    use ProtocolError as Error;
    let many = "*1025\r\n";
    let long = format!("*1\r\n${}\r\n", 64 * 1024 + 1);
    let large = format!("*20\r\n{}", format!("$65000\r\n{}\r\n", "x".repeat(65_000)).repeat(17));
    let endless = "x".repeat(64 * 1024);
    for (stream, error) in [
        ("*x\r\n", Error::ArgumentCount),
        ("*01\r\n", Error::ArgumentCount),
        ("*1\rx", Error::ArgumentCount),
        (many, Error::ArgumentCount),
        ("*9999999999999999999999\r\n", Error::ArgumentCount),
        ("*1111111111111111111111111111111111111", Error::ArgumentCount),
        ("*1\r\n:1\r\n", Error::NotAnArgument(b':')),
        ("*1\r\n$-1\r\n", Error::ArgumentLength),
        ("*1\r\n$+1\r\n", Error::ArgumentLength),
        ("*1\r\n$\r\n", Error::ArgumentLength),
        (&long, Error::ArgumentLength),
        ("*1\r\n$4\r\nPINGxx", Error::ArgumentEnd),
        ("*1\r\n$4\r\nPING\n\n", Error::ArgumentEnd),
        (&large, Error::RequestLength),
        (&endless, Error::InlineLength),
        ("PING \"\n", Error::Quotes),
    ] {
        assert_eq!(hear_all(stream.as_bytes()).error, Some(error), "{stream:.40}");
    }
    // Up to the limits all is well.
    let longest = format!("*1\r\n${}\r\n{}\r\n", 64 * 1024, "x".repeat(64 * 1024));
    assert_eq!(hear_all(longest.as_bytes()).requests.len(), 1);
    assert_eq!(hear_all(b"*0\r\n*-1\r\n\r\n\n").requests, vec![Vec::<Vec<u8>>::new(); 4]);
}

#[test]
fn what_a_browser_sends_is_foreign() {
    for line in [
        "GET / HTTP/1.1\r\n",
        "POST /?x HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "Host: localhost\r\n",
        "host:localhost\r\n",
        "PRI * HTTP/2.0\r\n",
        "\x16\x03\x01\nPING\n",
    ] {
        let heard = hear_all(line.as_bytes());
        assert_eq!(heard.error, Some(ProtocolError::Foreign), "{line}");
        assert!(heard.requests.is_empty());
        // No need to wait for the end of the line.
        assert_eq!(hear_all(&line.as_bytes()[..8]).error, Some(ProtocolError::Foreign), "{line}");
    }
    // A request before it has been heard, and nothing after it is.
    let heard = hear_all(b"PING\r\nPOST / HTTP/1.1\r\nPING\r\n");
    assert_eq!(heard.requests.len(), 1);
    // As an argument, or where a command only looks like it, it is nothing special.
    assert_eq!(hear_all(b"ECHO GET\r\nGETTING x\r\n").error, None);
    assert_eq!(hear_all(b"*2\r\n$4\r\nECHO\r\n$5\r\nHost:\r\n").error, None);
}

#[test]
fn replies_are_written_as_the_protocol_says() {
    let write_all = |protocol| {
        let mut out = Writer::new(protocol);
        out.simple("OK");
        out.error("ERR no\r\nway");
        [0, -1, 16, i64::MAX, i64::MIN].into_iter().for_each(|number| out.integer(number));
        out.bulk(b"\r\n\0");
        out.bulk("");
        out.null();
        out.text("hi");
        out.array(2);
        out.set(3);
        out.map(4);
        String::from_utf8(out.bytes().to_vec()).unwrap()
    };
    let common = "+OK\r\n-ERR no  way\r\n:0\r\n:-1\r\n:16\r\n:9223372036854775807\r\n\
                  :-9223372036854775808\r\n$3\r\n\r\n\0\r\n$0\r\n\r\n";
    let older = format!("{common}$-1\r\n$2\r\nhi\r\n*2\r\n*3\r\n*8\r\n");
    let newer = format!("{common}_\r\n=6\r\ntxt:hi\r\n*2\r\n~3\r\n%4\r\n");
    assert_eq!(write_all(Protocol::Resp2), older);
    assert_eq!(write_all(Protocol::Resp3), newer);
}
