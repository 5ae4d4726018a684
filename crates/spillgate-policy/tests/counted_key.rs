//! What is kept of a key names the same caller again, and shows no secret.

use http::{HeaderMap, HeaderValue, Method, Uri};
use proptest::prelude::*;
use spillgate_policy::store::CallQuota;
use spillgate_policy::{
    Answer, CountedKey, Descriptor, Descriptors, Gate, LimitCheck, Outcome, Policy, Question,
    RequestView, Throttle,
};

use crate::common::at_once;

/// A gate with one limit, counted so.
fn gate(per: &str) -> Gate {
    let policy = format!(
        "[identity]\ntrusted-proxies = ['10.0.0.0/8']\n\
         [identity.user]\nheader = 'x-user'\n[identity.api-key]\nheader = 'x-key'\n\
         [[limit]]\nname = 'l'\nquota = '5/h'\nper = {per}\nmatch = {{ path = '/{{id}}' }}\n"
    );
    Gate::new(Policy::from_toml(&policy).unwrap()).unwrap()
}

fn decide<Q>(gate: &Gate, question: &Q) -> (CountedKey<'static>, u64)
where
    Q: for<'g> Question<Outcome<'g> = Outcome<'g>>,
{
    let decided = gate.try_decide(question, |outcome| {
        let outcome = outcome.unwrap();
        let limit = outcome.limits().next().unwrap();
        let key = outcome.counted_key(limit, question.subject()).into_kept();
        (key, limit.decision().remaining())
    });
    decided.unwrap()
}

proptest! {
    #[test]
    fn values_name_the_same_key_again(
        per in prop::sample::select(vec![
            "'caller'", "'ip'", "'user'", "'api-key'", "'header:x-tag'", "'path:id'", "'global'",
            "['ip', 'header:x-tag']", "['user', 'path:id', 'api-key']",
        ]),
        user in name(), key in name(), tag in name(),
        id in "[a-z:%0-9]{1,6}",
        address in prop::sample::select(vec!["203.0.113.7", "2001:db8:1:2:3::4"]),
    ) {
        let gate = gate(per);
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", address.parse().unwrap());
        for (name, value) in [("x-user", &user), ("x-key", &key), ("x-tag", &tag)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_bytes(value).unwrap());
            }
        }
        let uri: Result<Uri, _> = format!("/{id}").parse();
        let Ok(uri) = uri else { return Ok(()) };
        let request = RequestView::new(&Method::GET, &uri, &headers, Some([10, 0, 0, 1].into()));
        let met = gate.try_decide(&request, |outcome| outcome.unwrap().limits().count());
        if met != Some(1) {
            return Ok(());
        }
        let (key, remaining) = decide(&gate, &request);
        let policy = gate.policy();
        if let Some(values) = key.values(&policy, "l") {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            let peeked = at_once(gate.peek_limit("l", &values, 1)).unwrap();
            prop_assert_eq!(peeked.remaining(), remaining, "{}", key);
        } else {
            let has_text = |value: &Option<Vec<u8>>| value.as_ref().is_some_and(|value| {
                std::str::from_utf8(value).is_err() || value == b"anonymous" || value.contains(&b':')
            });
            prop_assert!(
                [&user, &headers.get("x-key").map(|it| it.as_bytes().to_vec()), &tag]
                    .into_iter().any(has_text) || id.contains(['%', ':']),
                "{} has no values", key
            );
        }
        if let Some(caller) = key.caller(&policy) {
            at_once(gate.ban(&caller, std::time::Duration::from_secs(60), None)).unwrap();
            let answer = gate.try_decide(&request, |outcome| outcome.unwrap().answer());
            // A caller who is known by something else is not banned by an address.
            prop_assert!(answer == Some(Answer::Banned) || per != "'caller'", "{}", caller);
        }
        let shown = key.to_string();
        for secret in [&user, &tag].into_iter().flatten().filter(|value| value.len() > 9) {
            if let Ok(secret) = std::str::from_utf8(secret) {
                prop_assert!(!shown.contains(secret), "{} shows {}", shown, secret);
                let debug = format!("{key:?}");
                prop_assert!(!debug.contains(secret), "{} shows {}", debug, secret);
            }
        }
    }
}

/// What a header may hold.
fn name() -> impl Strategy<Value = Option<Vec<u8>>> {
    let byte = prop_oneof![Just(b':'), Just(0xFF), 0x21_u8..0x7F, 0x80_u8..=0xFE];
    prop_oneof![
        Just(None),
        "[a-z]{10,14}".prop_map(|text| Some(text.into_bytes())),
        prop::sample::select(vec!["anonymous", "user:x", "key:y", "api-key:"])
            .prop_map(|text| Some(text.as_bytes().to_vec())),
        prop::collection::vec(byte, 1..300).prop_map(Some),
    ]
}

#[test]
fn a_limit_for_everyone_is_kept_by_caller() {
    let gate = gate("'global'");
    let (uri, headers) = (Uri::from_static("/x"), HeaderMap::new());
    let request = RequestView::new(&Method::GET, &uri, &headers, Some([203, 0, 113, 7].into()));
    let (key, _) = decide(&gate, &request);
    assert_eq!(key.to_string(), "caller=203.0.113.7");
    assert_eq!(key.caller(&gate.policy()).as_deref(), Some("203.0.113.7"));
    assert_eq!(key.values(&gate.policy(), "l"), Some(vec![]));
    let (key, _) = decide(&gate, &LimitCheck::new("l", &[], 1));
    assert_eq!(key.to_string(), "global");
    assert_eq!(key.caller(&gate.policy()), None);
}

#[test]
fn keys_of_calls_and_descriptors_are_shown_in_clear_to_operators() {
    let policy = "[[limit]]\nname = 'edge'\nquota = '5/h'\nper = 'descriptor'\n\
                  match = { domain = 'edge', descriptor = { user = '*', path = '*' } }\n";
    let policy = Policy::from_toml(policy).unwrap().with_throttle(100, Default::default());
    let gate = Gate::new(policy).unwrap();
    let quota = CallQuota::new("5/h".parse().unwrap()).unwrap();
    let (key, _) = decide(&gate, &Throttle { key: b"user:42", quota, cost: 1 });
    assert_eq!(key.in_clear(), "key=user:42");
    assert!(key.to_string().starts_with("key=#"), "{key}");
    assert_eq!(key.values(&gate.policy(), "cl.throttle"), Some(vec!["user:42".to_owned()]));
    assert_eq!(key.values(&gate.policy(), "edge"), None);
    assert_eq!(key.values(&gate.policy(), "gone"), None);

    let entries = [("user", "alice"), ("path", "/login")];
    let question = Descriptors { domain: "edge", descriptors: &[Descriptor::new(&entries)] };
    let key = gate.try_decide(&question, |outcome| {
        let outcome = outcome.unwrap().outcome();
        let limit = outcome.limits().next().unwrap();
        outcome.counted_key(limit, question.subject()).into_kept()
    });
    let key = key.unwrap();
    assert_eq!(key.in_clear(), "descriptor=edge: user=alice, path=/login");
    assert!(key.to_string().starts_with("descriptor=#"), "{key}");
    assert_eq!(key.values(&gate.policy(), "edge"), None, "it cannot be written as one text");
}

#[test]
fn of_a_long_key_enough_is_kept_to_show_it() {
    let gate = gate("['header:x-tag', 'ip']");
    let uri = Uri::from_static("/x");
    let decided = |tag: String| {
        let headers = HeaderMap::from_iter([("x-tag".parse().unwrap(), tag.parse().unwrap())]);
        let request = RequestView::new(&Method::GET, &uri, &headers, Some([203, 0, 113, 7].into()));
        let shown = gate.try_decide(&request, |outcome| {
            let outcome = outcome.unwrap();
            let limit = outcome.limits().next().unwrap();
            outcome.counted_key(limit, request.subject()).to_string()
        });
        (decide(&gate, &request).0, shown.unwrap())
    };
    let (key, whole) = decided("x".repeat(10_000));
    assert!(key.as_bytes().len() <= 256);
    assert_eq!(key.in_clear(), format!("header:x-tag={}…, ip=203.0.113.7", "x".repeat(64)));
    assert_eq!(key.to_string(), whole, "as in logs");
    assert_eq!(key.values(&gate.policy(), "l"), None, "it cannot be named");
    assert_eq!(key.caller(&gate.policy()).as_deref(), Some("203.0.113.7"), "and yet be banned");
    let (other, _) = decided("x".repeat(10_001));
    assert_ne!(key.as_bytes(), other.as_bytes(), "keys that begin alike are not the same");
    let again = key.clone().into_kept();
    assert_eq!((again.as_bytes(), again.in_clear()), (key.as_bytes(), key.in_clear()));
}
