use http::header::HeaderName;

use super::rule::{Cost, Rule};
use super::{Part, Policy};
use crate::policy::client_ip::ForwardingHeader;

/// When a request came to the first proxy, as nginx and Heroku write it.
pub(crate) static REQUEST_START: HeaderName = HeaderName::from_static("x-request-start");

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
        let told = callers.chain(&identifier.tier_header).chain(addresses);
        told.chain(limits).chain(self.load_headers())
    }

    /// The headers that limits go by which follow load: those of priorities, and the time at which
    /// a request came to the first proxy.
    fn load_headers(&self) -> impl Iterator<Item = &HeaderName> {
        let priorities = self.priorities.iter().flat_map(|it| {
            let matched = it.rules.iter().flat_map(|(_, rule)| &rule.headers);
            it.header.iter().chain(matched.map(|(name, _)| name))
        });
        let waits = |rule: &Rule| rule.adaptive.as_ref().is_some_and(|it| it.needs_queue_wait());
        let start = self.rules.iter().any(waits).then_some(&REQUEST_START);
        priorities.chain(start)
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

            [[limit]]
            name = "service"
            adaptive = { signal = "queue-wait", target = "20ms", min = 1, max = 9 }

            [priority]
            header = "x-priority"

            [[priority.rule]]
            class = "low"
            match = { header = { x-prefetch = "*" } }
            "#,
        );
        let policy = policy.unwrap();
        let mut message: Vec<_> = policy.headers().map(HeaderName::as_str).collect();
        message.sort_unstable();
        let all = [
            "cf-connecting-ip",
            "x-cost",
            "x-counted",
            "x-key",
            "x-matched",
            "x-prefetch",
            "x-priority",
            "x-request-start",
            "x-tier",
            "x-user",
        ];
        assert_eq!(message, all);
    }
}
