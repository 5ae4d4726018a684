use http::header::HeaderName;

use super::rule::Cost;
use super::{Part, Policy};
use crate::policy::client_ip::ForwardingHeader;

impl Policy {
    /// The headers of requests that the policy goes by: those that name callers, their tiers
    /// and addresses, and those that limits match, count by or take a cost from. Some may be
    /// there more than once.
    pub fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        let identifier = &self.identifier;
        let callers = [&identifier.api_key.header, &identifier.user.header].into_iter();
        let name = |header: &ForwardingHeader| -> &HeaderName { header.header_name() };
        let addresses = identifier.forwarding.iter().map(name);
        let limits = self.rules.iter().flat_map(|rule| {
            let matched = rule.matches.headers.iter().map(|(name, _)| name);
            let counted = rule.per.iter().filter_map(|part| match part {
                Part::Header(name) => Some(&**name),
                _ => None,
            });
            let cost = match &rule.cost {
                Cost::Header(name, _) => Some(&**name),
                Cost::Constant(_) | Cost::Closure(_) => None,
            };
            matched.chain(counted).chain(cost)
        });
        callers.chain(&identifier.tier_header).chain(addresses).chain(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_that_decides_is_told() {
        let policy = Policy::from_toml(
            r#"
            [identity]
            order = ["api-key", "user", "ip"]
            api-key = { header = "x-key", accept = ["k"] }
            user = { header = "x-user", accept = "trusted-proxies" }
            tier-header = "x-tier"
            trusted-proxies = ["10.0.0.0/8"]
            client-ip = ["cf-connecting-ip"]

            [[limit]]
            name = "all"
            match = { header = { x-matched = "1" } }
            per = ["header:x-counted"]
            cost = { header = "x-cost", default = 1 }
            quota = "10/s"
            "#,
        );
        let policy = policy.unwrap();
        let mut message: Vec<_> = policy.headers().map(HeaderName::as_str).collect();
        message.sort_unstable();
        let all =
            ["cf-connecting-ip", "x-cost", "x-counted", "x-key", "x-matched", "x-tier", "x-user"];
        assert_eq!(message, all);
    }
}
