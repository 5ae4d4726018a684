use redis::{RedisError, Value};

/// Nested arrays: `CLUSTER SLOTS` has four levels.
const DEEPEST: usize = 8;

/// More elements than any reply has: a fully fragmented Cluster.
const MOST: usize = 1 << 20;

/// Parses a reply at the start of a buffer, and returns its length. `None` if it is incomplete.
///
/// # Errors
///
/// If it is not RESP2.
pub fn parse_reply(bytes: &[u8]) -> Result<Option<(Value, usize)>, RedisError> {
    let mut reader = Reader { bytes, at: 0 };
    Ok(reader.value(DEEPEST)?.map(|value| (value, reader.at)))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Option<Value>, RedisError> {
        let begin = self.at;
        let Some(line) = self.line() else { return Ok(None) };
        let (kind, rest) = line.split_first().ok_or_else(|| nonsense(b""))?;
        let value = match kind {
            b'$' => match length(rest)? {
                None => Value::Nil,
                Some(length) => {
                    let Some(bytes) = self.bulk(length)? else { return Ok(None) };
                    Value::BulkString(bytes.to_vec())
                }
            },
            b':' => Value::Int(number(rest)?),
            b'+' if rest == b"OK" => Value::Okay,
            b'+' => Value::SimpleString(String::from_utf8_lossy(rest).into_owned()),
            b'*' => match length(rest)? {
                None => Value::Nil,
                Some(count) if count > MOST || depth == 0 => return Err(nonsense(line)),
                Some(count) => {
                    let mut values = Vec::new();
                    for _ in 0..count {
                        let Some(value) = self.value(depth - 1)? else { return Ok(None) };
                        values.push(value);
                    }
                    Value::Array(values)
                }
            },
            // Rare: left to the library.
            b'-' => redis::parse_redis_value(&self.bytes[begin..self.at])?,
            _ => return Err(nonsense(line)),
        };
        Ok(Some(value))
    }

    /// The next line, without its end.
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\r').filter(|end| end + 1 < rest.len())?;
        self.at += end + 2;
        Some(&rest[..end])
    }

    /// So many bytes, and the end of a line.
    fn bulk(&mut self, length: usize) -> Result<Option<&'a [u8]>, RedisError> {
        let rest = &self.bytes[self.at..];
        let Some(end) = length.checked_add(2) else { return Err(nonsense(b"$")) };
        let Some(whole) = rest.get(..end) else { return Ok(None) };
        self.at += end;
        match whole.split_at(length) {
            (bytes, b"\r\n") => Ok(Some(bytes)),
            _ => Err(nonsense(b"$")),
        }
    }
}

/// A length, or `None` for nil.
fn length(text: &[u8]) -> Result<Option<usize>, RedisError> {
    match number(text)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| nonsense(text)),
    }
}

fn number(text: &[u8]) -> Result<i64, RedisError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| nonsense(text))
}

/// A parse error that does not quote data.
fn nonsense(line: &[u8]) -> RedisError {
    let begin = String::from_utf8_lossy(&line[..line.len().min(16)]).into_owned();
    (redis::ErrorKind::Parse, "an answer cannot be read", begin).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_kind_of_answer_is_read_as_the_crate_reads_it() {
        for text in [
            "+OK\r\n",
            "+PONG\r\n",
            ":-17\r\n",
            "$5\r\na\r\nbc\r\n",
            "$0\r\n\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "*0\r\n",
            "*3\r\n:1\r\n*1\r\n$1\r\na\r\n+x\r\n",
            "-ERR no\r\n",
            "-MOVED 3999 127.0.0.1:6381\r\n",
            "-NOSCRIPT No matching script. Please use EVAL.\r\n",
        ] {
            let (value, length) = parse_reply(text.as_bytes()).unwrap().unwrap();
            assert_eq!(value, redis::parse_redis_value(text.as_bytes()).unwrap(), "{text:?}");
            assert_eq!(length, text.len());
            let more = [text, "*1\r\n$"].concat();
            assert_eq!(parse_reply(more.as_bytes()).unwrap().unwrap().1, text.len());
            for end in 0..text.len() {
                assert!(
                    parse_reply(&text.as_bytes()[..end]).unwrap().is_none(),
                    "{:?}",
                    &text[..end]
                );
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_crate_reads(
            text in "([$*:+-](-?[0-9]{0,3}|OK|ab)\r\n|[a-z]{0,3}\r\n){0,6}",
        ) {
            if let Ok(Some((value, length))) = parse_reply(text.as_bytes()) {
                prop_assert_eq!(Ok(value), redis::parse_redis_value(&text.as_bytes()[..length]));
            }
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for text in ["HTTP/1.1 400\r\n", "\r\n", "$x\r\n", "$-2\r\n", ":\r\n", "$1\r\nabc\r\n"] {
            assert!(parse_reply(text.as_bytes()).is_err(), "{text:?}");
        }
        let deep = "*1\r\n".repeat(100);
        assert!(parse_reply(deep.as_bytes()).is_err());
        assert!(parse_reply(b"*9999999999\r\n").is_err());
    }
}
