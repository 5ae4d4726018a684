use std::fmt;
use std::ops::Range;

/// Why a quota, an algorithm or a limiter could not be built.
///
/// The message names the wrong value and what would be right. A denied call is not an error
/// but a [`Decision`](crate::Decision).
///
/// If a quota's text is invalid, the alternate form (`{:#}`) points at the wrong part:
///
/// ```
/// let error = "10/fortnight".parse::<spillgate::Quota>().unwrap_err();
/// assert_eq!(error.span(), Some(3..12));
/// assert_eq!(
///     format!("{error:#}"),
///     "unknown unit \"fortnight\"; use ns, us, ms, s, min, h, day or week\n  \
///      10/fortnight\n     ^^^^^^^^^",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
    place: Option<Box<Place>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Quota,
    Algorithm,
    Capacity,
    Tier,
}

/// The wrong part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    text: String,
    span: Range<usize>,
}

impl Error {
    pub(crate) fn quota(message: impl Into<String>) -> Self {
        Self::new(Kind::Quota, message.into())
    }

    pub(crate) fn algorithm(message: impl Into<String>) -> Self {
        Self::new(Kind::Algorithm, message.into())
    }

    pub(crate) fn capacity(message: impl Into<String>) -> Self {
        Self::new(Kind::Capacity, message.into())
    }

    pub(crate) fn tier(message: impl Into<String>) -> Self {
        Self::new(Kind::Tier, message.into())
    }

    fn new(kind: Kind, message: String) -> Self {
        Self { kind, message, place: None }
    }

    /// Points at a part of `text`. Long texts are not kept.
    pub(crate) fn at(mut self, text: &str, span: Range<usize>) -> Self {
        const LONGEST: usize = 200;
        let text = if text.len() <= LONGEST { text.to_owned() } else { String::new() };
        self.place = Some(Box::new(Place { text, span }));
        self
    }

    /// True if a quota is invalid: its numbers or its text.
    #[must_use]
    pub fn is_quota(&self) -> bool {
        self.kind == Kind::Quota
    }

    /// True if the quota is valid, but the algorithm cannot count it.
    #[must_use]
    pub fn is_algorithm(&self) -> bool {
        self.kind == Kind::Algorithm
    }

    /// True if the capacity is invalid, or there is no memory for it.
    #[must_use]
    pub fn is_capacity(&self) -> bool {
        self.kind == Kind::Capacity
    }

    /// True if a tier is unknown, duplicate or incompatible.
    #[must_use]
    pub fn is_tier(&self) -> bool {
        self.kind == Kind::Tier
    }

    /// The byte range of the wrong part, if a text was parsed.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.place.as_ref().map(|place| place.span.clone())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.place {
            Some(place) if f.alternate() => place.point(f),
            _ => Ok(()),
        }
    }
}

impl Place {
    /// Writes the text and, below it, a line of carets under the faulty part.
    fn point(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(before), Some(part)) =
            (self.text.get(..self.span.start), self.text.get(self.span.clone()))
        else {
            return Ok(());
        };
        // Columns are characters: a byte count would shift the carets after a "µ".
        let indent = before.chars().count();
        let carets = part.chars().count().max(1);
        write!(f, "\n  {}\n  {:indent$}{:^<carets$}", self.text, "", "")
    }
}

impl std::error::Error for Error {}

/// For infallible conversions into a [`Quota`](crate::Quota).
impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
