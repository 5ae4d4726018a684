use std::net::IpAddr;

use http::header::HeaderName;
use spillgate_policy::Gate;
use spillgate_policy::store::Store;

/// What forwarding asks of the policy in force, whatever its store.
pub(super) trait PolicyView: Send + Sync {
    /// True if the proxy in front of this one at this address is trusted.
    fn trusts(&self, address: IpAddr) -> bool;

    /// True if the policy reads a header of which this is true.
    fn reads(&self, is: &dyn Fn(&HeaderName) -> bool) -> bool;
}

impl<S: Store> PolicyView for Gate<S> {
    fn trusts(&self, address: IpAddr) -> bool {
        self.policy().trusts(address)
    }

    fn reads(&self, is: &dyn Fn(&HeaderName) -> bool) -> bool {
        self.policy().headers().any(is)
    }
}
