//! What is wrong in a policy, and how it is said.

use crate::common::problems;
use spillgate_policy::{Accept, Identity, Limit, Outcome, Policy, Tier};

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_line() {
    let found = problems(
        r#"allow = ["10.0.0.1/8"]
[identity]
order = ["api-key", "ipp"]
trusted-proxies = ["10.0.0.0/33"]
ipv6-prefix = 129
[[limit]]
name = "public"
quotas = "10/s"
quota = "10/fortnight"
algorithm = "token-buckett"
[[limit]]
name = "public"
quota = "5/s"
match = { path = "public/{id", method = "get" }
per = ["caller", "global"]
[[limit.override]]
user = "alice"
quota = "0/s"
[tier.gold]
callers = ["nobody"]
publik = "10/s"
"#,
    );
    let expected = [
        "line 1, column 10: allow, entry 1: ",
        "line 3, column 21: identity, order: unknown \"ipp\"; did you mean \"ip\"?",
        "line 4, column 20: identity, trusted-proxies: ",
        "line 5, column 15: ",
        "line 8, column 1: ",
        "line 9, column 9: limit \"public\", quota \"10/fortnight\": unknown unit",
        "line 10, column 13: limit \"public\": unknown algorithm \"token-buckett\"; did you mean \
         \"token-bucket\"?",
        "line 12, column 8: there are two limits called \"public\"; give each its own name",
        "line 14, column 18: limit \"public\": ",
        "line 14, column 41: limit \"public\": methods are in capitals; write \"GET\" for \"get\"",
        "line 15, column 18: limit \"public\", per: \"global\" stands alone",
        "line 16, ",
        "line 17, column 8: limit \"public\", override 1: the limit is not counted per \"user\"",
        "line 18, column 9: limit \"public\", override 1, quota \"0/s\": ",
        "line 20, column 12: tier \"gold\", caller 1: not a caller",
        "line 21, column 10: tier \"gold\": there is no limit \"publik\"; did you mean \"public\"?",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n  should begin with\n{expected}");
    }
}

#[test]
fn an_override_must_be_for_a_limit_that_there_is() {
    let found = problems(
        r#"
[[limit]]
name = "public"
quota = "10/s"
[[override]]
limit = "publik"
caller = "api-key:partner-7"
quota = "100/s"
"#,
    );
    let expected = "line 6, column 9: override: there is no limit \"publik\"; did you mean \
                    \"public\"?";
    assert_eq!(found, [expected]);
}

#[test]
fn a_file_without_limits_must_say_so() {
    let expected = "line 1, column 1: there are no limits, so everything would pass; add a \
                    [[limit]], or write `limit = []` if that is meant";
    for text in ["", "\n", "# [[limit]]", "[identity]\norder = [\"ip\"]", "block = [\"192.0.2.7\"]"]
    {
        assert_eq!(problems(text), [expected], "{text:?}");
    }
    for text in ["limit = []", "limit = []\nblock = [\"192.0.2.7\"]"] {
        assert!(Policy::from_toml(text).is_ok(), "{text:?}");
    }
    assert!(Policy::builder().build().is_ok(), "a program means what it says");
}

#[test]
fn what_no_request_has_cannot_be_counted_by() {
    let with = |identity: &str, limit: &str| {
        let text = format!("[identity]\n{identity}\n[[limit]]\nname = 'l'\nquota = '1/s'\n{limit}");
        Policy::from_toml(&text).map(drop).map_err(|error| error.to_string())
    };
    for (identity, limit) in [
        ("", "per = 'user'"),
        ("", "per = 'api-key'"),
        ("", "per = ['ip', 'user']"),
        ("api-key = { header = 'x-api-key' }\ntrusted-proxies = ['10.0.0.0/8']", "per = 'user'"),
        ("user = { header = 'x-user-id' }", "per = 'user'"),
        ("user = { header = 'x-user-id', accept = [] }", "per = 'user'"),
    ] {
        let error = with(identity, limit).unwrap_err();
        for said in ["so all would share one count", "`identity`", "by-name = true"] {
            assert!(error.contains(said), "{identity} {limit}: {error}");
        }
    }
    for (identity, limit) in [
        ("", "per = 'user'\nby-name = true"),
        ("user = { header = 'x-user-id' }\ntrusted-proxies = ['10.0.0.0/8']", "per = 'user'"),
        ("user = { header = 'x-user-id', accept = 'any' }", "per = ['ip', 'user']"),
        ("api-key = { header = 'x-api-key', accept = ['k'] }", "per = 'api-key'"),
    ] {
        assert_eq!(with(identity, limit), Ok(()), "{identity} {limit}");
    }
    let limit = || Limit::new("l", "1/s").per(["user"]);
    assert!(Policy::builder().limit(limit()).build().is_err());
    assert!(Policy::builder().limit(limit()).identify_by(|_| None).build().is_ok());
    assert!(Policy::builder().limit(limit()).names_callers().build().is_ok());
}

#[test]
fn a_tier_that_nobody_can_be_in_is_refused() {
    let with = |identity: &str, limit: &str, callers: &str| {
        let text = format!(
            "[identity]\n{identity}\n[[limit]]\nname = 'l'\nquota = '1/s'\n{limit}\n\
             [tier.gold]\n{callers}\nl = '2/s'"
        );
        Policy::from_toml(&text).map(drop).map_err(|error| error.to_string())
    };
    let keys = "api-key = { header = 'x-api-key', accept = ['k1'] }";
    for (identity, callers) in [
        ("", ""),
        ("tier-header = 'x-tier'", ""),
        ("", "callers = ['user:42', 'api-key:k1']"),
        (keys, "callers = ['user:42', 'api-key:k2']"),
        (
            "order = ['api-key']\napi-key = { header = 'x-api-key', accept = ['k1'] }",
            "callers = ['192.0.2.7']",
        ),
        (
            "order = ['ip']\napi-key = { header = 'x-api-key', accept = ['k1'] }",
            "callers = ['api-key:k1']",
        ),
    ] {
        let error = with(identity, "", callers).unwrap_err();
        assert!(
            error.contains("tier \"gold\": nobody can be in it"),
            "{identity} {callers}: {error}"
        );
    }
    for (identity, limit, callers) in [
        (keys, "", "callers = ['user:42', 'api-key:k1']"),
        ("", "", "callers = ['192.0.2.7']"),
        ("tier-header = 'x-tier'\ntrusted-proxies = ['10.0.0.0/8']", "", ""),
        ("", "by-name = true", "callers = ['user:42']"),
    ] {
        assert_eq!(with(identity, limit, callers), Ok(()), "{identity} {limit} {callers}");
    }
}

#[test]
fn limits_by_name_do_not_forestall_each_other_and_have_no_conditions() {
    let login = || Limit::new("login", "5/min").per(["user"]);
    let api = || Limit::new("api", "100/s").per(["user"]);
    let both = Policy::builder().names_callers().limit(login()).limit(api()).build();
    assert!(both.unwrap_err().to_string().contains("can never be reached"));
    assert!(Policy::builder().limit(login().by_name()).limit(api().by_name()).build().is_ok());
    for (line, said) in [
        ("match = { path = '/x' }", "has no `match`, since no request meets it"),
        ("match = { domain = 'edge' }", "has no `match`"),
        ("cost = 2", "has no `cost`, since a check names its cost"),
        ("settle = { status = 401 }", "has no `settle`"),
    ] {
        let text = format!("[[limit]]\nname = 'l'\nquota = '1/s'\nby-name = true\n{line}");
        let found = problems(&text);
        assert!(found.len() == 1 && found[0].contains(said), "{line}: {found:?}");
    }
}

#[test]
fn a_limit_that_can_never_be_reached_is_refused() {
    let found = problems(
        r#"
[[limit]]
name = "all"
quota = "10/s"
[[limit]]
name = "users"
match = { path = "/users/{id}" }
quota = "20/s"
"#,
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("limit \"users\" can never be reached: \"all\" counts"), "{found:?}");

    // One name may stand for different segments.
    let one = Limit::new("one", "1/s").path("/{id}/{*rest}").per(["path:id"]);
    let other = Limit::new("other", "2/s").path("/{org}/{id}").per(["path:id"]);
    assert!(Policy::builder().limit(one).limit(other).build().is_ok());

    // Neither of two that differ in burst and rate is stricter.
    let both = Policy::builder()
        .limit(Limit::new("burst", "10/s burst 10"))
        .limit(Limit::new("long", "1000/h burst 1000"))
        .build();
    assert!(both.is_ok());
}

#[test]
fn a_cost_of_nothing_is_refused_and_so_are_more_problems_than_anyone_reads() {
    let found = problems(
        "[[limit]]\nname = \"l\"\nquota = \"1/s\"\ncost = 0\nsettle = { header = \"x\" }\n",
    );
    assert_eq!(found, ["line 4, column 8: limit \"l\": a cost of 0 always passes; use 1 or more"]);
    let found = problems(&format!("limit = []\nblock = [{}]", "\"x\",".repeat(5_000)));
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "and 4900 more problems");
}

#[test]
fn errors_hold_no_keys() {
    const SECRET: &str = "hunter2";
    let text = format!(
        r#"
allow = ["{SECRET}", "key:"]
block = ["user:", "{SECRET}/8"]
[identity]
api-key = {{ header = "x-api-key", accept = ["{SECRET}", 7] }}
[[limit]]
name = "l"
per = ["ip", "user"]
quota = "1/s"
[[limit.override]]
ip = "{SECRET}"
user = "{SECRET}"
quota = "1/s"
[tier.gold]
callers = ["{SECRET}", "{SECRET}:x"]
"#
    );
    let error = Policy::from_toml(&text).unwrap_err();
    assert!(error.problems().len() >= 6, "{error}");
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
}

#[test]
fn debug_output_holds_no_keys() {
    const SECRET: &str = "hunter2";
    let identity = Identity::new().api_key("x-api-key", Accept::keys([SECRET]));
    let limit = Limit::new("l", "1/s").override_for("caller", format!("api-key:{SECRET}"), "2/s");
    let tier = Tier::new().callers([format!("api-key:{SECRET}")]).quota("l", "3/s");
    let shown = format!("{identity:?} {limit:?} {tier:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    let builder = Policy::builder()
        .identity(identity)
        .limit(limit)
        .tier("gold", tier)
        .block([format!("key:{SECRET}")])
        .allow([format!("user:{SECRET}")]);
    let shown = format!("{builder:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    let policy = builder.build().unwrap();
    let shown = format!("{policy:?}");
    assert!(!shown.contains(SECRET), "{shown}");

    let gate = spillgate_policy::Gate::new(policy).unwrap();
    let call = crate::common::get("203.0.113.7", "/").with("x-api-key", SECRET);
    let outcome = gate.try_decide(&call.request(), |it| it.map(Outcome::take)).unwrap().unwrap();
    assert!(!outcome.is_allowed(), "it is blocked");
    let shown = format!("{gate:?} {outcome:?} {:?} {:?}", outcome.refused_caller(), call.request());
    assert!(!shown.contains(SECRET), "{shown}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Policy::load("/dev/zero").unwrap_err();
    assert_eq!(error.to_string(), "the policy /dev/zero cannot be read: it is not a file");
    let error = Policy::load("/nowhere/policy.toml").unwrap_err();
    assert!(error.to_string().starts_with("the policy /nowhere/policy.toml cannot be read: "));
    let found = problems(
        "limit = []\n[identity]\n\
         api-key = { header = \"x-api-key\", accept = \"/nowhere/keys.txt\" }\n",
    );
    assert!(
        found[0].contains("the list of known keys /nowhere/keys.txt cannot be read"),
        "{found:?}"
    );
}

#[test]
fn explain_reads_well() {
    let (gate, _) = crate::common::gate(
        r#"
[identity]
trusted-proxies = ["10.0.0.0/8"]
[[limit]]
name = "public"
match = { path = "/public/{*rest}" }
quota = "1/s burst 2"
[[limit]]
name = "login"
match = { path = "/login" }
per = "ip"
quota = "5/min"
[[limit]]
name = "everyone"
per = "global"
quota = "100/s"
mode = "shadow"
"#,
    );
    let call = crate::common::get("10.0.0.1", "/public/a").with("x-forwarded-for", "203.0.113.7");
    assert_eq!(call.passes(&gate, 3), 2);
    let explained = call.explained(&gate).to_string();
    let expected = "\
answer   denied
caller   ip:203.0.113.7, named by the client's address
address  203.0.113.7, from the header x-forwarded-for, by a trusted proxy
limit    public: denies
           counted under caller=203.0.113.7, cost 1
           0 of 2 left, would pass in 1s, all back in 2s
limit    login: not met, another path
limit    everyone (shadow): passes
           counted under global, cost 1
           98 of 100 left, all back in 20ms
";
    assert_eq!(explained, expected);
    assert_eq!(call.explained(&gate).to_string(), expected, "explaining spends nothing");
}
