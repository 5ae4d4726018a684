//! Until when, and why.

use spillgate::Timestamp;

use crate::Error;

/// The terms of a list entry or an override: until when it counts, and a comment for people.
///
/// ```
/// use spillgate::Timestamp;
/// use spillgate_policy::Terms;
///
/// let until = Timestamp::from_secs(1_900_000_000);
/// let terms = Terms::until(until).with_comment("scraper, ticket 4711");
/// assert_eq!(terms.until, Some(until));
/// assert_eq!(Terms::permanent(), Terms::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// When it ends by itself, by the [store's clock](crate::store::Store::now); `None` if it does
    /// not.
    pub until: Option<Timestamp>,
    /// Why it is there: at most 256 bytes, without control characters.
    pub comment: Option<String>,
}

/// Bytes of a comment. Comments are kept in memory, in snapshots and in Redis.
const LONGEST_COMMENT: usize = 256;

impl Terms {
    /// Without end.
    #[must_use]
    pub fn permanent() -> Self {
        Self::default()
    }

    /// Up to a time.
    #[must_use]
    pub fn until(time: Timestamp) -> Self {
        Self { until: Some(time), comment: None }
    }

    /// The same with a comment.
    #[must_use]
    pub fn with_comment(self, comment: impl Into<String>) -> Self {
        Self { comment: Some(comment.into()), ..self }
    }

    /// Refuses terms that have ended, and a comment that is too long or has control characters.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and what would be right.
    pub fn check(&self, now: Timestamp) -> Result<(), Error> {
        if self.is_over(now) {
            return Err(Error::unknown("the expiry has passed; choose a time in the future"));
        }
        self.comment.as_deref().map_or(Ok(()), check_comment).map_err(Error::unknown)
    }

    /// True if it has ended.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    pub(crate) fn is_default(&self) -> bool {
        self.until.is_none() && self.comment.is_none()
    }

    /// Of two, the one that ends later.
    pub(crate) fn later(self, other: Self) -> Self {
        match (self.until, other.until) {
            (Some(own), Some(others)) if own < others => other,
            (Some(_), None) => other,
            _ => self,
        }
    }
}

/// Refuses a comment that is too long, or would garble a table or a log.
pub(crate) fn check_comment(comment: &str) -> Result<(), String> {
    if comment.len() > LONGEST_COMMENT {
        return Err(format!(
            "the comment has {} bytes; write at most {LONGEST_COMMENT}",
            comment.len()
        ));
    }
    match comment.chars().any(char::is_control) {
        true => Err("the comment has a control character; write one line of text".to_owned()),
        false => Ok(()),
    }
}
