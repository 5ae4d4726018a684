use std::fmt;

/// Returns the tier of a caller: the index of one of the tiers, whose names it is called with, or
/// `None` for the limiter's own quota. Called on every check, before any lock is taken.
pub type TierOf = Box<dyn Fn(&[u8], &[String]) -> Option<usize> + Send + Sync>;

/// The names of the tiers, and the function that assigns them.
pub(crate) struct Resolver {
    pub(crate) names: Vec<String>,
    pub(crate) tier_of: TierOf,
}

impl spillgate::TierOf<[u8]> for Resolver {
    fn tier_of<'a>(&'a self, key: &'a [u8]) -> Option<&'a str> {
        (self.tier_of)(key, &self.names).and_then(|index| self.names.get(index)).map(String::as_str)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("names", &self.names).finish_non_exhaustive()
    }
}
