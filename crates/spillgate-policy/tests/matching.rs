//! Which limits a request meets, and what they count.

use crate::common::{Call, call, gate, gate_of, get};
use spillgate_policy::{Answer, Limit, Mode, Policy, Tier};

#[test]
fn a_request_meets_every_limit_that_matches_it() {
    let (gate, _) = gate(
        r#"
        [[limit]]
        name = "all"
        quota = "100/s"
        [[limit]]
        name = "users"
        match = { path = "/users/{id}" }
        quota = "90/s"
        [[limit]]
        name = "writes"
        match = { method = ["POST", "PUT"] }
        quota = "80/s"
        [[limit]]
        name = "reads"
        match = { path = "/users/{*rest}", method = "GET" }
        quota = "70/s"
        [[limit]]
        name = "api-host"
        match = { host = ["api.example.com", "*.api.example.com"] }
        quota = "60/s"
        [[limit]]
        name = "beta"
        match = { header = { x-beta = "*", x-plan = "free" } }
        quota = "50/s"
        "#,
    );
    let host = |call: Call, host| call.with("host", host);
    let at = |method, path| host(call(method, "203.0.113.7", path), "example.org");
    assert_eq!(at("GET", "/").met(&gate), ["all"]);
    assert_eq!(at("GET", "/users/7").met(&gate), ["all", "users", "reads"]);
    assert_eq!(at("HEAD", "/users/7/posts").met(&gate), ["all", "reads"]);
    assert_eq!(at("PUT", "/users/7").met(&gate), ["all", "users", "writes"]);
    for name in
        ["api.example.com", "API.example.com:8080", "v2.api.example.com", "api.example.com."]
    {
        assert_eq!(host(get("203.0.113.7", "/"), name).met(&gate), ["all", "api-host"], "{name}");
    }
    assert_eq!(at("GET", "/").with("x-beta", "1").met(&gate), ["all"]);
    let beta = at("GET", "/").with("x-beta", "1").with("x-plan", "free");
    assert_eq!(beta.met(&gate), ["all", "beta"]);
}

#[test]
fn a_limit_can_be_for_head_alone() {
    let (gate, _) = gate("[[limit]]\nname = \"l\"\nmatch = { method = \"HEAD\" }\nquota = \"1/s\"");
    assert_eq!(call("HEAD", "203.0.113.7", "/").met(&gate), ["l"]);
    assert!(get("203.0.113.7", "/").met(&gate).is_empty());
}

#[test]
fn limits_count_per_whatever_they_name() {
    let one_per = |per: &[&str]| {
        let limit = Limit::new("l", "burst 1").path("/{room}/{*rest}").per(per.iter().copied());
        gate_of(Policy::builder().limit(limit).build().unwrap()).0
    };
    let calls = || {
        vec![
            get("203.0.113.7", "/a/x").with("x-org", "1"),
            get("203.0.113.7", "/b/x").with("x-org", "1"),
            get("203.0.113.8", "/a/x").with("x-org", "2"),
            get("203.0.113.8", "/b/y").with("x-org", "2"),
        ]
    };
    for (per, passed) in [
        (&["global"][..], 1),
        (&["caller"], 2),
        (&["ip"], 2),
        (&["header:x-org"], 2),
        (&["path:room"], 2),
        (&["path:rest"], 2),
        (&["ip", "path:room"], 4),
        (&["header:x-org", "path:rest"], 3),
    ] {
        let gate = one_per(per);
        let count = calls().iter().filter(|call| call.through(&gate).is_allowed()).count();
        assert_eq!(count, passed, "{per:?}");
    }
}

#[test]
fn parts_of_a_key_are_never_run_together() {
    let limit = Limit::new("l", "burst 1").per(["header:a", "header:b"]);
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    for (a, b) in [("x", "y_z"), ("x_y", "z"), ("x", "y"), ("xy", "z"), ("x_", "y_z")] {
        let call = get("203.0.113.7", "/").with("a", a).with("b", b);
        assert_eq!(call.passes(&gate, 2), 1, "{a} and {b}");
    }
}

#[test]
fn all_is_spent_or_nothing_and_the_slowest_is_named() {
    let (gate, clock) = gate(
        r#"
        [[limit]]
        name = "wide"
        per = "global"
        quota = "1/s burst 100"
        [[limit]]
        name = "narrow"
        quota = "1/s burst 2"
        [[limit]]
        name = "slow"
        match = { method = "POST" }
        quota = "1/min burst 3"
        "#,
    );
    let read = get("203.0.113.7", "/");
    let write = call("POST", "203.0.113.7", "/");
    assert!(write.through(&gate).is_allowed());
    assert!(write.through(&gate).is_allowed());
    let denied = read.through(&gate);
    assert_eq!(denied.denied_by(), Some("narrow"));
    assert_eq!(denied.retry_after(), Some(std::time::Duration::from_secs(1)));
    let left = |name: &str| {
        let explained = write.explained(&gate);
        let limit = explained.limits.into_iter().find(|limit| limit.name == name).unwrap();
        limit.state.unwrap().remaining
    };
    assert_eq!((left("wide"), left("slow")), (98, 1), "the denied call spent nothing");
    clock.advance(std::time::Duration::from_secs(1));
    assert!(write.through(&gate).is_allowed());
    let denied = write.through(&gate);
    assert_eq!(denied.denied_by(), Some("slow"), "both deny, and it takes longer");
    assert_eq!(denied.limits().count(), 3, "the state of every limit is told");
}

#[test]
fn a_limit_in_shadow_counts_but_never_refuses() {
    let shadow = Limit::new("strict", "burst 1").mode(Mode::Shadow);
    let policy = Policy::builder().limit(shadow).limit(Limit::new("lax", "burst 3")).build();
    let (gate, _) = gate_of(policy.unwrap());
    let call = get("203.0.113.7", "/");
    let outcomes: Vec<_> = (0..4).map(|_| call.through(&gate)).collect();
    let answers: Vec<_> = outcomes.iter().map(spillgate_policy::Outcome::answer).collect();
    assert_eq!(answers, [Answer::Allowed, Answer::Allowed, Answer::Allowed, Answer::Denied]);
    let shadow_denied = |index: usize| {
        let limits = outcomes[index].limits();
        limits.filter(|limit| limit.name() == "strict" && limit.decision().is_denied()).count()
    };
    assert_eq!((shadow_denied(0), shadow_denied(1), shadow_denied(3)), (0, 1, 0));
    assert_eq!(outcomes[1].nearest().unwrap().name(), "lax", "headers do not speak for it");
}

#[test]
fn override_goes_before_tier_and_tier_before_limit() {
    let limit = Limit::new("l", "burst 1")
        .override_for("caller", "ip:203.0.113.1", "burst 5")
        .override_for("caller", "203.0.113.3", "burst 6");
    let tier = Tier::new().callers(["ip:203.0.113.1", "ip:203.0.113.2"]).quota("l", "burst 3");
    let policy = Policy::builder().limit(limit).tier("gold", tier).build().unwrap();
    let (gate, _) = gate_of(policy);
    for (peer, passed) in
        [("203.0.113.1", 5), ("203.0.113.2", 3), ("203.0.113.3", 6), ("203.0.113.4", 1)]
    {
        assert_eq!(get(peer, "/").passes(&gate, 9), passed, "{peer}");
    }
}

#[tokio::test]
async fn a_caller_of_a_tier_is_found_by_name_and_keeps_what_it_has_spent() {
    let policy = |limit: Limit| {
        let tier = Tier::new().callers(["ip:203.0.113.1"]).quota("l", "1/h burst 100");
        Policy::builder().limit(limit).tier("gold", tier).build().unwrap()
    };
    let (gate, _) = gate_of(policy(Limit::new("l", "1/h burst 10")));
    let gold = get("203.0.113.1", "/");
    assert_eq!(gold.passes(&gate, 60), 60);
    let left = async || gate.peek_limit("l", &["203.0.113.1"], 1).await.unwrap().remaining();
    assert_eq!(left().await, 40);
    let special =
        Limit::new("l", "1/h burst 10").override_for("caller", "203.0.113.1", "1/h burst 80");
    gate.replace(policy(special)).unwrap();
    assert_eq!(left().await, 20, "60 used stay 60 used");
    gate.replace(policy(Limit::new("l", "1/h burst 10"))).unwrap();
    assert_eq!(left().await, 40);
    gate.reset_limit("l", &["203.0.113.1"]).await.unwrap();
    assert_eq!(gold.passes(&gate, 200), 100);
}

#[test]
fn an_override_of_several_parts_is_for_that_key_alone() {
    let (gate, _) = gate(
        r#"
        [[limit]]
        name = "rooms"
        match = { path = "/rooms/{room}" }
        per = ["ip", "path:room"]
        quota = "burst 1"
        [[limit.override]]
        ip = "203.0.113.7"
        "path:room" = "42"
        quota = "burst 4"
        [[override]]
        limit = "rooms"
        ip = "203.0.113.9"
        "path:room" = "42"
        quota = "burst 5"
        "#,
    );
    assert_eq!(get("203.0.113.9", "/rooms/42").passes(&gate, 9), 5);
    assert_eq!(get("203.0.113.7", "/rooms/42").passes(&gate, 9), 4);
    assert_eq!(get("203.0.113.7", "/rooms/43").passes(&gate, 9), 1);
    assert_eq!(get("203.0.113.8", "/rooms/42").passes(&gate, 9), 1);
}

#[test]
fn a_cost_header_counts_from_trusted_proxies_and_is_at_least_one() {
    let (gate, _) = gate(
        r#"
        [identity]
        trusted-proxies = ["10.0.0.0/8"]
        [[limit]]
        name = "l"
        per = "global"
        quota = "burst 1000"
        cost = { header = "x-cost", default = 2 }
        "#,
    );
    let cost = |peer, value: &str| {
        let call = get(peer, "/").with("x-cost", value);
        call.through(&gate).limits().next().unwrap().decision().cost()
    };
    assert_eq!(cost("10.0.0.1", "7"), 7);
    assert_eq!(cost("10.0.0.1", "0"), 1, "never a free pass");
    assert_eq!(cost("10.0.0.1", "-3"), 2);
    assert_eq!(cost("10.0.0.1", "99999999999999999999"), 2);
    assert_eq!(cost("203.0.113.7", "7"), 2);
    let never = get("10.0.0.1", "/").with("x-cost", "1001").through(&gate);
    assert_eq!((never.answer(), never.retry_after()), (Answer::Denied, None));
}

#[test]
fn a_closure_can_tell_cost_and_tier() {
    let limit = Limit::new("l", "burst 10").cost_of(|request| request.path().len() as u64);
    let policy = Policy::builder()
        .limit(limit)
        .tier("gold", Tier::new().quota("l", "burst 20"))
        .tier_of(|request, _| request.headers().contains_key("gold").then_some("gold"))
        .build();
    let (gate, _) = gate_of(policy.unwrap());
    assert_eq!(get("203.0.113.7", "/1234").passes(&gate, 9), 2);
    // Of the same caller, who has spent 10 of 20 then.
    assert_eq!(get("203.0.113.7", "/1234").with("gold", "").passes(&gate, 9), 2);
    assert_eq!(get("203.0.113.8", "/1234").with("gold", "").passes(&gate, 9), 4);
}

#[test]
fn the_lists_go_before_every_limit_and_block_before_allow() {
    let (gate, _) = gate(
        r#"
        allow = ["192.168.1.0/24", "2001:db8::/32", "key:friend"]
        block = ["203.0.113.9", "192.168.1.13", "key:leaked-123", "user:mallory"]
        [identity]
        api-key = { header = "x-api-key", accept = ["friend", "leaked-123"] }
        [[limit]]
        name = "l"
        quota = "burst 1"
        "#,
    );
    let answer = |call: Call| {
        let _ = call.through(&gate);
        call.through(&gate).answer()
    };
    assert_eq!(answer(get("192.168.1.7", "/")), Answer::Allowed);
    assert_eq!(answer(get("2001:db8:ffff::1", "/")), Answer::Allowed);
    assert_eq!(answer(get("203.0.113.9", "/")), Answer::Blocked);
    assert_eq!(answer(get("::ffff:203.0.113.9", "/")), Answer::Blocked);
    assert_eq!(answer(get("192.168.1.13", "/")), Answer::Blocked);
    assert_eq!(answer(get("203.0.113.8", "/")), Answer::Denied);
    assert_eq!(answer(get("203.0.113.1", "/").with("x-api-key", "friend")), Answer::Allowed);
    assert_eq!(answer(get("203.0.113.1", "/").with("x-api-key", "leaked-123")), Answer::Blocked);
    let twice = get("203.0.113.1", "/").with("x-api-key", "leaked-123").with("x-api-key", "x");
    assert_eq!(answer(twice), Answer::Blocked);
    // A claim is enough to be refused, believed or not.
    assert_eq!(answer(get("203.0.113.1", "/").with("x-user-id", "mallory")), Answer::Blocked);
}

#[test]
fn every_algorithm_can_be_chosen_in_the_file() {
    for (algorithm, passed) in [
        ("token-bucket", 5),
        ("leaky-bucket", 5),
        ("leaky-shaper", 5),
        ("interval-bucket", 5),
        ("fixed-window", 5),
        ("first-hit-window", 5),
        ("sliding-window", 5),
    ] {
        let (gate, _) = gate(&format!(
            "[[limit]]\nname = \"l\"\nquota = \"5/min\"\nalgorithm = \"{algorithm}\""
        ));
        assert_eq!(get("203.0.113.7", "/").passes(&gate, 9), passed, "{algorithm}");
    }
    let (gate, clock) = gate("[[limit]]\nname = \"l\"\nquota = \"1/s burst 5\"\nstart = \"empty\"");
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 9), 0);
    clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 9), 2);
}
