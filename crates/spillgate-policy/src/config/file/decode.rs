//! What each table of the file holds. Every function asks a section for its keys; the
//! examples are what messages suggest.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::adaptive::{adaptive, priority};
use super::ban::ban;
use super::section::Section;
use super::value::Value;
use crate::config::compile::MOST_PERMITS;
use crate::config::spec::{
    Accept, Amount, At, Concurrent, Cost, HeaderIdentity, Identity, Limit, ListItem, MODE, Match,
    NamedOverride, Override, Settle, Spec, Tier, WrittenTerms,
};
use crate::policy::route::{EncodedSlash, IgnoreCase, PathSpelling};
use crate::suggest::quoted;

const QUOTA: &str = "10/s burst 20";

pub(super) fn policy(file: &mut Section<'_>) -> Spec {
    // A program reads its own settings.
    file.ignore("server");
    file.ignore("store");
    file.ignore("proxy");
    Spec {
        identity: file.section("identity", "[identity]", identity).unwrap_or_default(),
        allow: list_items(file, "allow", "192.0.2.0/24"),
        block: list_items(file, "block", "192.0.2.7"),
        path_spelling: file
            .section("path-spelling", "[path-spelling]", path_spelling)
            .unwrap_or_default(),
        lacks_limits: !file.has("limit"),
        is_blank: file.is_empty(),
        limits: file.sections("limit", "[[limit]]", limit),
        overrides: file.sections("override", "[[override]]", named_override),
        tiers: file.section("tier", "[tier.gold]", tiers).unwrap_or_default(),
        priority: file.section("priority", "[priority]", priority),
        ..Spec::default()
    }
}

fn identity(section: &mut Section<'_>) -> Identity {
    Identity {
        order: section.filled_list("order", "ip"),
        api_key: header_identity(section, "api-key", "x-api-key"),
        user: header_identity(section, "user", "x-user-id"),
        tier_header: section.text("tier-header", "x-tier"),
        trusted_proxies: section.list("trusted-proxies", "10.0.0.0/8").unwrap_or_default(),
        client_ip: section.list("client-ip", "x-forwarded-for"),
        ipv4_prefix: section.number("ipv4-prefix", 0..=32, 32),
        ipv6_prefix: section.number("ipv6-prefix", 0..=128, 64),
    }
}

fn header_identity(
    identity: &mut Section<'_>,
    key: &'static str,
    header: &str,
) -> Option<HeaderIdentity> {
    let example = format!("{{ header = {header:?} }}");
    let decoded = identity.section(key, &example, |section| {
        let accept = accept(section);
        Some(HeaderIdentity { header: section.required("header", header)?, accept })
    });
    decoded.flatten()
}

fn path_spelling(section: &mut Section<'_>) -> PathSpelling {
    let default = PathSpelling::default();
    let ignore_case = [
        ("patterns", IgnoreCase::Patterns),
        ("everywhere", IgnoreCase::Everywhere),
        ("never", IgnoreCase::Never),
    ];
    let encoded_slash = [
        ("both", EncodedSlash::Both),
        ("slash", EncodedSlash::Slash),
        ("text", EncodedSlash::Text),
    ];
    PathSpelling {
        ignore_case: section
            .word("ignore-case", &ignore_case)
            .map_or_else(Default::default, |at| at.value),
        strip_parameters: section.boolean("strip-parameters").unwrap_or(default.strip_parameters),
        trim_spaces: section.boolean("trim-spaces").unwrap_or(default.trim_spaces),
        encoded_slash: section
            .word("encoded-slash", &encoded_slash)
            .map_or_else(Default::default, |at| at.value),
    }
}

fn accept(section: &mut Section<'_>) -> At<Accept> {
    let Some(value) = section.value("accept") else {
        return At::default();
    };
    let accept = match value.written() {
        DeValue::String(text) => match text.as_ref() {
            "trusted-proxies" => Accept::TrustedProxies,
            "any" => Accept::Any,
            file => Accept::File(file.to_owned()),
        },
        DeValue::Array(_) => {
            let keys = value.list("k1").unwrap_or_default();
            Accept::Keys(keys.into_iter().map(|key| key.value).collect())
        }
        _ => {
            value.wrong_type("\"trusted-proxies\", \"any\", a list of keys or the name of a file");
            Accept::default()
        }
    };
    value.at(accept)
}

fn limit(section: &mut Section<'_>) -> Option<Limit> {
    let name = section.required("name", "public");
    if let Some(name) = &name {
        section.rename(format!("limit {}", quoted(&name.value)));
    }
    let concurrent = section.value("concurrent").map(|value| concurrent(&value));
    let adaptive = section.section("adaptive", "{ min = 10, max = 500 }", adaptive);
    let quota = match concurrent.is_some() || section.has("adaptive") {
        true => section.text("quota", QUOTA),
        false => section.required("quota", QUOTA),
    };
    Some(Limit {
        matches: section.section("match", r#"{ path = "/public" }"#, matches).unwrap_or_default(),
        by_name: section.value("by-name").and_then(|value| Some(value.at(value.boolean()?))),
        per: section.texts("per", "caller"),
        algorithm: section.text("algorithm", "token-bucket"),
        start: section.text("start", "empty"),
        capacity: section.number("capacity", 0..=u64::MAX, 100_000),
        when_full: section.text("when-full", "protect"),
        max_debt: section.number("max-debt", 0..=u64::MAX, 10_000),
        sharing: section.text("sharing", "leased"),
        outage: section.text("outage", "closed"),
        mode: section.word("mode", &MODE),
        cost: section.value("cost").and_then(|value| cost(&value)),
        settle: section.section("settle", r#"{ status = "4xx" }"#, settle),
        ban: section.section("ban", "{ strikes = 5 }", ban),
        overrides: section.sections("override", "[[limit.override]]", override_),
        // Without a name there is no limit, but first all else was looked at. Without a
        // quota there is one that others may speak of.
        name: name?,
        quota,
        concurrent: concurrent.flatten(),
        adaptive,
    })
}

fn concurrent(value: &Value<'_>) -> Option<Concurrent> {
    const WITH_TTL: &str = r#"{ limit = 50, ttl = "30s" }"#;
    let permits = |value: &Value<'_>| value.number(1..=MOST_PERMITS, 50);
    match value.written() {
        DeValue::Integer(_) => Some(Concurrent { limit: permits(value)?, ttl: None }),
        DeValue::Table(_) => value.section(WITH_TTL)?.read(|section| {
            let ttl = section.text("ttl", "30s");
            section.expect("limit", "50");
            Some(Concurrent { limit: permits(&section.value("limit")?)?, ttl })
        }),
        _ => {
            value.wrong_type(&format!("a number, such as 50, or {WITH_TTL}"));
            None
        }
    }
}

fn matches(section: &mut Section<'_>) -> Match {
    Match {
        path: section.texts("path", "/users/{id}").unwrap_or_default(),
        method: section.texts("method", "GET").unwrap_or_default(),
        host: section.texts("host", "api.example.com").unwrap_or_default(),
        header: section
            .section("header", r#"{ "x-beta" = "*" }"#, |headers| headers.other_texts("*"))
            .unwrap_or_default(),
        domain: section.text("domain", "edge"),
        descriptor: section.section("descriptor", r#"{ remote_address = "*" }"#, |entries| At {
            value: entries.other_texts("*"),
            span: entries.at().span,
        }),
    }
}

fn cost(value: &Value<'_>) -> Option<Cost> {
    const HEADER: &str = r#"{ header = "x-cost" }"#;
    match value.written() {
        DeValue::Integer(_) => value.number(0..=u64::MAX, 1).map(Cost::Constant),
        DeValue::Table(_) => value.section(HEADER)?.read(header_cost),
        _ => {
            value.wrong_type(&format!("a number, such as 1, or {HEADER}"));
            None
        }
    }
}

fn header_cost(section: &mut Section<'_>) -> Option<Cost> {
    let default = section.number("default", 1..=u64::MAX, 1);
    Some(Cost::Header { name: section.required("header", "x-cost")?, default })
}

fn settle(section: &mut Section<'_>) -> Settle {
    let statuses = section.value("status").map(|value| value.one_or_more("4xx"));
    Settle {
        status: statuses.iter().flatten().filter_map(status).collect(),
        header: section.text("header", "x-cost"),
        closure: None,
    }
}

/// A status may be written as the number it is.
pub(super) fn status(value: &Value<'_>) -> Option<At<String>> {
    match value.written() {
        DeValue::Integer(_) => {
            let number = value.number(100..=599_u16, 401)?.value;
            Some(value.at(number.to_string()))
        }
        _ => value.text("4xx"),
    }
}

fn override_(section: &mut Section<'_>) -> Option<Override> {
    let concurrent = section.number("concurrent", 1..=MOST_PERMITS, 50);
    let quota = match section.has("concurrent") {
        true => section.text("quota", QUOTA),
        false => section.required("quota", QUOTA),
    };
    let terms = terms(section);
    let parts = section.other_texts("api-key:partner-7");
    // Without either it was reported already.
    (quota.is_some() || concurrent.is_some()).then(|| Override {
        quota,
        concurrent,
        parts,
        terms,
        at: section.at(),
    })
}

fn list_items(file: &mut Section<'_>, key: &'static str, example: &str) -> Vec<ListItem> {
    let Some(value) = file.value(key) else { return Vec::new() };
    let decode = |section: &mut Section<'_>| {
        section.hide_keys();
        let terms = Some(Box::new(terms(section)));
        Some(ListItem { entry: section.required("entry", example)?, terms })
    };
    value.items(example, decode).unwrap_or_default()
}

fn terms(section: &mut Section<'_>) -> WrittenTerms {
    let expires = section.value("expires").and_then(|value| value.moment());
    WrittenTerms { expires, comment: section.text("comment", "why it is there") }
}

fn named_override(section: &mut Section<'_>) -> Option<NamedOverride> {
    let limit = section.required("limit", "public");
    let with = override_(section);
    Some(NamedOverride { limit: limit?, with: with? })
}

fn tiers(section: &mut Section<'_>) -> BTreeMap<String, Tier> {
    section.other_sections("[tier.gold]", tier)
}

fn tier(section: &mut Section<'_>) -> Tier {
    Tier {
        callers: section.list("callers", "api-key:k1").unwrap_or_default(),
        quotas: section.others_of(amount),
        at: section.at(),
    }
}

fn amount(value: &Value<'_>) -> Option<At<Amount>> {
    let amount = match value.written() {
        DeValue::Integer(_) => Amount::Permits(value.number(1..=MOST_PERMITS, 50)?.value),
        _ => Amount::Quota(value.text(QUOTA)?.value),
    };
    Some(value.at(amount))
}
