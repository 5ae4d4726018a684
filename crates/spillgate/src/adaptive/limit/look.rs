use super::AdaptiveLimit;

/// Cheaper than [`status`](AdaptiveLimit::status): one load each.
impl<C> AdaptiveLimit<C> {
    /// How many calls may be in flight now. A share does not limit that.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.shared.in_flight.read().0
    }

    /// How many calls are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.shared.in_flight.read().1
    }
}
