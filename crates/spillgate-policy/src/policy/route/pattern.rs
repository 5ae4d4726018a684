//! Patterns of paths: `/users/{id}`, `/public/{*rest}`.

use std::fmt;

use super::path::{CanonicalPath, is_literal};
use super::segment::Segment;
use super::spelling::{EncodedSlash, PathSpelling, with_slashes};

/// The most bytes of a pattern, and so of any of its segments.
pub(super) const MOST_BYTES: usize = 1024;

const MOST_SEGMENTS: usize = 64;

/// Which paths a limit is for.
///
/// A segment is a literal, `{name}` for exactly one segment, or, at the end,
/// `{*name}` for one or more. Literals are made canonical as the paths of requests
/// are; a brace in them is written twice.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// As it was written.
    text: Box<str>,
    segments: Vec<Segment>,
}

/// Where in a path the value of a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) index: usize,
    /// From there to the end, and not the one segment.
    pub(crate) rest: bool,
}

impl Pattern {
    /// The error says what is wrong, and what would be right.
    pub(crate) fn parse(text: &str, spelling: &PathSpelling) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!(
                "a path of {} bytes is too long; use at most {MOST_BYTES}",
                text.len()
            ));
        }
        let Some(path) = text.strip_prefix('/') else {
            return Err(format!(
                "the path {text:?} does not begin with a slash; write it like \"/users/{{id}}\""
            ));
        };
        if let Some(mark) = path.chars().find(|c| matches!(c, '?' | '#')) {
            return Err(format!(
                "the path {text:?} has a {mark:?}, which ends a path; leave it out with what \
                 follows, or write \"%{:02X}\" for the character",
                u32::from(mark),
            ));
        }
        let is_slash = spelling.encoded_slash == EncodedSlash::Slash;
        let decoded = if is_slash { with_slashes(path) } else { None };
        let mut segments = Vec::new();
        for part in decoded.as_deref().unwrap_or(path).split('/') {
            match Segment::parse(part, spelling)? {
                Segment::Literal(literal) if matches!(&*literal, b"" | b".") => {}
                Segment::Literal(literal) if *literal == *b".." => leave(&mut segments)?,
                segment => segments.push(segment),
            }
        }
        let pattern = Self { text: text.into(), segments };
        pattern.check()?;
        Ok(pattern)
    }

    /// Checks what no segment can tell alone.
    fn check(&self) -> Result<(), String> {
        let count = self.segments.len();
        if count > MOST_SEGMENTS {
            return Err(format!(
                "a path of {count} segments is too long; use at most {MOST_SEGMENTS}"
            ));
        }
        for (index, segment) in self.segments.iter().enumerate() {
            let Some(name) = segment.name() else { continue };
            if self.parameters().filter(|other| *other == name).count() > 1 {
                return Err(format!("two parameters are called {name:?}; give each its own name"));
            }
            if matches!(segment, Segment::Rest(_)) && index + 1 < count {
                return Err(format!(
                    "\"{{*{name}}}\" takes the rest of the path, so nothing can follow it; \
                     write \"{{{name}}}\" for a single segment"
                ));
            }
        }
        Ok(())
    }

    /// True if the path is one of the pattern. Slower than a tree of many patterns.
    pub(crate) fn matches(&self, path: &CanonicalPath<'_>) -> bool {
        let mut theirs = path.segments();
        for mine in &self.segments {
            match (mine, theirs.next()) {
                (_, None) => return false,
                (Segment::Rest(_), Some(_)) => return true,
                (Segment::One(_), Some(_)) => {}
                (Segment::Literal(literal), Some(segment))
                    if is_literal(literal, segment, path.ignores_case()) => {}
                (Segment::Literal(_), Some(_)) => return false,
            }
        }
        theirs.next().is_none()
    }

    /// True if every path of the other pattern is one of this.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let mut theirs = other.segments.iter();
        for mine in &self.segments {
            match (mine, theirs.next()) {
                (_, None) => return false,
                (Segment::Rest(_), Some(_)) => return true,
                (_, Some(Segment::Rest(_))) => return false,
                (Segment::One(_), Some(_)) => {}
                (Segment::Literal(_), Some(their)) if mine == their => {}
                (Segment::Literal(_), Some(_)) => return false,
            }
        }
        theirs.next().is_none()
    }

    /// The first segment, if it is a literal.
    pub(crate) fn first_literal(&self) -> Option<&[u8]> {
        match self.segments.first() {
            Some(Segment::Literal(literal)) => Some(literal),
            _ => None,
        }
    }

    /// The parameter of that name.
    pub(crate) fn parameter(&self, name: &str) -> Option<Parameter> {
        let mut segments = self.segments.iter().enumerate();
        let (index, segment) = segments.find(|(_, segment)| segment.name() == Some(name))?;
        Some(Parameter { index, rest: matches!(segment, Segment::Rest(_)) })
    }

    /// The names of the parameters, in their order.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(Segment::name)
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Parameter {
    /// What the parameter stands for in a path of its pattern.
    pub(crate) fn value<'p>(&self, path: &'p CanonicalPath<'_>) -> Option<&'p [u8]> {
        if self.rest { path.rest(self.index) } else { path.segment(self.index) }
    }
}

/// Resolves a `..`.
fn leave(segments: &mut Vec<Segment>) -> Result<(), String> {
    match segments.pop().as_ref().and_then(Segment::name) {
        None => Ok(()),
        Some(name) => Err(format!(
            "the segment \"..\" undoes the parameter {name:?}; write the path without both"
        )),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Patterns over few segments, so that many match.
    pub(in crate::policy::route) fn patterns() -> impl Strategy<Value = Pattern> {
        let part = select(vec!["a", "b", "%61", "a%2fb", "", ".", "{}", "{}"]);
        (vec(part, 0..5), any::<bool>()).prop_map(|(parts, rest)| {
            let mut text = String::new();
            for (index, part) in parts.iter().enumerate() {
                text += &format!("/{}", part.replace("{}", &format!("{{p{index}}}")));
            }
            text += if rest { "/{*rest}" } else { "/" };
            parse(&text).unwrap()
        })
    }

    /// Paths over the same segments, spelled in every way.
    pub(in crate::policy::route) fn paths() -> impl Strategy<Value = String> {
        let part = select(vec![
            "a", "b", "c", "a", "b", "%61", "a%2Fb", "a%2fb", "", ".", "..", "%2e", "%2E%2e", "%",
            "%zz",
        ]);
        vec(part, 0..7).prop_map(|parts| format!("/{}", parts.join("/")))
    }

    pub(in crate::policy::route) fn parse(text: &str) -> Result<Pattern, String> {
        Pattern::parse(text, &PathSpelling::default())
    }

    pub(in crate::policy::route) fn canonical(path: &str) -> CanonicalPath<'_> {
        CanonicalPath::of(path, &PathSpelling::default()).unwrap()
    }

    fn matches(pattern: &str, path: &str) -> bool {
        parse(pattern).unwrap().matches(&canonical(path))
    }

    /// Patterns, paths that are theirs, and paths that are not.
    const MATCHES: &[(&str, &[&str], &[&str])] = &[
        ("/", &["/", "//", "/a/.."], &["/a"]),
        (
            "/users",
            &["/users", "/users/", "//users", "/%75sers", "/Users", "/users;v=2", "/users%20"],
            &["/", "/users/7", "/user"],
        ),
        ("/users/", &["/users", "/users/"], &["/users/7"]),
        ("/a/./b/../c//", &["/a/c"], &["/a/b/c"]),
        ("/{id}", &["/7", "/7/", "/a%2Fb"], &["/", "/7/8"]),
        (
            "/users/{id}/posts",
            &["/users/7/posts"],
            &["/users/posts", "/users//posts", "/users/7/8/posts"],
        ),
        (
            "/public/{*rest}",
            &["/public/a", "/public/a/b/c"],
            &["/public", "/public/", "/public/.", "/a"],
        ),
        ("/{*rest}", &["/a", "/a/b"], &["/"]),
        ("/caf%C3%A9", &["/café", "/caf%c3%a9"], &["/cafe"]),
        ("/café", &["/café", "/caf%c3%a9"], &[]),
        ("/a%2fb", &["/a%2Fb", "/a%2fb"], &["/a/b"]),
        ("/{{id}}", &["/{id}", "/%7Bid%7D"], &["/7"]),
        ("/%7Bid%7D", &["/{id}"], &["/7"]),
        ("/a:b/%3Ac/%2A", &["/a:b/:c/*"], &[]),
    ];

    #[test]
    fn a_pattern_matches_its_paths_in_every_spelling_and_no_others() {
        for (pattern, theirs, others) in MATCHES {
            for path in *theirs {
                assert!(matches(pattern, path), "{pattern:?} should match {path:?}");
            }
            for path in *others {
                assert!(!matches(pattern, path), "{pattern:?} should not match {path:?}");
            }
        }
    }

    /// Texts that are no patterns, and what the message must say.
    const BAD: &[(&str, &[&str])] = &[
        ("", &["slash", "\"/users/{id}\""]),
        ("users", &["\"users\"", "slash"]),
        ("/a?b=1", &["'?'", "\"%3F\""]),
        ("/a#b", &["'#'", "\"%23\""]),
        ("/a/{id}.json", &["\"{id}.json\"", "does not fill it"]),
        ("/{a/b}", &["\"{a\"", "not closed"]),
        ("/{id}/posts/{id}", &["two parameters", "\"id\""]),
        ("/{id}/{*id}", &["two parameters", "\"id\""]),
        ("/{*rest}/a", &["\"{*rest}\"", "nothing can follow", "\"{rest}\""]),
        ("/{*a}/{*b}", &["\"{*a}\"", "nothing can follow"]),
        ("/a/{id}/..", &["\"..\"", "\"id\""]),
    ];

    #[test]
    fn a_bad_pattern_is_refused_with_a_reason() {
        for (text, reasons) in BAD {
            let message = parse(text).unwrap_err();
            for reason in *reasons {
                assert!(message.contains(reason), "{text:?}: {message:?} lacks {reason:?}");
            }
        }
    }

    #[test]
    fn a_pattern_has_at_most_1024_bytes_and_64_segments() {
        assert!(parse(&format!("/{}", "a".repeat(1023))).is_ok());
        let message = parse(&format!("/{}", "a".repeat(1024))).unwrap_err();
        assert!(message.contains("1025 bytes") && message.contains("at most 1024"), "{message}");
        assert!(parse(&"/a".repeat(64)).is_ok());
        let message = parse(&"/a".repeat(65)).unwrap_err();
        assert!(message.contains("65 segments") && message.contains("at most 64"), "{message}");
    }

    #[test]
    fn a_parameter_is_found_in_the_path() {
        let pattern = parse("/./users//{user-id}/{*the_rest}").unwrap();
        assert_eq!(pattern.parameters().collect::<Vec<_>>(), ["user-id", "the_rest"]);
        let path = canonical("/users/%37/a//b");
        let value = |name| pattern.parameter(name)?.value(&path);
        assert_eq!(value("user-id"), Some(&b"7"[..]));
        assert_eq!(value("the_rest"), Some(&b"a/b"[..]));
        assert_eq!(value("users"), None);
    }

    #[test]
    fn a_pattern_is_shown_as_it_was_written() {
        for text in ["/", "/a//%61/./{id}/", "/{{x}}/{*rest}"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    /// Patterns, those they cover, and those they do not.
    const COVERS: &[(&str, &[&str], &[&str])] = &[
        ("/", &["/"], &["/a", "/{id}", "/{*rest}"]),
        ("/a", &["/a", "/%61/"], &["/b", "/{id}", "/a/b", "/"]),
        ("/{id}", &["/a", "/{other}"], &["/", "/{*rest}", "/a/b"]),
        ("/{*rest}", &["/a", "/{id}", "/a/{id}/c", "/{*other}"], &["/"]),
        ("/{id}/{*rest}", &["/a/b", "/a/{*rest}"], &["/{*rest}", "/{id}"]),
    ];

    #[test]
    fn a_pattern_covers_those_that_match_nothing_more() {
        for (pattern, covered, others) in COVERS {
            let pattern = parse(pattern).unwrap();
            for other in *covered {
                assert!(pattern.covers(&parse(other).unwrap()), "{pattern} covers {other}");
            }
            for other in *others {
                assert!(!pattern.covers(&parse(other).unwrap()), "{pattern}, {other}");
            }
        }
    }

    /// A path of the pattern that no literal matches but its own. The rest has so many
    /// segments.
    fn witness(pattern: &Pattern, rest: usize) -> String {
        let mut path = String::from("/");
        for segment in pattern.segments() {
            match segment {
                Segment::Literal(literal) => path += str::from_utf8(literal).unwrap(),
                Segment::One(_) => path += "other",
                Segment::Rest(_) => path += &"other/".repeat(rest),
            }
            path += "/";
        }
        path
    }

    proptest! {
        #![proptest_config(spillgate_testing::strategy::cases(2_000))]

        #[test]
        fn any_text_is_a_pattern_or_an_error(
            text in any::<String>(),
            likely in "/([a{}*:%2./]|\\{\\*?[a-c]\\}){0,12}",
        ) {
            let _ = parse(&text);
            let _ = parse(&likely);
        }

        #[test]
        fn a_path_is_a_pattern_of_itself(path in paths()) {
            let pattern = parse(&path).unwrap();
            prop_assert!(pattern.matches(&canonical(&path)));
        }

        #[test]
        fn a_pattern_matches_what_those_it_covers_match(
            wide in patterns(),
            narrow in patterns(),
            path in paths(),
        ) {
            let path = canonical(&path);
            if wide.covers(&narrow) && narrow.matches(&path) {
                prop_assert!(wide.matches(&path));
            }
        }

        #[test]
        fn a_pattern_covers_another_if_it_matches_what_is_unlikely(
            wide in patterns(),
            narrow in patterns(),
        ) {
            let unlikely = [1, 9].map(|rest| witness(&narrow, rest));
            let all = unlikely.iter().all(|path| wide.matches(&canonical(path)));
            prop_assert_eq!(wide.covers(&narrow), all, "{} {}", wide, narrow);
        }

        #[test]
        fn a_parameter_has_a_value_in_every_path_of_its_pattern(
            pattern in patterns(),
            path in paths(),
        ) {
            let path = canonical(&path);
            if pattern.matches(&path) {
                for name in pattern.parameters() {
                    prop_assert!(pattern.parameter(name).unwrap().value(&path).is_some());
                }
            }
        }
    }
}
