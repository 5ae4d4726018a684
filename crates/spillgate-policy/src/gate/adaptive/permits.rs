//! What a request holds until it ends.

use std::fmt;

use smallvec::SmallVec;

use super::decision::LivePermit;
use crate::store::Permits;

/// What a request holds until it ends: permits of every limit on concurrency that it met, be it
/// fixed or one that follows load. Dropped, they are released.
///
/// ```
/// use spillgate_policy::{Adaptive, Gate, Limit, Policy, RequestView};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Limit::adaptive("service", Adaptive::auto(1..=1));
/// let gate = Gate::new(Policy::builder().limit(service).build()?)?;
///
/// let (parts, ()) = http::Request::get("/").body(())?.into_parts();
/// let request = RequestView::from_parts(&parts, Some([203, 0, 113, 7].into()));
/// let permits = gate.decide(&request).await?.take_permits();
/// assert_eq!(gate.decide(&request).await?.shed_by(), Some("service"));
/// drop(permits);
/// assert!(gate.decide(&request).await?.is_allowed());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "dropped, the permits are released"]
pub struct RequestPermits {
    pub(in crate::gate) store: Permits,
    /// Boxed, so that requests without them drop a null pointer.
    pub(in crate::gate) adaptive: Option<Box<AdaptivePermits>>,
}

/// Permits of adaptive limits.
pub(in crate::gate) type AdaptivePermits = SmallVec<[LivePermit; 1]>;

impl RequestPermits {
    /// How many limits something is held of.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len() + self.adaptive.as_ref().map_or(0, |permits| permits.len())
    }

    /// True if nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for RequestPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestPermits").finish_non_exhaustive()
    }
}
