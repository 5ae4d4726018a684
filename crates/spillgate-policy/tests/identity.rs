//! Who is calling.

use std::borrow::Cow;

use crate::common::{gate, gate_of, get};
use proptest::prelude::*;
use spillgate_policy::{Accept, Caller, Identity, Limit, Outcome, Policy, PolicyBuilder};

const ONE_PER_CALLER: &str = "[[limit]]\nname = \"one\"\nquota = \"burst 1\"\n";

#[test]
fn by_default_a_caller_is_the_address_that_connects() {
    let (gate, _) = gate(ONE_PER_CALLER);
    assert_eq!(get("203.0.113.7", "/").caller(&gate), "ip:203.0.113.7");
    assert!(get("203.0.113.7", "/").through(&gate).is_allowed());
    assert!(!get("203.0.113.7", "/other").through(&gate).is_allowed());
    assert!(get("203.0.113.8", "/").through(&gate).is_allowed());
}

#[test]
fn nothing_that_a_client_can_invent_makes_it_another_caller() {
    let (gate, _) = gate(ONE_PER_CALLER);
    assert!(get("203.0.113.7", "/").through(&gate).is_allowed());
    for (header, value) in [
        ("x-api-key", "fresh"),
        ("x-user-id", "fresh"),
        ("authorization", "Bearer fresh"),
        ("x-forwarded-for", "198.51.100.1"),
        ("forwarded", "for=198.51.100.1"),
        ("x-real-ip", "198.51.100.1"),
        ("cf-connecting-ip", "198.51.100.1"),
    ] {
        let call = get("203.0.113.7", "/").with(header, value);
        assert_eq!(call.caller(&gate), "ip:203.0.113.7", "{header}");
        assert!(!call.through(&gate).is_allowed(), "{header}");
    }
}

#[test]
fn a_known_key_names_its_caller_wherever_it_comes_from() {
    let (gate, _) = gate(&format!(
        "[identity]\napi-key = {{ header = \"x-api-key\", accept = [\"k1\", \"k2\"] }}\n\
         trusted-proxies = [\"10.0.0.0/8\"]\n{ONE_PER_CALLER}"
    ));
    let key = |peer, key| get(peer, "/").with("x-api-key", key);
    assert!(key("203.0.113.7", "k1").through(&gate).is_allowed());
    assert!(!key("198.51.100.1", "k1").through(&gate).is_allowed(), "the same caller");
    assert!(key("203.0.113.7", "k2").through(&gate).is_allowed());
    assert_eq!(key("203.0.113.7", "invented").caller(&gate), "ip:203.0.113.7");
    // A proxy passes on what its clients write, so where there is a list it decides.
    assert_eq!(key("10.0.0.1", "invented").caller(&gate), "ip:10.0.0.1");
}

#[test]
fn a_trusted_proxy_may_name_key_user_and_tier() {
    let (gate, _) = gate(
        "[identity]\ntrusted-proxies = [\"10.0.0.0/8\"]\ntier-header = \"x-tier\"\n\
         user = { header = \"x-user-id\" }\n[[limit]]\nname = \"one\"\nquota = \"burst 1\"\n[tier.gold]\none = \"burst 3\"\n",
    );
    let user = |peer| get(peer, "/").with("x-user-id", "42").with("x-tier", "gold");
    assert_eq!(user("10.0.0.1").passes(&gate, 9), 3);
    assert_eq!(user("10.0.0.2").passes(&gate, 9), 0, "the same user");
    assert_eq!(user("203.0.113.7").passes(&gate, 9), 1, "neither user nor tier are believed");
    assert_eq!(user("10.0.0.1").explained(&gate).tier.as_deref(), Some("gold"));
}

#[test]
fn a_header_that_the_policy_does_not_name_is_believed_from_nobody() {
    let (gate, _) =
        gate(&format!("[identity]\ntrusted-proxies = [\"10.0.0.0/8\"]\n{ONE_PER_CALLER}"));
    let call = get("10.0.0.1", "/").with("x-api-key", "invented").with("x-user-id", "invented");
    assert_eq!(call.caller(&gate), "ip:10.0.0.1");
}

#[test]
fn the_order_of_identities_is_a_choice() {
    let policy = |order: &[&str]| {
        let identity = Identity::new()
            .order(order.iter().copied())
            .api_key("x-api-key", Accept::Any)
            .user("x-user-id", Accept::closure(|user| user.starts_with(b"u-")));
        Policy::builder().identity(identity).limit(Limit::new("one", "burst 1")).build().unwrap()
    };
    let call = get("203.0.113.7", "/").with("x-api-key", "k").with("x-user-id", "u-1");
    let kind = |order: &[&str]| {
        let (gate, _) = gate_of(policy(order));
        call.caller(&gate).split(':').next().unwrap().to_owned()
    };
    assert_eq!(kind(&["api-key", "user", "ip"]), "api-key");
    assert_eq!(kind(&["user", "api-key", "ip"]), "user");
    assert_eq!(kind(&["ip", "user"]), "ip");
    let (gate, _) = gate_of(policy(&["user"]));
    assert_eq!(get("203.0.113.7", "/").with("x-user-id", "42").caller(&gate), "anonymous");
}

#[test]
fn whoever_cannot_be_identified_shares_one_bucket() {
    let (gate, _) = gate(ONE_PER_CALLER);
    let nobody = get("unknown", "/");
    assert_eq!(nobody.caller(&gate), "anonymous");
    assert_eq!(nobody.passes(&gate, 5), 1);
    assert_eq!(nobody.with("x-api-key", "fresh").passes(&gate, 5), 0);
}

#[test]
fn a_closure_can_name_callers() {
    let policy = Policy::builder()
        .identify_by(|request| {
            let session = request.headers().get("x-session")?;
            Some(Caller::User(Cow::Borrowed(session.as_bytes())))
        })
        .limit(Limit::new("one", "burst 1"))
        .build()
        .unwrap();
    let (gate, _) = gate_of(policy);
    assert!(get("203.0.113.7", "/").with("x-session", "a").through(&gate).is_allowed());
    assert!(get("203.0.113.7", "/").with("x-session", "b").through(&gate).is_allowed());
    assert!(!get("198.51.100.1", "/").with("x-session", "a").through(&gate).is_allowed());
    assert_eq!(get("203.0.113.7", "/").caller(&gate), "anonymous");
}

#[test]
fn a_program_can_say_whom_it_knows_and_which_keys_of_a_file_it_accepts() {
    let text = format!(
        "[identity]\nipv4-prefix = 24\napi-key = {{ header = \"x-key\" }}\n{ONE_PER_CALLER}"
    );
    let builder = PolicyBuilder::from_toml(&text).unwrap();
    let builder = builder.accept_api_keys(|key| key == b"k1").accept_users(|user| user == b"u1");
    let (gate, _) = gate_of(builder.build().unwrap());
    let call = || get("203.0.113.7", "/");
    assert!(call().with("x-key", "k1").caller(&gate).starts_with("api-key:"));
    assert_eq!(call().with("x-key", "k2").caller(&gate), "ip:203.0.113.0", "the rest stays");
    assert!(call().with("x-user-id", "u1").caller(&gate).starts_with("user:"));

    let known = Caller::User(Cow::Borrowed(&b"42"[..]));
    let call = call().with("x-key", "k1");
    let outcome = |known| {
        gate.try_decide(&call.request().with_caller(known), |it| it.map(Outcome::take))
            .unwrap()
            .unwrap()
    };
    assert!(outcome(Some(&known)).is_allowed());
    assert!(!outcome(Some(&known)).is_allowed());
    assert!(outcome(None).is_allowed(), "another caller");
}

#[test]
fn whom_a_program_knows_is_counted_as_user_or_key() {
    let (user, key) = (Caller::User(b"42".into()), Caller::ApiKey(b"42".into()));
    let limits = [("user", "users"), ("api-key", "keys")];
    let builder = limits.into_iter().fold(Policy::builder(), |builder, (part, name)| {
        builder.limit(Limit::new(name, "burst 1").per([part]).path(format!("/{name}")))
    });
    let (gate, _) = gate_of(builder.names_callers().build().unwrap());
    let pass = |path: &str, caller: Option<&Caller<'static>>| {
        let call = get("203.0.113.7", path);
        let request = call.request().with_caller(caller);
        gate.try_decide(&request, |it| it.map(Outcome::take)).unwrap().unwrap().is_allowed()
    };
    assert!(pass("/users", Some(&user)) && !pass("/users", Some(&user)));
    assert!(pass("/keys", Some(&key)) && !pass("/keys", Some(&key)));
    assert!(pass("/users", None), "an anonymous user is another");
}

#[test]
fn ipv4_in_ipv6_is_ipv4_and_ipv6_is_cut_to_a_prefix() {
    let (gate, _) = gate(ONE_PER_CALLER);
    assert!(get("203.0.113.7", "/").through(&gate).is_allowed());
    assert!(!get("::ffff:203.0.113.7", "/").through(&gate).is_allowed());
    assert!(get("2001:db8:1:2::1", "/").through(&gate).is_allowed());
    assert!(!get("2001:db8:1:2:ffff::9", "/").through(&gate).is_allowed(), "a neighbour");
    assert!(get("2001:db8:1:3::1", "/").through(&gate).is_allowed());

    let (wide, _) = crate::common::gate(&format!("[identity]\nipv4-prefix = 24\n{ONE_PER_CALLER}"));
    assert!(get("203.0.113.7", "/").through(&wide).is_allowed());
    assert!(!get("203.0.113.8", "/").through(&wide).is_allowed());
}

#[test]
fn a_header_that_is_there_twice_names_nobody() {
    let (gate, _) = gate(&format!(
        "[identity]\napi-key = {{ header = \"x-api-key\", accept = \"any\" }}\n{ONE_PER_CALLER}"
    ));
    let twice = get("203.0.113.7", "/").with("x-api-key", "a").with("x-api-key", "b");
    assert_eq!(twice.caller(&gate), "ip:203.0.113.7");
    assert_eq!(get("203.0.113.7", "/").with("x-api-key", "").caller(&gate), "ip:203.0.113.7");
}

#[test]
fn known_keys_can_be_in_a_file_and_in_an_authorization_header() {
    let folder = std::env::temp_dir().join(format!("spillgate-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("keys.txt"), "# partners\nk1\n\n  k2  \n").unwrap();
    let policy = format!(
        "[identity]\napi-key = {{ header = \"authorization\", accept = \"keys.txt\" }}\n{ONE_PER_CALLER}"
    );
    std::fs::write(folder.join("policy.toml"), policy).unwrap();
    let (gate, _) = gate_of(Policy::load(folder.join("policy.toml")).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    let with = |value| get("203.0.113.7", "/").with("authorization", value).caller(&gate);
    assert!(with("Bearer k1").starts_with("api-key:"));
    assert_eq!(with("Bearer k1"), with("bearer k1"));
    assert!(with("Bearer k2").starts_with("api-key:"));
    assert_eq!(with("Bearer # partners"), "ip:203.0.113.7");
}

/// Whatever a header may hold.
fn header_bytes() -> impl Strategy<Value = Vec<u8>> {
    let tricky = prop::sample::select(vec![
        &b"10.0.0.1"[..],
        b"198.51.100.1",
        b"for=198.51.100.1",
        b"for=\"[2001:db8::1]:80\"",
        b"for=\"unclosed",
        b", ,,",
        b"unknown",
        b"\xff\xfe",
        b"::ffff:10.0.0.1",
        b"1.2.3.4:99999",
    ]);
    let byte = prop_oneof![Just(b'\t'), 32..=126u8, 128..=255u8];
    let noise = prop::collection::vec(byte, 0..40);
    prop::collection::vec(prop_oneof![tricky.prop_map(<[u8]>::to_vec), noise], 0..6)
        .prop_map(|parts| parts.join(&b','))
}

proptest! {
    #[test]
    fn from_an_untrusted_peer_no_header_changes_whose_bucket_is_used(
        lines in prop::collection::vec((0..7usize, header_bytes()), 0..8),
    ) {
        let (gate, _) = gate(&format!(
            "[identity]\ntrusted-proxies = [\"10.0.0.0/8\"]\nclient-ip = [\"forwarded\", \
             \"x-forwarded-for\", \"x-real-ip\", \"cf-connecting-ip\"]\n{ONE_PER_CALLER}"
        ));
        let names = [
            "forwarded", "x-forwarded-for", "x-real-ip", "cf-connecting-ip", "x-api-key",
            "x-user-id", "authorization",
        ];
        let mut call = get("203.0.113.7", "/");
        for (name, value) in &lines {
            call = call.with(names[*name], value);
        }
        prop_assert_eq!(call.caller(&gate), "ip:203.0.113.7");
    }

    #[test]
    fn behind_a_trusted_proxy_nothing_left_of_its_own_entry_counts(
        lines in prop::collection::vec(header_bytes(), 0..4),
        left in header_bytes(),
    ) {
        let (gate, _) =
            gate(&format!("[identity]\ntrusted-proxies = [\"10.0.0.0/8\"]\n{ONE_PER_CALLER}"));
        let mut call = get("10.0.0.1", "/");
        for line in &lines {
            call = call.with("x-forwarded-for", line);
        }
        let last = [&left[..], b", 203.0.113.7"].concat();
        let caller = call.with("x-forwarded-for", last).caller(&gate);
        prop_assert_eq!(caller, "ip:203.0.113.7");
    }
}
