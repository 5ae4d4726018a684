//! The path of a request, in the one spelling that stands for all its others.

use std::borrow::Cow;

use super::spelling::{IgnoreCase, PathSpelling};

/// A path in canonical form: alike if lenient servers would treat it alike, so that
/// nobody escapes a limit by spelling.
///
/// Percent escapes are decoded, but for `%2F`: it is part of a segment and ends none.
/// Invalid escapes stay as they are. Empty segments vanish, `.` and `..` are resolved
/// and never lead above the root, and a trailing slash does not count. The rest is as its
/// [`PathSpelling`] says.
///
/// Borrows the path if it is canonical already, but for a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CanonicalPath<'r> {
    /// Each segment with a slash before it; `/` if there is none.
    bytes: Cow<'r, [u8]>,
    /// True if literals, which are in lower case then, match whatever the case.
    ignores_case: bool,
}

impl<'r> CanonicalPath<'r> {
    /// `None` if it does not begin with a slash, as the `*` of an `OPTIONS` request or
    /// the authority of a `CONNECT`.
    pub(crate) fn of(path: &'r str, spelling: &PathSpelling) -> Option<Self> {
        let path = path.as_bytes();
        if !path.starts_with(b"/") {
            return None;
        }
        let mut bytes = match path {
            _ if !is_plain(path) => Cow::Owned(resolve(path, spelling)),
            [before @ .., b'/'] if !before.is_empty() => Cow::Borrowed(before),
            _ => Cow::Borrowed(path),
        };
        if spelling.ignore_case == IgnoreCase::Everywhere
            && bytes.iter().any(u8::is_ascii_uppercase)
        {
            bytes.to_mut().make_ascii_lowercase();
        }
        Some(Self { bytes, ignores_case: spelling.ignore_case != IgnoreCase::Never })
    }

    pub(super) fn into_owned<'o>(self) -> CanonicalPath<'o> {
        CanonicalPath { bytes: Cow::Owned(self.bytes.into_owned()), ..self }
    }

    /// True if there was nothing to decode, strip or resolve, so that there is no other way to
    /// read it.
    pub(super) fn is_as_sent(&self) -> bool {
        matches!(self.bytes, Cow::Borrowed(_))
    }

    pub(super) fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// The path with its leading slash. Once decoded, it need not be UTF-8.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn segments(&self) -> Segments<'_> {
        Segments { rest: self.as_bytes().strip_prefix(b"/").unwrap_or_default() }
    }

    pub(crate) fn segment(&self, index: usize) -> Option<&[u8]> {
        self.segments().nth(index)
    }

    /// Everything from that segment to the end, with the slashes between.
    pub(crate) fn rest(&self, index: usize) -> Option<&[u8]> {
        let mut segments = self.segments();
        for _ in 0..index {
            segments.next()?;
        }
        Some(segments.rest).filter(|rest| !rest.is_empty())
    }
}

/// The segments of a canonical path from one of them on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments<'p> {
    rest: &'p [u8],
}

impl<'p> Iterator for Segments<'p> {
    type Item = &'p [u8];

    fn next(&mut self) -> Option<&'p [u8]> {
        // No segment of a canonical path is empty.
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| *byte == b'/').unwrap_or(self.rest.len());
        let (segment, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix(b"/").unwrap_or_default();
        Some(segment)
    }
}

/// True if a segment is the one that a pattern names.
pub(super) fn is_literal(literal: &[u8], segment: &[u8], ignores_case: bool) -> bool {
    if ignores_case { literal.eq_ignore_ascii_case(segment) } else { literal == segment }
}

/// Appends a segment with its escapes decoded, and without what does not count.
pub(super) fn decode(segment: &[u8], spelling: &PathSpelling, decoded: &mut Vec<u8>) {
    let start = decoded.len();
    let mut rest = match segment.iter().position(|byte| *byte == b';') {
        Some(semicolon) if spelling.strip_parameters => &segment[..semicolon],
        _ => segment,
    };
    while let Some((first, others)) = rest.split_first() {
        let (byte, others) = unescape(rest).unwrap_or((*first, others));
        match byte {
            b'/' => decoded.extend_from_slice(b"%2F"),
            _ => decoded.push(byte),
        }
        rest = others;
    }
    while spelling.trim_spaces && decoded[start..].last().is_some_and(|byte| *byte <= b' ') {
        decoded.pop();
    }
}

/// The byte that stands escaped at the beginning, and what follows.
fn unescape(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'%', high, low, rest @ ..] = text else { return None };
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = digit(high)? << 4 | digit(low)?;
    Some((u8::try_from(byte).ok()?, rest))
}

/// True if there is nothing to decode, strip or resolve. False for a hidden file too: it is
/// rare, and resolved to itself.
fn is_plain(path: &[u8]) -> bool {
    // Looks at all bytes, whatever it finds, so that it looks at many of them at once.
    let odd = path.iter().zip(path.iter().skip(1)).fold(false, |odd, (byte, next)| {
        let is_odd = matches!(next, 0..=b' ' | b'%' | b';' | b'\\');
        odd | is_odd | ((*byte == b'/') & matches!(next, b'/' | b'.'))
    });
    !odd
}

fn resolve(path: &[u8], spelling: &PathSpelling) -> Vec<u8> {
    // Neither decoding nor resolving makes a path longer.
    let mut canonical = Vec::with_capacity(path.len());
    for segment in path.split(|byte| *byte == b'/') {
        let parent = canonical.len();
        canonical.push(b'/');
        decode(segment, spelling, &mut canonical);
        match &canonical[parent + 1..] {
            b"" | b"." => canonical.truncate(parent),
            b".." => {
                let slash = canonical[..parent].iter().rposition(|byte| *byte == b'/');
                canonical.truncate(slash.unwrap_or(0));
            }
            _ => {}
        }
    }
    if canonical.is_empty() {
        canonical.push(b'/');
    }
    canonical
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(path: &str) -> Option<CanonicalPath<'_>> {
        CanonicalPath::of(path, &PathSpelling::default())
    }

    /// Paths that are the same, the canonical one first.
    const SAME: &[&[&str]] = &[
        &["/", "//", "/.", "/..", "/./", "/a/..", "/%2e%2E/", "/../../a/..", "/a/b/../.."],
        &["/a", "/a/", "//a", "/a//", "/./a", "/a/.", "/%61", "/b/../a", "/../a", "/b/%2e%2E/a/"],
        &[
            "/a/b",
            "/a//b",
            "/a/./b",
            "/a/%2e/b",
            "/a/x/../b",
            "/a//x/..//b",
            "/%61/%62",
            "/x/../a/b/",
        ],
        &["/A", "/%41"],
        &["/a%2Fb", "/a%2fb", "/%61%2fb", "/x/../a%2Fb"],
        &["/..%2Fa", "/%2e%2e%2fa"],
        &["/a%zz", "/%61%zz"],
        &["/a%", "/%61%"],
        &["/a%2", "/%61%2"],
        &["/.hidden", "/%2ehidden", "//.hidden"],
        &["/...", "/%2e.%2E"],
        &["/café", "/caf%C3%A9", "/caf%c3%a9/"],
        &["/a b", "/a%20b"],
        &["/a", "/a%20", "/a%20%09", "/a;", "/a;b=c", "/a;b;c/", "/a%00", "/a;b%2Fc", "/%61;b"],
        &["/a/b", "/a;x/b;y", "/a;/b%20", "/..;/a/b", "/x/..;y/a/b"],
    ];

    #[test]
    fn every_spelling_of_a_path_is_the_same() {
        for spellings in SAME {
            for spelling in *spellings {
                let path = of(spelling).unwrap();
                let shown = String::from_utf8_lossy(path.as_bytes());
                assert_eq!(shown, spellings[0], "{spelling:?}");
            }
        }
    }

    #[test]
    fn what_is_escaped_is_not_the_end_of_a_segment() {
        for path in ["/a%3Bb", "/a%3bb;c", "/a%3bb%20"] {
            assert_eq!(of(path).unwrap().as_bytes(), b"/a;b", "{path:?}");
        }
    }

    #[test]
    fn what_does_not_count_can_be_made_to_count() {
        let kept = PathSpelling::new().strip_parameters(false).trim_spaces(false);
        for (path, expected) in [("/a;b/%63", "/a;b/c"), ("/a%20/", "/a "), ("/A;x", "/A;x")] {
            let path = CanonicalPath::of(path, &kept).unwrap();
            assert_eq!(path.as_bytes(), expected.as_bytes());
        }
        let everywhere = PathSpelling::new().ignore_case(IgnoreCase::Everywhere);
        assert_eq!(CanonicalPath::of("/A/%42;C", &everywhere).unwrap().as_bytes(), b"/a/b");
    }

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(of("/%2541").unwrap().as_bytes(), b"/%41");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_decoded_too() {
        assert_eq!(of("/%ff/%80").unwrap().as_bytes(), b"/\xff/\x80");
    }

    #[test]
    fn what_does_not_begin_with_a_slash_is_not_understood() {
        for path in ["", "*", "example.com:443", "a/b", "%2Fa", "http://example.com/a"] {
            assert_eq!(of(path), None, "{path:?}");
        }
    }

    #[test]
    fn a_canonical_path_is_borrowed() {
        for path in ["/", "/a", "/a/", "/a/b.c/d..", "/café"] {
            assert!(matches!(of(path).unwrap().bytes, Cow::Borrowed(_)), "{path:?}");
        }
    }

    #[test]
    fn segments_are_counted_from_the_first() {
        let path = of("/a//b%2Fc/./d/").unwrap();
        assert_eq!(path.segments().collect::<Vec<_>>(), [&b"a"[..], b"b%2Fc", b"d"]);
        assert_eq!(path.segment(1), Some(&b"b%2Fc"[..]));
        assert_eq!(path.segment(3), None);
        assert_eq!(path.rest(0), Some(&b"a/b%2Fc/d"[..]));
        assert_eq!(path.rest(2), Some(&b"d"[..]));
        assert_eq!(path.rest(3), None);
        assert_eq!(path.rest(usize::MAX), None);
    }

    #[test]
    fn the_root_has_no_segments() {
        let root = of("/").unwrap();
        assert_eq!(root.segments().next(), None);
        assert_eq!(root.segment(0), None);
        assert_eq!(root.rest(0), None);
    }

    proptest! {
        #[test]
        fn any_text_can_be_asked_for_its_path(text in any::<String>()) {
            prop_assert_eq!(of(&text).is_some(), text.starts_with('/'));
        }

        #[test]
        fn a_canonical_path_is_its_own_canonical_form(
            text in "/([ab%2eEfF./]|/\\.|%2e|%61){0,12}",
        ) {
            let path = of(&text).unwrap();
            let segments = path.segments().collect::<Vec<_>>();
            prop_assert_eq!(path.as_bytes(), [b"/", segments.join(&b'/').as_slice()].concat());
            prop_assert!(segments.iter().all(|segment| !matches!(*segment, b"" | b"." | b"..")));
            if let Ok(text) = str::from_utf8(path.as_bytes()) && !text.contains('%') {
                prop_assert_eq!(of(text).unwrap(), path.clone());
            }
        }
    }
}
