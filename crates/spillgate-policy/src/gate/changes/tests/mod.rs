mod complete;

use super::*;
use crate::{Domain, Node, NodeLimit, NodeMode, NodeQuota};

fn between(old: &str, new: &str) -> Changes {
    Changes::between(&Policy::from_toml(old).unwrap(), &Policy::from_toml(new).unwrap())
}

fn shown<T: ToString>(changes: &[T]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn every_change_is_named_with_old_and_new_value() {
    let old = "block = ['10.0.0.0/8', 'key:secret']\n\
               [[limit]]\nname = 'api'\nquota = '3/min'\n\
               [[limit]]\nname = 'gone'\nquota = '1/s'\n";
    let new = "block = ['10.0.0.0/8', '192.0.2.1']\n\
               [[limit]]\nname = 'api'\nquota = '5/min'\nmode = 'shadow'\ncapacity = 7\n\
               match = { path = '/api' }\n\
               [tier.gold]\napi = '9/min'\ncallers = ['ip:192.0.2.7']\n\
               [[limit]]\nname = 'new'\nquota = '1/s'\nmode = 'shadow'\n";
    let changes = between(old, new);
    assert_eq!(
        shown(&changes.changed),
        [
            "api: 3/min → 5/min",
            "api: mode enforce → shadow",
            "api: capacity 100000 → 7",
            "api: tier.gold none → 9/min",
            "api: match.path any → /api",
        ]
    );
    assert_eq!(changes.changed[3].who.as_deref(), Some("callers in tier gold"));
    let effects: Vec<_> = changes.changed.iter().map(|change| change.effect.name()).collect();
    assert_eq!(effects, ["looser", "looser", "different", "looser", "looser"]);
    assert_eq!(
        (changes.added.as_slice(), changes.removed.as_slice()),
        (&["new".to_owned()][..], &["gone".to_owned()][..])
    );
    assert_eq!(changes.lists[0].to_string(), "block: 1 added, 1 removed");
    let entries = shown(&changes.lists[0].entries);
    assert_eq!(entries[0], "+ 192.0.2.1/32");
    assert!(entries[1].starts_with("- api-key:#") && !entries[1].contains("secret"));
    assert_eq!(shown(&changes.others), ["tier.gold.callers: none → 1 caller"]);
    assert_eq!(shown(&changes.others[0].entries), ["+ ip:192.0.2.7"]);
    let affected = |limit: &str| changes.affected.iter().find(|it| it.limit == limit).unwrap();
    assert_eq!(affected("api").who, "every caller of /api");
    assert_eq!((affected("gone").quota.as_str(), affected("new").mode), ("1/s", Mode::Shadow));
    assert!(!changes.is_empty() && between(old, old).is_empty() && between(new, new).is_empty());
}

#[test]
fn changes_of_a_concurrency_limit_are_named() {
    let limit = |rest: &str| format!("[[limit]]\nname = 'uploads'\n{rest}\n");
    let (five, eight) = ("concurrent = 5", "concurrent = { limit = 8, ttl = '1min' }");
    let changes = between(&limit(five), &limit(eight));
    assert_eq!(
        shown(&changes.changed),
        ["uploads: 5 concurrent → 8 concurrent", "uploads: ttl 30s → 60s"]
    );
    assert_eq!(changes.changed[0].effect, Effect::Looser);
    let changes = between(&limit(five), &limit("quota = '5/s'"));
    assert_eq!(changes.restarted, ["uploads"]);
    assert_eq!(changes.changed[0].to_string(), "uploads: 5 concurrent → 5/s");
    assert_eq!(changes.changed[0].effect, Effect::Different);
}

#[test]
fn a_limit_that_counts_something_else_is_restarted() {
    let limit = |per: &str| format!("[[limit]]\nname = 'api'\nquota = '3/min'\nper = {per}\n");
    let changes = between(&limit("'ip'"), &limit("'global'"));
    assert_eq!(changes.restarted, ["api"]);
    assert_eq!(changes.changed[0].to_string(), "api: per ip → global");
    assert_eq!(changes.changed[0].effect, Effect::Stricter);
    assert_eq!(changes.affected[0].who, "all callers together");
    let descriptors = "[[limit]]\nname = 'api'\nquota = '1/min'\nmatch = { domain = 'edge' }\n";
    let changes = between(&limit("'ip'"), descriptors);
    assert_eq!(changes.affected[0].who, "every descriptor of domain edge, each descriptor apart");
    assert!(changes.changed.iter().all(|change| change.effect == Effect::Different), "{changes:?}");
}

#[test]
fn a_ban_is_one_change_if_it_is_new_or_gone_and_one_for_each_key_if_not() {
    let limit =
        |ban: &str| format!("[[limit]]\nname = 'login'\nper = 'ip'\nquota = '5/min'\n{ban}\n");
    let (none, five) = (limit(""), limit("ban = { strikes = 5 }"));
    let changes = between(&none, &five);
    assert_eq!(shown(&changes.changed), ["login: ban none → 5 strikes in 600s"]);
    assert_eq!(changes.changed[0].effect, Effect::Stricter);
    assert_eq!(between(&five, &none).changed[0].effect, Effect::Looser);
    let three = limit("ban = { strikes = 3, on = ['denied', '4xx'] }");
    let changes = between(&five, &three);
    assert_eq!(
        shown(&changes.changed),
        ["login: ban.strikes 5 → 3", "login: ban.on report, denied → report, denied, 4xx"]
    );
    assert!(changes.changed.iter().all(|change| change.effect == Effect::Stricter));
    let reports = limit("ban = { strikes = 5, on = 'report' }");
    let change = &between(&five, &reports).changed[0];
    assert_eq!((change.key.as_str(), change.effect), ("ban.on", Effect::Looser));
}

#[test]
fn whose_override_changed_is_told_without_secrets() {
    let limit = "[[limit]]\nname = 'api'\nquota = '3/min'\n[identity]\n\
                 api-key = { header = 'x-api-key', accept = 'any' }\n";
    let own = |key: &str, rest: &str| {
        format!("[[override]]\nlimit = 'api'\ncaller = 'api-key:{key}'\n{rest}\n")
    };
    let old = limit.to_owned() + &own("kept", "quota = '9/min'") + &own("gone", "quota = '9/min'");
    let until = "quota = '9/min'\nexpires = '2027-01-01T00:00:00Z'\ncomment = 'why'";
    let new = limit.to_owned() + &own("kept", until) + &own("added", "quota = '1/min'");
    let changes = between(&old, &new).changed;
    let texts = shown(&changes).join("\n");
    assert!(!texts.contains("kept") && !texts.contains("gone"), "{texts}");
    assert!(texts.contains("9/min → 9/min, expires 2027-01-01T00:00:00Z, \"why\""), "{texts}");
    let effects: Vec<_> = changes.iter().map(|change| change.effect).collect();
    assert_eq!(effects, [Effect::Different, Effect::Stricter, Effect::Stricter]);
    assert!(changes.iter().all(|change| change.who.as_ref().unwrap().contains("=api-key:#")));
}

#[test]
fn of_many_overrides_and_entries_the_first_are_listed_and_all_counted() {
    let limit = "[[limit]]\nname = 'api'\nquota = '3/min'\nper = 'ip'\n".to_owned();
    let many = (0..250).map(|number| {
        format!("[[override]]\nlimit = 'api'\nip = '10.0.0.{number}'\nquota = '9/min'\n")
    });
    let changes = between(&limit, &(limit.clone() + &many.collect::<String>())).changed;
    assert_eq!(changes.len(), 101);
    assert_eq!(changes[100].to_string(), "api: override 150 more callers others → others");
    let block: Vec<_> = (0..250).map(|number| format!("'10.0.0.{number}'")).collect();
    let changes = between(&limit, &format!("block = [{}]\n{limit}", block.join(", ")));
    assert_eq!((changes.lists[0].added, changes.lists[0].entries.len()), (250, 100));
}

#[test]
fn a_change_of_identity_names_the_limits_that_count_callers() {
    let limits = "[[limit]]\nname = 'api'\nquota = '3/min'\n\
                  [[limit]]\nname = 'all'\nquota = '3/min'\nper = 'global'\n";
    let trusted = |proxies: &str| format!("[identity]\ntrusted-proxies = [{proxies}]\n{limits}");
    let changes = between(&trusted("'10.0.0.0/8'"), &trusted("'10.0.0.0/8', '192.0.2.0/24'"));
    assert_eq!(shown(&changes.others), ["identity.trusted-proxies: 1 range → 2 ranges"]);
    assert_eq!(shown(&changes.others[0].entries), ["+ 192.0.2.0/24"]);
    assert_eq!(changes.by_identity, ["api"]);
    let keys = |keys: &str| {
        format!("[identity]\napi-key = {{ header = 'x-key', accept = [{keys}] }}\n{limits}")
    };
    let changes = between(&keys("'k1', 'k2'"), &keys("'k1', 'k3'"));
    let change = &changes.others[0];
    assert_eq!((change.key.as_str(), change.entries.len()), ("identity.api-key", 2));
    assert!(!format!("{changes:?}").contains("k3"), "{changes:?}");
}

#[test]
fn a_tree_of_descriptors_is_compared_node_by_node() {
    let node = |value: &str, quota: Option<NodeQuota>, mode| Node {
        value: Some(value.to_owned()),
        limit: quota.map(|quota| NodeLimit { mode, ..NodeLimit::new(quota) }),
        ..Node::new("path")
    };
    let policy = |nodes: Vec<Node>| {
        Policy::builder().domain(Domain { name: "edge".to_owned(), nodes }).build().unwrap()
    };
    let counted = |text: &str| {
        let (quota, algorithm) = (text.parse().unwrap(), crate::AlgorithmKind::FixedWindow);
        Some(NodeQuota::Counted { quota, algorithm })
    };
    let old = policy(vec![
        node("/a", counted("5/s"), NodeMode::Enforce),
        node("/b", Some(NodeQuota::Unlimited), NodeMode::Enforce),
        node("/x*", counted("5/s"), NodeMode::Enforce),
        node("/xy*", counted("5/s"), NodeMode::Enforce),
    ]);
    let mut renamed = node("/a", counted("5/s"), NodeMode::Quota);
    if let Some(limit) = &mut renamed.limit {
        limit.replaces = vec!["other".to_owned()];
    }
    let new = policy(vec![
        renamed,
        node("/b", None, NodeMode::Enforce),
        node("/xy*", counted("5/s"), NodeMode::Enforce),
        node("/x*", counted("5/s"), NodeMode::Enforce),
    ]);
    let changes = Changes::between(&old, &new);
    assert_eq!(shown(&changes.changed), ["edge/path=%2Fa: mode enforce → quota"]);
    assert_eq!(
        shown(&changes.others),
        [
            "domain.edge/path=%2Fa.replaces: none → other",
            "domain.edge/path=%2Fb: unlimited → known, without a limit",
            "domain.edge/path.order: /x*, /xy* → /xy*, /x*",
        ]
    );
    assert!(Changes::between(&old, &old).is_empty() && Changes::between(&new, &new).is_empty());
}
