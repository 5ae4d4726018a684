//! Limits that are asked by name, several of them together.

use spillgate_policy::{Answer, Gate, Limit, LimitCheck, Limits, ListKind, Mode, Policy, Terms};
use spillgate_testing::CheckLimit;

fn gate() -> Gate {
    let policy = Policy::builder()
        .limit(Limit::new("total", "1/h burst 10").per(["global"]))
        .limit(Limit::new("each", "1/h burst 3"))
        .limit(Limit::new("trial", "1/h burst 1").path("/trial").mode(Mode::Shadow));
    Gate::new(policy.build().unwrap()).unwrap()
}

fn each(cost: u64) -> LimitCheck<'static> {
    LimitCheck { limit: "each", values: &["user:1"], cost }
}

fn total(cost: u64) -> LimitCheck<'static> {
    LimitCheck { limit: "total", values: &[], cost }
}

async fn left(gate: &Gate) -> (u64, u64) {
    let total = gate.peek_limit("total", &[], 0).await.unwrap();
    let each = gate.peek_limit("each", &["user:1"], 0).await.unwrap();
    (total.remaining(), each.remaining())
}

#[tokio::test]
async fn several_are_spent_together_and_told_in_the_order_in_which_they_were_asked() {
    let gate = gate();
    let trial = LimitCheck { limit: "trial", values: &["user:1"], cost: 1 };
    let outcome = gate.decide(&Limits(&[trial, total(2), each(1)])).await.unwrap();
    let message: Vec<_> = outcome.limits().map(|limit| limit.name().to_owned()).collect();
    assert_eq!(message, ["trial", "total", "each"]);
    assert!(outcome.is_allowed());
    assert_eq!(left(&gate).await, (8, 2));
    // One in shadow that denies changes nothing.
    let outcome = gate.decide(&Limits(&[total(1), trial])).await.unwrap();
    assert!(outcome.is_allowed());
    assert!(outcome.limits().last().unwrap().decision().is_denied());
    assert_eq!(left(&gate).await, (7, 2));
}

#[tokio::test]
async fn if_one_denies_nothing_is_spent_on_any() {
    let gate = gate();
    let outcome = gate.decide(&Limits(&[total(5), each(4)])).await.unwrap();
    assert_eq!((outcome.answer(), outcome.denied_by()), (Answer::Denied, Some("each")));
    // Each alone would pass, both together do not.
    let outcome = gate.decide(&Limits(&[each(2), each(2)])).await.unwrap();
    assert!(!outcome.is_allowed());
    let unknown = LimitCheck { limit: "al", values: &[], cost: 1 };
    let error = gate.decide(&Limits(&[total(1), unknown])).await.unwrap_err();
    assert!(error.is_unknown(), "{error}");
    assert_eq!(left(&gate).await, (10, 3));
    assert!(gate.decide(&Limits(&[])).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_outcome_is_settled_by_what_it_really_cost() {
    let gate = gate();
    let receipt = gate.decide(&Limits(&[each(3)])).await.unwrap().receipt().unwrap();
    assert_eq!(gate.settle_actual(receipt, 1).await.unwrap().settled.unwrap().left.remaining(), 2);
    let receipt = gate.decide(&Limits(&[each(1)])).await.unwrap().receipt().unwrap();
    assert_eq!(gate.settle_actual(receipt, 9).await.unwrap().settled.unwrap().left.remaining(), 0);
    // In another algorithm everyone starts afresh, so there is nothing to give back.
    let receipt = gate.decide(&Limits(&[total(4)])).await.unwrap().receipt().unwrap();
    let fixed = spillgate_policy::AlgorithmKind::FixedWindow;
    let other = Limit::new("total", "10/day").per(["global"]).algorithm(fixed);
    gate.replace(Policy::builder().limit(other).build().unwrap()).unwrap();
    let _ = gate.decide(&Limits(&[total(3)])).await.unwrap();
    assert!(gate.settle_actual(receipt, 0).await.unwrap().settled.is_none());
    assert_eq!(gate.peek_limit("total", &[], 0).await.unwrap().remaining(), 7);
}

#[tokio::test]
async fn limits_and_lists_are_told_as_they_are_now() {
    let gate = gate();
    let _ = gate.decide(&Limits(&[each(1)])).await.unwrap();
    let limits = gate.limits();
    assert_eq!((limits[1].quota.as_str(), limits[1].callers), ("1/h burst 3", Some(1)));
    assert_eq!((limits[0].per.as_str(), limits[2].mode), ("global", Mode::Shadow));
    assert_eq!((gate.policy().parts("total"), gate.policy().parts("none")), (Some(0), None));
    for entry in ["user:b", "192.0.2.7", "key:a", "192.0.2.0/24"] {
        gate.list(ListKind::Allow, entry, Terms::permanent()).await.unwrap();
    }
    let listed = gate.listed(ListKind::Allow);
    let listed: Vec<_> = listed.iter().map(|it| it.entry.as_str()).collect();
    assert_eq!(listed, ["192.0.2.0/24", "192.0.2.7/32", "key:a", "user:b"]);
    assert!(gate.listed(ListKind::Block).is_empty());
}

#[tokio::test]
async fn a_receipt_does_not_hold_the_policy_nor_outlive_what_was_counted() {
    let gate = gate();
    let receipt = gate.decide(&Limits(&[each(3)])).await.unwrap().receipt().unwrap();
    let early = gate.decide(&Limits(&[total(4)])).await.unwrap().receipt().unwrap();
    let old = std::sync::Arc::downgrade(&gate.policy());
    let replace = |total: Limit| {
        let each = Limit::new("each", "1/h burst 5");
        let policy = Policy::builder().limit(each).limit(total.per(["global"])).build();
        gate.replace(policy.unwrap()).unwrap()
    };
    let fixed = spillgate_policy::AlgorithmKind::FixedWindow;
    replace(Limit::new("total", "10/day").algorithm(fixed));
    assert!(old.upgrade().is_none(), "nobody holds it");
    assert_eq!(gate.settle_actual(receipt, 1).await.unwrap().settled.unwrap().left.remaining(), 4);
    // The limit counts again as it did, with what was spent then; that stays spent.
    replace(Limit::new("total", "1/h burst 10"));
    let _ = gate.decide(&Limits(&[total(5)])).await.unwrap();
    assert!(gate.settle_actual(early, 0).await.unwrap().settled.is_none());
    assert_eq!(gate.peek_limit("total", &[], 0).await.unwrap().remaining(), 1);
}

#[tokio::test]
async fn long_keys_are_refused_and_what_is_unknown_is_told_in_few_words() {
    let gate = gate();
    let user = |length: usize| format!("user:{}", "x".repeat(length - 5));
    assert!(gate.check_limit("each", &[&user(1024)], 1).await.unwrap().is_allowed());
    let error = gate.check_limit("each", &[&user(1025)], 1).await.unwrap_err();
    assert_eq!(error.to_string(), "limit \"each\": the key has 1025 bytes; write at most 1024");
    let error = gate.check_limit(&"x".repeat(100_000), &[], 1).await.unwrap_err().to_string();
    assert!(error.starts_with("there is no limit \"xxx") && error.len() < 200, "{error}");
}

#[tokio::test]
async fn a_limit_by_name_is_met_by_no_request() {
    let policy = Policy::builder()
        .limit(Limit::new("login", "1/h burst 1").by_name().per(["user"]))
        .limit(Limit::new("api", "1/h burst 5").by_name().per(["user"]));
    let gate = Gate::new(policy.build().unwrap()).unwrap();
    let (parts, ()) = http::Request::get("/login").body(()).unwrap().into_parts();
    let request = spillgate_policy::RequestView::from_parts(&parts, Some([203, 0, 113, 7].into()));
    for _ in 0..9 {
        let outcome = gate.decide(&request).await.unwrap();
        assert!(outcome.is_allowed() && outcome.limits().count() == 0);
    }
    assert!(gate.check_limit("login", &["42"], 1).await.unwrap().is_allowed());
    assert!(gate.check_limit("login", &["42"], 1).await.unwrap().is_denied());
    assert!(gate.check_limit("api", &["42"], 5).await.unwrap().is_allowed());
    let explained = gate.explain(&request).await.unwrap();
    assert!(explained.limits.is_empty(), "{explained:?}");
}

#[tokio::test]
async fn a_caller_has_one_spelling() {
    let policy = Policy::builder()
        .limit(Limit::new("user", "1/h burst 1").by_name().per(["user"]))
        .limit(Limit::new("key", "1/h burst 1").by_name().per(["api-key"]))
        .limit(Limit::new("ip", "1/h burst 1").per(["ip"]))
        .limit(Limit::new("caller", "1/h burst 1").path("/x"));
    let gate = Gate::new(policy.build().unwrap()).unwrap();
    for (limit, right, wrong, said) in [
        ("user", "42", "user:42", "as in \"42\" for \"user:42\""),
        ("key", "k1", "api-key:k1", "as in \"42\" for \"api-key:42\""),
        ("key", "k2", "key:k2", "as in \"42\" for \"key:42\""),
        ("user", "7", "", "names nobody"),
        ("caller", "user:42", "42", "not a caller"),
    ] {
        assert!(gate.check_limit(limit, &[right], 1).await.unwrap().is_allowed(), "{right}");
        let error = gate.check_limit(limit, &[wrong], 1).await.unwrap_err();
        assert!(error.is_unknown() && error.to_string().contains(said), "{wrong}: {error}");
    }
    // Two spellings of one caller may both be taken if they are one caller.
    for (limit, one, other) in
        [("ip", "192.0.2.7", "ip:192.0.2.7"), ("caller", "key:k1", "api-key:k1")]
    {
        assert!(gate.check_limit(limit, &[one], 1).await.unwrap().is_allowed(), "{one}");
        assert!(gate.check_limit(limit, &[other], 1).await.unwrap().is_denied(), "{other}");
    }
}
