//! Who is who: identity, spellings of paths, and tiers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::entries::Entries;
use super::value::{NONE, Value};
use crate::policy::identity::{Accepts, CallerKind, Identifier, NamedBy};
use crate::policy::route::PathSpelling;
use crate::policy::tiers::Tiers;

/// The keys of `[identity]`.
pub(super) fn values(identifier: &Identifier) -> Vec<Value> {
    let Identifier {
        order,
        api_key,
        user,
        tier_header,
        trusted,
        forwarding,
        prefixes,
        closure,
        asks_program,
    } = identifier;
    let order: Vec<_> = order.iter().map(|kind| kind.name()).collect();
    let trusted = Entries::plain(trusted.entries().map(|range| range.to_string()));
    let headers: Vec<_> = forwarding.iter().map(|header| header.name()).collect();
    let bits = |address: IpAddr| prefixes.length(address.into());
    let (v4, v6) = (bits(Ipv4Addr::LOCALHOST.into()), bits(Ipv6Addr::LOCALHOST.into()));
    let program = match (closure, asks_program) {
        (Some(_), _) => "closure",
        (None, true) => "by request",
        (None, false) => NONE,
    };
    vec![
        Value::new("identity.order", order.join(", ")),
        named_by("identity.api-key", api_key),
        named_by("identity.user", user),
        Value::new("identity.tier-header", tier_header.as_ref().map_or(NONE, |name| name.as_str())),
        Value::new("identity.trusted-proxies", count(trusted.len(), "range")).entries(trusted),
        Value::new("identity.client-ip", headers.join(", ")),
        Value::new("identity.ipv4-prefix", v4.to_string()),
        Value::new("identity.ipv6-prefix", v6.to_string()),
        Value::new("identity.program", program),
    ]
}

fn named_by(key: &'static str, NamedBy { header, accepts }: &NamedBy) -> Value {
    match accepts {
        Accepts::Never => Value::new(key, format!("{header}, never believed")),
        Accepts::TrustedProxies => Value::new(key, format!("{header} from trusted proxies")),
        Accepts::Any => Value::new(key, format!("{header} from anyone")),
        Accepts::Acceptor(_) => Value::new(key, format!("{header} that the program accepts")),
        Accepts::Keys(keys) => {
            let known = Entries::secret(keys.iter().map(|key| &**key));
            let text = format!("{header} with one of {}", count(known.len(), "known value"));
            Value::new(key, text).entries(known)
        }
    }
}

/// The keys of `[path-spelling]`.
pub(super) fn spelling_values(spelling: &PathSpelling) -> Vec<Value> {
    let PathSpelling { ignore_case, strip_parameters, trim_spaces, encoded_slash } = spelling;
    vec![
        Value::new("path-spelling.ignore-case", format!("{ignore_case:?}").to_lowercase()),
        Value::new("path-spelling.strip-parameters", strip_parameters.to_string()),
        Value::new("path-spelling.trim-spaces", trim_spaces.to_string()),
        Value::new("path-spelling.encoded-slash", format!("{encoded_slash:?}").to_lowercase()),
    ]
}

/// Who is in which tier.
pub(super) fn tier_values(tiers: &Tiers) -> Vec<Value> {
    let callers = |(place, name): (usize, &String)| {
        let callers = Entries::callers(tiers.callers_of(place));
        let shown = count(callers.len(), "caller");
        Value::new(format!("tier.{name}.callers"), shown).entries(callers)
    };
    tiers.names.iter().enumerate().map(callers).collect()
}

/// `1 caller`, `2 callers`.
fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl CallerKind {
    fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::User => "user",
            Self::Ip => "ip",
        }
    }
}
