//! How callers are identified.

use http::header::HeaderName;

use super::Compiler;
use crate::config::file;
use crate::config::spec::{API_KEY, Accept, At, HeaderIdentity, Spec, USER};
use crate::policy::address::{AddressSet, Prefixes, parse_range};
use crate::policy::client_ip::ForwardingHeader;
use crate::policy::identity::{Accepts, CallerKind, Identifier, IdentifyClosure, NamedBy};
use crate::suggest::hint;

const KINDS: [(&str, CallerKind); 3] =
    [("api-key", CallerKind::ApiKey), ("user", CallerKind::User), ("ip", CallerKind::Ip)];

impl Compiler<'_> {
    pub(super) fn identifier(
        &mut self,
        spec: &Spec,
        closure: Option<IdentifyClosure>,
    ) -> Identifier {
        let identity = &spec.identity;
        let mut order = match &identity.order {
            None => KINDS.map(|(_, kind)| kind).to_vec(),
            Some(order) => self.order(order),
        };
        let api_key = self.named_by("api-key", identity.api_key.as_ref(), API_KEY);
        let user = self.named_by("user", identity.user.as_ref(), USER);
        // What is never believed need not be asked for.
        order.retain(|kind| match kind {
            CallerKind::ApiKey => !matches!(api_key.accepts, Accepts::Never),
            CallerKind::User => !matches!(user.accepts, Accepts::Never),
            CallerKind::Ip => true,
        });
        let forwarding = match &identity.client_ip {
            None => vec![ForwardingHeader::XForwardedFor],
            Some(headers) => headers
                .iter()
                .filter_map(|at| {
                    let header = ForwardingHeader::parse(&at.value.to_ascii_lowercase());
                    self.take(at, header.map_err(|why| format!("identity, client-ip: {why}")))
                })
                .collect(),
        };
        Identifier {
            order,
            api_key,
            user,
            tier_header: identity
                .tier_header
                .as_ref()
                .and_then(|at| self.header_name("identity, tier-header", at)),
            trusted: self.trusted(&identity.trusted_proxies),
            forwarding,
            prefixes: Prefixes::new(
                self.prefix("ipv4-prefix", identity.ipv4_prefix.as_ref(), 32, 32),
                self.prefix("ipv6-prefix", identity.ipv6_prefix.as_ref(), 64, 128),
            ),
            asks_program: closure.is_some() || spec.names_callers,
            closure,
        }
    }

    fn order(&mut self, order: &[At<String>]) -> Vec<CallerKind> {
        let mut kinds = Vec::new();
        for at in order {
            let known = KINDS.iter().find(|(name, _)| *name == at.value);
            match known {
                Some((name, kind)) if kinds.contains(kind) => {
                    self.report(
                        at,
                        format!("identity, order: {name:?} is there twice; name it once"),
                    );
                }
                Some((_, kind)) => kinds.push(*kind),
                None => {
                    let hint = hint(&at.value, KINDS.map(|(name, _)| name));
                    self.report(at, format!("identity, order: unknown {:?}{hint}", at.value));
                }
            }
        }
        kinds
    }

    fn named_by(
        &mut self,
        kind: &str,
        written: Option<&HeaderIdentity>,
        default: &'static str,
    ) -> NamedBy {
        let default = HeaderName::from_static(default);
        let Some(written) = written else {
            return NamedBy { header: default, accepts: Accepts::Never };
        };
        let place = format!("identity, {kind}");
        let header = self.header_name(&place, &written.header).unwrap_or(default);
        NamedBy { header, accepts: self.accepts(&place, &written.accept) }
    }

    fn accepts(&mut self, place: &str, accept: &At<Accept>) -> Accepts {
        match &accept.value {
            Accept::TrustedProxies => Accepts::TrustedProxies,
            Accept::Any => Accepts::Any,
            Accept::Acceptor(acceptor) => Accepts::Acceptor(acceptor.clone()),
            Accept::Keys(keys) => {
                Accepts::Keys(keys.iter().map(|key| key.as_bytes().into()).collect())
            }
            Accept::File(name) => {
                let path = self.source.folder.join(name);
                let lines = file::read(&path).map_err(|error| {
                    format!(
                        "{place}: the list of known keys {} cannot be read: {error}; `accept` \
                         is \"trusted-proxies\", \"any\", a list of keys, or such a file",
                        path.display()
                    )
                });
                let lines = self.take(accept, lines).unwrap_or_default();
                let keys = lines.lines().map(str::trim);
                let keys = keys.filter(|line| !line.is_empty() && !line.starts_with('#'));
                Accepts::Keys(keys.map(|key| key.as_bytes().into()).collect())
            }
        }
    }

    fn trusted(&mut self, proxies: &[At<String>]) -> AddressSet {
        let ranges: Vec<_> = proxies
            .iter()
            .filter_map(|at| {
                let range = parse_range(&at.value);
                self.take(at, range.map_err(|why| format!("identity, trusted-proxies: {why}")))
            })
            .collect();
        ranges.into_iter().collect()
    }

    fn prefix(&mut self, key: &str, written: Option<&At<u8>>, default: u8, most: u8) -> u8 {
        let Some(at) = written else { return default };
        if at.value > most {
            self.report(at, format!("identity, {key}: {} is too long; use 0 to {most}", at.value));
        }
        at.value.min(most)
    }

    pub(super) fn header_name(&mut self, place: &str, at: &At<String>) -> Option<HeaderName> {
        let name = HeaderName::from_bytes(at.value.as_bytes());
        self.take(
            at,
            name.map_err(|_| {
                format!(
                    "{place}: {:?} is not the name of a header; write one such as \"x-api-key\"",
                    at.value
                )
            }),
        )
    }
}
