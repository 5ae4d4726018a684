use std::ops::Range;

use spillgate::Timestamp;

use super::super::decode;
use super::{COMPLETE, LIMIT, check};
use crate::PathSpelling;
use crate::config::spec::{Accept, Adaptive, At, Cost, Limit, ListItem, Mode};

#[test]
fn the_settings_of_a_server_are_skipped() {
    check(&[("[server]\nlisten = \"127.0.0.1:80\"\n[server.tls]\nkey = \"k\"", &[])]);
}

#[test]
fn an_empty_file_is_a_policy_of_nothing() {
    let (spec, problems) = decode("", None);
    assert_eq!(problems, []);
    assert!(spec.limits.is_empty() && spec.allow.is_empty() && spec.tiers.is_empty());
    assert!(spec.lacks_limits);
    let (spec, problems) = decode("limit = []", None);
    assert_eq!(problems, []);
    assert!(spec.limits.is_empty() && !spec.lacks_limits);
}

#[test]
fn the_complete_example_is_decoded_whole() {
    let (spec, problems) = decode(COMPLETE, None);
    assert_eq!(problems, []);
    assert_eq!(entries(&spec.allow), ["192.168.1.0/24", "198.51.100.7"]);
    assert_eq!(entries(&spec.block), ["203.0.113.9", "key:leaked-123", "203.0.113.50"]);
    let newyear = Some(Timestamp::from_secs(1_798_761_600));
    let terms = spec.block[2].terms.as_ref().unwrap();
    assert_eq!(terms.expires, newyear);
    assert_eq!(terms.comment.as_ref().unwrap().value, "scraper");
    assert!(spec.block[0].terms.is_none());
    assert_eq!(spec.overrides[0].with.terms.expires, newyear);
    assert_eq!(spec.overrides[0].with.terms.comment.as_ref().unwrap().value, "office");

    let identity = &spec.identity;
    assert_eq!(values(identity.order.as_ref().unwrap()), ["api-key", "user", "ip"]);
    assert_eq!(identity.api_key.as_ref().unwrap().header.value, "x-api-key");
    assert_eq!(identity.user.as_ref().unwrap().header.value, "x-user-id");
    assert_eq!(identity.tier_header.as_ref().unwrap().value, "x-tier");
    assert_eq!(values(&identity.trusted_proxies), ["10.0.0.0/8", "2001:db8::/32"]);
    assert_eq!(values(identity.client_ip.as_ref().unwrap()), ["x-forwarded-for"]);
    assert_eq!(identity.ipv4_prefix.as_ref().unwrap().value, 32);
    assert_eq!(identity.ipv6_prefix.as_ref().unwrap().value, 64);

    let [public, login, tokens, uploads, service, fair, payments, messages, address] =
        &spec.limits[..]
    else {
        panic!("{:#?}", spec.limits)
    };
    let shown = |limit: &Limit| {
        let it = limit.adaptive.as_ref().unwrap();
        let Adaptive { controller, signal, target, threshold, aggression, .. } = it;
        let shares = format!("{threshold:?} {aggression:?}");
        format!(
            "{controller:?} {signal:?} {target:?} {shares} {:?} {:?} {:?}",
            it.min, it.max, it.start
        )
    };
    assert_eq!(
        shown(service),
        r#"Some("auto") None None None None Some(10.0) Some(500.0) Some(50.0)"#
    );
    assert_eq!(
        shown(fair),
        r#"None Some("cpu") Some(0.8) None None Some("10/s") Some("200/s") None"#
    );
    assert_eq!(
        shown(payments),
        r#"Some("errors") None None Some(0.95) Some(1.0) Some(0.2) None None"#
    );
    let priority = spec.priority.as_ref().unwrap();
    assert_eq!(priority.default.as_ref().unwrap().value, "normal");
    assert_eq!(priority.header.as_ref().unwrap().value, "x-priority");
    assert_eq!(priority.tier["gold"].value, "high");
    assert_eq!(priority.rules[0].class.value, "critical");
    assert_eq!(values(&priority.rules[0].matches.path), ["/pay"]);
    assert_eq!(values(&priority.rules[0].matches.method), ["POST"]);
    assert_eq!(values(&priority.rules[0].matches.host), ["example.com"]);
    assert_eq!(priority.rules[1].matches.header["x-prefetch"].value, "*");
    assert_eq!(spec.path_spelling, PathSpelling::default());
    assert!(messages.by_name.as_ref().unwrap().value && !spec.lacks_limits);
    assert_eq!(public.name.value, "public");
    assert_eq!(values(&public.matches.path), ["/public/{*rest}"]);
    assert_eq!(values(&public.matches.method), ["GET", "POST"]);
    assert_eq!(values(public.per.as_ref().unwrap()), ["caller"]);
    assert_eq!(public.quota.as_ref().unwrap().value, "10/s burst 20");
    assert_eq!(public.algorithm.as_ref().unwrap().value, "token-bucket");
    assert_eq!(public.start.as_ref().unwrap().value, "full");
    assert_eq!(public.capacity.as_ref().unwrap().value, 100_000);
    assert_eq!(public.when_full.as_ref().unwrap().value, "protect");
    assert_eq!(public.max_debt.as_ref().unwrap().value, 5000);
    assert_eq!(public.mode.as_ref().unwrap().value, Mode::Enforce);
    assert_eq!(public.overrides[0].quota.as_ref().unwrap().value, "1000/s");
    assert_eq!(public.overrides[0].parts["caller"].value, "api-key:partner-7");
    assert_eq!(public.overrides[0].parts.len(), 1);
    assert_eq!(values(&login.matches.host), ["example.com", "*.example.com"]);
    assert_eq!(values(&login.settle.as_ref().unwrap().status), ["401", "403"]);
    assert_eq!(tokens.matches.header["x-beta"].value, "*");
    assert_eq!(values(tokens.per.as_ref().unwrap()), ["caller", "path:model"]);
    assert_eq!(tokens.settle.as_ref().unwrap().header.as_ref().unwrap().value, "x-tokens-used");
    let concurrent = uploads.concurrent.as_ref().unwrap();
    assert_eq!((concurrent.limit.value, uploads.quota.is_some()), (5, false));
    assert_eq!(concurrent.ttl.as_ref().unwrap().value, "30s");
    assert_eq!(uploads.overrides[0].concurrent.as_ref().unwrap().value, 50);
    assert_eq!(address.matches.domain.as_ref().unwrap().value, "edge");
    let entries = &address.matches.descriptor.as_ref().unwrap().value;
    assert_eq!(entries["remote_address"].value, "*");
    assert_eq!(entries.len(), 1);

    let gold = &spec.tiers["gold"];
    assert_eq!(values(&gold.callers), ["api-key:k1", "user:42"]);
    assert_eq!(format!("{:?}", gold.quotas["public"]), "\"100/s burst 200\"");
    assert_eq!(format!("{:?}", gold.quotas["uploads"]), "20");
    assert_eq!(gold.quotas.len(), 2);
}

fn values(texts: &[At<String>]) -> Vec<&str> {
    texts.iter().map(|text| text.value.as_str()).collect()
}

fn entries(items: &[ListItem]) -> Vec<&str> {
    items.iter().map(|item| item.entry.value.as_str()).collect()
}

#[test]
fn values_keep_the_place_where_they_are_written() {
    let (spec, _) = decode(COMPLETE, None);
    let written = |span: &Option<Range<usize>>| COMPLETE.get(span.clone().unwrap()).unwrap();
    assert_eq!(written(&spec.block[1].entry.span), "\"key:leaked-123\"");
    assert_eq!(written(&spec.limits[0].capacity.as_ref().unwrap().span), "100_000");
    assert_eq!(written(&spec.limits[0].mode.as_ref().unwrap().span), "\"enforce\"");
    assert_eq!(written(&spec.limits[0].overrides[0].at.span), "[[limit.override]]");
    assert_eq!(written(&spec.limits[1].settle.as_ref().unwrap().status[0].span), "401");
    assert_eq!(written(&spec.tiers["gold"].quotas["public"].span), "\"100/s burst 200\"");
}

#[test]
fn a_header_can_be_accepted_in_four_ways() {
    let accept = |written: &str| {
        let (spec, problems) =
            decode(&format!("identity.user = {{ header = \"x\"{written} }}"), None);
        assert_eq!(problems, []);
        spec.identity.user.unwrap().accept.value
    };
    assert!(matches!(accept(""), Accept::TrustedProxies));
    assert!(matches!(accept(", accept = \"trusted-proxies\""), Accept::TrustedProxies));
    assert!(matches!(accept(", accept = \"any\""), Accept::Any));
    assert!(matches!(accept(", accept = \"k.txt\""), Accept::File(file) if file == "k.txt"));
    assert!(matches!(accept(", accept = ['a', 'b']"), Accept::Keys(keys) if keys == ["a", "b"]));
}

#[test]
fn a_cost_is_a_number_or_a_header() {
    let cost = |written: &str| {
        let (spec, problems) = decode(&format!("{LIMIT}{written}"), None);
        assert_eq!(problems, []);
        spec.limits[0].cost.clone()
    };
    assert!(cost("").is_none());
    assert!(matches!(cost("cost = 0"), Some(Cost::Constant(At { value: 0, .. }))));
    assert!(matches!(
        cost("cost = { header = 'h', default = 3 }"),
        Some(Cost::Header { name, default: Some(At { value: 3, .. }) }) if name.value == "h",
    ));
    assert!(matches!(cost("cost.header = 'h'"), Some(Cost::Header { default: None, .. })));
}

#[test]
fn what_is_wrong_is_left_out_and_the_rest_is_kept() {
    let (spec, problems) = decode(
        "block = [\"a\", 1, \"b\"]
         [[limit]]
         name = \"no quota\"
         [[limit]]
         name = \"public\"
         quota = \"10/s\"
         capacity = \"many\"
         cost = -1
         ipv4-prefix = 24
         override = [{ caller = \"a\" }, { caller = \"b\", quota = \"1/s\" }]",
        None,
    );
    assert_eq!(problems.len(), 6);
    assert_eq!(entries(&spec.block), ["a", "b"]);
    let [_, public] = &spec.limits[..] else { panic!("{:#?}", spec.limits) };
    assert!(public.capacity.is_none() && public.cost.is_none());
    assert_eq!(public.overrides.len(), 1);
}
