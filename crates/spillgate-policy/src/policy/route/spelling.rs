//! Which spellings of a path are alike.

use smallvec::{SmallVec, smallvec};

use super::path::CanonicalPath;

/// Which spellings of a path are alike.
///
/// Services differ in that. By default a request meets a limit if it does in any of the readings
/// that are named here: a limit must not be escaped by spelling. Dots at the end of a segment,
/// letters that are not ASCII, and escapes of escapes are not among them.
///
/// ```
/// use spillgate_policy::{IgnoreCase, Limit, PathSpelling, Policy};
///
/// let policy = Policy::builder()
///     .path_spelling(PathSpelling::new().ignore_case(IgnoreCase::Never))
///     .limit(Limit::new("search", "10/s").path("/Search"))
///     .build()?;
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
#[must_use]
pub struct PathSpelling {
    /// Where case is ignored: in `patterns`, `everywhere`, or `never`. Default: `patterns`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<IgnoreCase>"))]
    pub(crate) ignore_case: IgnoreCase,
    /// Whether `;version=2` at the end of a segment is optional. Default: true.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub(crate) strip_parameters: bool,
    /// Whether white space at the end of a segment, such as `%20`, is optional. Default: true.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub(crate) trim_spaces: bool,
    /// What `%2F`, `\` and `%5C` are: a `slash`, `text` within a segment, or `both`. Default:
    /// `both`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<EncodedSlash>"))]
    pub(crate) encoded_slash: EncodedSlash,
}

/// Where the case of a path is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum IgnoreCase {
    /// Nowhere.
    Never,
    /// In what patterns say, and not in the values of their parameters.
    #[default]
    Patterns,
    /// In the values of parameters, too.
    Everywhere,
}

/// What `%2F`, `\` and `%5C` in a path are.
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
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets where case is ignored.
    pub fn ignore_case(self, ignore_case: IgnoreCase) -> Self {
        Self { ignore_case, ..self }
    }

    /// Sets whether a limit is met with or without `;version=2` at the end of a segment.
    pub fn strip_parameters(self, strip_parameters: bool) -> Self {
        Self { strip_parameters, ..self }
    }

    /// Sets whether a limit is met with or without white space, such as `%20`, at the end of a
    /// segment.
    pub fn trim_spaces(self, trim_spaces: bool) -> Self {
        Self { trim_spaces, ..self }
    }

    /// Sets what `%2F`, `\` and `%5C` are.
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

/// The path of a request, in every way that services may read it. A limit is met if it is met in
/// one of them.
///
/// No single reading is safe: `/search/;x` without what follows the semicolon escapes a limit
/// for `/search/{q}`, and with it `/login;x` escapes one for `/login`.
#[derive(Clone, Debug)]
pub(crate) struct RequestPath<'r>(SmallVec<[CanonicalPath<'r>; 1]>);

impl<'r> RequestPath<'r> {
    /// `None` if it does not begin with a slash, as the `*` of an `OPTIONS` request or
    /// the authority of a `CONNECT`.
    pub(crate) fn of(path: &'r str, spelling: &PathSpelling) -> Option<Self> {
        let lenient = CanonicalPath::of(path, spelling)?;
        if lenient.is_as_sent() {
            return Some(Self(smallvec![lenient]));
        }
        let literal = spelling.strip_parameters(false).trim_spaces(false);
        let mut readings = SmallVec::new();
        let mut add = |reading: CanonicalPath<'r>| {
            if !readings.contains(&reading) {
                readings.push(reading);
            }
        };
        let is_text = spelling.encoded_slash == EncodedSlash::Text;
        let decoded = if is_text { None } else { with_slashes(path) };
        // What some services take for two resources is one for others, so the first reading, under
        // which requests are counted, is the one in which most are alike.
        if let Some(decoded) = &decoded {
            add(CanonicalPath::of(decoded, spelling)?.into_owned());
            add(CanonicalPath::of(decoded, &literal)?.into_owned());
        }
        if decoded.is_none() || spelling.encoded_slash == EncodedSlash::Both {
            add(lenient);
            add(CanonicalPath::of(path, &literal)?);
        }
        Some(Self(readings))
    }

    /// Every way to read it.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &CanonicalPath<'r>> {
        self.0.iter()
    }
}

/// The path with a slash for each that is encoded or leans backwards, if there is one.
pub(super) fn with_slashes(path: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut rest = path;
    while let Some(at) = rest.find(['%', '\\']) {
        let (before, after) = rest.split_at(at);
        let encoded = after.get(1..3).is_some_and(is_slash);
        let length = if after.starts_with('\\') { 1 } else { 3 };
        decoded.push_str(before);
        let is_slash = length == 1 || encoded;
        decoded.push(if is_slash { '/' } else { '%' });
        rest = &after[if is_slash { length } else { 1 }..];
    }
    decoded.push_str(rest);
    (decoded != path).then_some(decoded)
}

fn is_slash(digits: &str) -> bool {
    digits.eq_ignore_ascii_case("2f") || digits.eq_ignore_ascii_case("5c")
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
        for path in
            ["/a%2Fb", "/a%2fb/", "/%61%2F/b", "/a%2f%2Fb", "/x%2f..%2fa%2Fb", "/a\\b", "/a%5Cb"]
        {
            assert_eq!(readings(path, Slash), ["/a/b"], "{path}");
            assert_eq!(readings(path, Both)[0], "/a/b", "{path}");
            assert_eq!(readings(path, Both).len(), 2, "{path}");
        }
        assert_eq!(readings("/a%2fb", Text), ["/a%2Fb"]);
        assert_eq!(readings("/a%2fb", Both), ["/a/b", "/a%2Fb"]);
        assert_eq!(readings("/login%2f", Both), ["/login", "/login%2F"]);
    }

    #[test]
    fn what_may_not_count_is_read_with_and_without_it() {
        let both = |path| readings(path, EncodedSlash::Both);
        assert_eq!(both("/search/;1"), ["/search", "/search/;1"]);
        assert_eq!(both("/search/..;1"), ["/", "/search/..;1"]);
        assert_eq!(both("/search/..%20"), ["/", "/search/.. "]);
        assert_eq!(both("/login\t"), ["/login", "/login\t"]);
        assert_eq!(
            both("/a;b%2Fc/d"),
            ["/a/c/d", "/a;b/c/d", "/a/d", "/a;b%2Fc/d"],
            "a slash may end a parameter"
        );
    }

    #[test]
    fn what_has_neither_is_read_in_one_way() {
        for path in ["/", "/a/b", "/a%", "/a%2", "/%2", "/%252F", "/a%é", "/%61/../b", "/A//b/"] {
            assert_eq!(readings(path, EncodedSlash::Both).len(), 1, "{path}");
        }
    }
}
