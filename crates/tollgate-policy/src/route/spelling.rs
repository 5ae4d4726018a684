//! Which spellings of a path are alike.

use super::path::CanonicalPath;

/// Which spellings of a path are alike.
///
/// Services differ in that. By default, whatever any common service may take for a path is
/// that path: a limit must not be escaped by spelling.
///
/// ```
/// use tollgate_policy::{IgnoreCase, Limit, PathSpelling, Policy};
///
/// let policy = Policy::builder()
///     .path_spelling(PathSpelling::new().ignore_case(IgnoreCase::Never))
///     .limit(Limit::new("search", "10/s").path("/Search"))
///     .build()?;
/// # Ok::<(), tollgate_policy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
pub struct PathSpelling {
    /// Where capitals do not count: in `patterns`, `everywhere`, or `never`. Default:
    /// `patterns`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<IgnoreCase>"))]
    pub(crate) ignore_case: IgnoreCase,
    /// Whether `;version=2` at the end of a segment is left out. Default: true.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub(crate) strip_parameters: bool,
    /// Whether white space at the end of a segment, such as `%20`, is left out. Default: true.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub(crate) trim_spaces: bool,
    /// What `%2F` is: a `slash`, `text` within a segment, or `both`. Default: `both`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<EncodedSlash>"))]
    pub(crate) encoded_slash: EncodedSlash,
}

/// Where capitals in a path do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum IgnoreCase {
    /// They always count.
    Never,
    /// In what patterns say, and not in the values of their parameters.
    #[default]
    Patterns,
    /// In the values of parameters, too.
    Everywhere,
}

/// What `%2F` in a path is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum EncodedSlash {
    /// A part of its segment.
    Text,
    /// The end of a segment.
    Slash,
    /// Either: a limit is met if it is met by one of the two.
    #[default]
    Both,
}

impl PathSpelling {
    /// All that may be alike is alike.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says where capitals do not count.
    #[must_use]
    pub fn ignore_case(self, ignore_case: IgnoreCase) -> Self {
        Self { ignore_case, ..self }
    }

    /// Says whether `;version=2` at the end of a segment is left out.
    #[must_use]
    pub fn strip_parameters(self, strip_parameters: bool) -> Self {
        Self { strip_parameters, ..self }
    }

    /// Says whether white space at the end of a segment, such as `%20`, is left out.
    #[must_use]
    pub fn trim_spaces(self, trim_spaces: bool) -> Self {
        Self { trim_spaces, ..self }
    }

    /// Says what `%2F` is.
    #[must_use]
    pub fn encoded_slash(self, encoded_slash: EncodedSlash) -> Self {
        Self { encoded_slash, ..self }
    }
}

impl Default for PathSpelling {
    fn default() -> Self {
        Self {
            ignore_case: IgnoreCase::default(),
            strip_parameters: true,
            trim_spaces: true,
            encoded_slash: EncodedSlash::default(),
        }
    }
}

/// The path of a request, in every way that it may be read.
#[derive(Clone, Debug)]
pub(crate) struct RequestPath<'r> {
    /// What the request is counted under, where limits ask for parts of the path.
    first: CanonicalPath<'r>,
    second: Option<CanonicalPath<'r>>,
}

impl<'r> RequestPath<'r> {
    /// `None` if it does not begin with a slash, as the `*` of an `OPTIONS` request or
    /// the authority of a `CONNECT`.
    pub(crate) fn of(path: &'r str, spelling: &PathSpelling) -> Option<Self> {
        let is_text = spelling.encoded_slash == EncodedSlash::Text;
        let decoded = if is_text { None } else { with_slashes(path) };
        let Some(decoded) = decoded else {
            return Some(Self { first: CanonicalPath::of(path, spelling)?, second: None });
        };
        // What some services take for two resources is one for others, which are counted alike.
        let first = CanonicalPath::of(&decoded, spelling)?.into_owned();
        let is_both = spelling.encoded_slash == EncodedSlash::Both;
        let second = if is_both { CanonicalPath::of(path, spelling) } else { None };
        Some(Self { first, second })
    }

    /// Every way to read it.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &CanonicalPath<'r>> {
        [&self.first].into_iter().chain(&self.second)
    }
}

/// The path with a slash for each that is encoded, if there is one.
pub(super) fn with_slashes(path: &str) -> Option<String> {
    let is_encoded = |at: &usize| path.as_bytes()[*at..].get(1..3).is_some_and(is_slash);
    let first = path.match_indices('%').map(|(at, _)| at).find(is_encoded)?;
    let (mut decoded, mut rest) = (path[..first].to_owned(), &path[first..]);
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        let is_encoded = after.as_bytes().get(..2).is_some_and(is_slash);
        decoded.push(if is_encoded { '/' } else { '%' });
        rest = if is_encoded { &after[2..] } else { after };
    }
    decoded.push_str(rest);
    Some(decoded)
}

fn is_slash(digits: &[u8]) -> bool {
    digits.eq_ignore_ascii_case(b"2f")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(path: &str, encoded_slash: EncodedSlash) -> Vec<String> {
        let spelling = PathSpelling { encoded_slash, ..PathSpelling::default() };
        let path = RequestPath::of(path, &spelling).unwrap();
        path.readings().map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn an_encoded_slash_is_read_as_the_policy_says() {
        use EncodedSlash::{Both, Slash, Text};
        for path in ["/a%2Fb", "/a%2fb/", "/%61%2F/b", "/a%2f%2Fb", "/x%2f..%2fa%2Fb"] {
            assert_eq!(readings(path, Slash), ["/a/b"], "{path}");
            assert_eq!(readings(path, Both)[0], "/a/b", "{path}");
            assert_eq!(readings(path, Both).len(), 2, "{path}");
        }
        assert_eq!(readings("/a%2fb", Text), ["/a%2Fb"]);
        assert_eq!(readings("/a%2fb", Both), ["/a/b", "/a%2Fb"]);
        assert_eq!(readings("/login%2f", Both), ["/login", "/login%2F"]);
    }

    #[test]
    fn what_has_none_is_read_in_one_way() {
        for path in ["/", "/a/b", "/a%", "/a%2", "/%2", "/%252F", "/a%é"] {
            assert_eq!(readings(path, EncodedSlash::Both).len(), 1, "{path}");
        }
    }
}
