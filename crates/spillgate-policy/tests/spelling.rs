//! Nobody escapes a limit by another spelling of the request, or by leaving something out.

use crate::common::{call, gate, gate_of, get};
use spillgate_policy::{Answer, Limit, Mode, Outcome, Policy};

#[test]
fn a_host_that_is_told_in_two_ways_is_not_believed() {
    let (gate, _) =
        gate("[[limit]]\nname = \"l\"\nmatch = { host = \"api.example.com\" }\nquota = \"1/s\"");
    let to = |uri, host| get("203.0.113.7", uri).with("host", host);
    for (target, host) in [
        ("http://other.example/x", "api.example.com"),
        ("http://api.example.com/x", "other.example"),
    ] {
        let call = to(target, host);
        assert_eq!(call.through(&gate).answer(), Answer::HostRequired, "{target} {host}");
        assert_eq!(call.explained(&gate).answer, Answer::HostRequired, "{target} {host}");
    }
    assert_eq!(to("http://api.example.com:80/x", "API.example.com").met(&gate), ["l"]);
    assert!(to("http://other.example/x", "other.example").met(&gate).is_empty());
    assert!(get("203.0.113.7", "http://other.example/x").met(&gate).is_empty());
}

#[test]
fn no_spelling_of_a_path_escapes_its_limit() {
    let (gate, _) = gate("[[limit]]\nname = \"l\"\nmatch = { path = \"/login\" }\nquota = \"1/s\"");
    for path in [
        "/login",
        "/login/",
        "//login",
        "/./login",
        "/x/../login",
        "/%6cogin",
        "/%6Cogin/",
        "/login?a=/",
        "/Login",
        "/LOGIN/",
        "/%4Cogin",
        "/login;",
        "/login;jsessionid=1",
        "/x/..;/login",
        "/login%20",
        "/login%2F",
        "/login%2f%2F",
        "/x%2f..%2flogin",
    ] {
        assert_eq!(get("203.0.113.7", path).met(&gate), ["l"], "{path}");
    }
    for path in ["/", "/logins", "/login/x", "/login%2Fx", "/x/login", "/login%3Bx"] {
        assert!(get("203.0.113.7", path).met(&gate).is_empty(), "{path}");
    }
}

#[test]
fn which_spellings_are_alike_is_a_choice() {
    let gate_with = |spelling: &str, pattern: &str| {
        let limit = format!("match = {{ path = {pattern:?} }}\nper = \"path:id\"\nquota = \"1/s\"");
        gate(&format!("[path-spelling]\n{spelling}\n[[limit]]\nname = \"l\"\n{limit}")).0
    };
    for (spelling, pattern, theirs, others) in [
        ("ignore-case = \"never\"", "/A/{id}", &["/A/1"][..], &["/a/1"][..]),
        ("ignore-case = \"patterns\"", "/A/{id}", &["/A/1", "/a/1"], &[]),
        ("strip-parameters = false", "/a;v=1/{id}", &["/a;v=1/1"], &["/a/1", "/a;v=2/1"]),
        ("trim-spaces = false", "/a/{id}", &["/a/1"], &["/a%20/1"]),
        ("encoded-slash = \"text\"", "/a/{id}", &["/a/1", "/a/1%2F2"], &["/a%2F1", "/a/1/2"]),
        ("encoded-slash = \"slash\"", "/a/{id}", &["/a/1", "/a%2F1"], &["/a/1%2F2", "/a/1/2"]),
        ("encoded-slash = \"both\"", "/a/{id}", &["/a/1", "/a%2F1", "/a/1%2F2"], &["/a/1/2"]),
    ] {
        let gate = gate_with(spelling, pattern);
        for path in theirs {
            assert_eq!(get("203.0.113.7", path).met(&gate), ["l"], "{spelling} {path}");
        }
        for path in others {
            assert!(get("203.0.113.7", path).met(&gate).is_empty(), "{spelling} {path}");
        }
    }
}

#[test]
fn a_value_has_one_count_however_it_is_spelled() {
    let both = |spelling: &str, pattern: &str, one, other| {
        let limit =
            format!("match = {{ path = {pattern:?} }}\nper = \"path:id\"\nquota = \"burst 1\"");
        let text = format!("[path-spelling]\n{spelling}\n[[limit]]\nname = \"l\"\n{limit}");
        let (gate, _) = gate(&text);
        [one, other].map(|path| get("203.0.113.7", path).passes(&gate, 1))
    };
    for (one, other) in [("/u/7", "/u/7;x=1"), ("/u/7", "/U/%37/"), ("/u/7", "/u/7%20")] {
        assert_eq!(both("", "/u/{id}", one, other), [1, 0], "{one} {other}");
    }
    assert_eq!(both("", "/u/{*id}", "/u/a/b", "/u/a%2Fb"), [1, 0]);
    assert_eq!(both("", "/u/{id}", "/u/ann", "/u/ANN"), [1, 1]);
    assert_eq!(both("ignore-case = \"everywhere\"", "/u/{id}", "/u/ann", "/u/ANN"), [1, 0]);
}

#[test]
fn the_case_of_a_method_escapes_no_limit() {
    let (gate, _) = gate(
        "[[limit]]\nname = \"l\"\nmatch = { method = [\"POST\", \"GET\"] }\nquota = \"burst 4\"",
    );
    let passed = ["POST", "post", "pOsT", "head", "get", "HEAD"]
        .map(|method| call(method, "203.0.113.7", "/").passes(&gate, 1));
    assert_eq!(passed, [1, 1, 1, 1, 0, 0]);
    assert_eq!(call("posts", "203.0.113.7", "/").met(&gate), [""; 0]);
}

#[test]
fn without_a_host_there_is_no_second_allowance() {
    let (gate, _) = gate(
        r#"
        [[limit]]
        name = "host"
        match = { host = "api.example.com" }
        quota = "burst 2"
        "#,
    );
    for call in [
        get("203.0.113.7", "/"),
        get("203.0.113.7", "/").with("host", "a b"),
        get("203.0.113.7", "/").with("host", ""),
        get("203.0.113.7", "/").with("host", "api.example.com").with("host", "other.example"),
    ] {
        let outcome = call.through(&gate);
        assert_eq!((outcome.answer(), outcome.retry_after()), (Answer::HostRequired, None));
    }
    assert_eq!(get("203.0.113.7", "/").with("host", "api.example.com").passes(&gate, 9), 2);
    assert_eq!(get("203.0.113.7", "/").with("host", "other.example.com").passes(&gate, 9), 9);
}

#[test]
fn a_limit_in_shadow_refuses_nobody_for_want_of_a_host() {
    let limit = Limit::new("l", "burst 1").host("api.example.com").mode(Mode::Shadow);
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 9), 9);
}

#[test]
fn what_a_limit_may_ignore_in_a_path_is_no_way_around_others() {
    let (gate, _) = gate(
        r#"
        [[limit]]
        name = "one"
        match = { path = "/search/{q}" }
        quota = "burst 1"
        [[limit]]
        name = "rest"
        match = { path = "/api/{*rest}" }
        quota = "burst 1"
        "#,
    );
    for path in ["/search/;1", "/search/%20", "/search/%00", "/search/..;1", "/search/..%20"] {
        assert_eq!(get("203.0.113.7", path).met(&gate), ["one"], "{path}");
    }
    for path in ["/api/..;/x", "/api/;", "/api/%2f..%2fx", "/api\\x", "/api%5cx", "/api/..%5cx"] {
        let call = get("203.0.113.7", "/");
        let request = call.request().with_path(path);
        let outcome = gate.try_decide(&request, |it| it.map(Outcome::take)).unwrap().unwrap();
        let names: Vec<_> = outcome.limits().map(|limit| limit.name().to_owned()).collect();
        assert_eq!(names, ["rest"], "{path}");
    }
}

#[test]
fn a_path_that_cannot_be_told_counts_as_matching_for_whoever_sends_it() {
    let (gate, _) = gate(
        r#"
        [[limit]]
        name = "path"
        match = { path = "/x/{id}" }
        quota = "burst 3"
        "#,
    );
    let no_path = call("OPTIONS", "203.0.113.7", "*");
    assert_eq!(no_path.met(&gate), ["path"]);
    assert_eq!(no_path.passes(&gate, 2), 2);
    assert_eq!(get("203.0.113.7", "/x/1").passes(&gate, 9), 1, "no second allowance");
    assert_eq!(get("203.0.113.8", "/x/1").passes(&gate, 9), 3, "nobody else's is spent");
}
