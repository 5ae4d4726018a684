//! Which headers pass, which end at the proxy, and which it writes itself.

use crate::proxy::setup::{OPEN, Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok, respond};

/// What a client may say about itself.
const CLAIMS: &str = "x-forwarded-for: 203.0.113.9\r\nx-forwarded-proto: https\r\n\
    x-forwarded-host: shop.test\r\nforwarded: for=203.0.113.9\r\nx-real-ip: 203.0.113.9\r\n";
const TRUSTING: &str = "[identity]\ntrusted-proxies = ['127.0.0.1']\n";

#[test]
fn headers_of_the_connection_end_at_the_proxy_and_others_pass_in_order() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    let response = proxy.connect().get(
        "/a%20b/../c?q=%41&r",
        "connection: keep-alive, x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\n\
         proxy-connection: keep-alive\r\nproxy-authorization: Basic eDp5\r\nte: gzip, trailers\r\n\
         upgrade: h2c\r\ntrailer: x-sum\r\ncookie: a=1\r\nx-many: 1\r\nX-Many: 2\r\n\
         authorization: Bearer token\r\nx-empty:\r\n",
    );
    assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
    let request = upstream.request();
    assert_eq!(request.start, "GET /a%20b/../c?q=%41&r HTTP/1.1", "as the client wrote it");
    for name in ["x-hop", "keep-alive", "proxy-connection", "proxy-authorization", "upgrade"] {
        assert_eq!(request.header(name), None, "{request:?}");
    }
    assert!(matches!(request.header("te"), None | Some("trailers")), "{request:?}");
    let connection = request.header("connection");
    assert!(matches!(connection, None | Some("keep-alive" | "te" | "TE")), "{request:?}");
    assert_eq!(request.all("x-many"), ["1", "2"]);
    for (name, value) in [
        ("host", "example.test"),
        ("cookie", "a=1"),
        ("authorization", "Bearer token"),
        ("x-empty", ""),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
}

#[test]
fn headers_of_the_upstream_connection_end_at_the_proxy_too() {
    let upstream = Upstream::answering(|_| {
        let hops = "connection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nproxy-authenticate: Basic\r\n";
        let others = "set-cookie: a=1\r\nset-cookie: b=2\r\nserver: test\r\nvia: 1.0 cache\r\n";
        respond("200 OK", &format!("{hops}upgrade: h2c\r\n{others}"), "hello")
    });
    let proxy = Proxy::to(&upstream);
    let response = proxy.get("/");
    for name in ["x-hop", "keep-alive", "proxy-authenticate", "upgrade"] {
        assert_eq!(response.header(name), None, "{response:?}");
    }
    assert_eq!(response.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(response.header("server"), Some("test"));
    assert_eq!(response.header("via"), Some("1.0 cache"));
}

#[test]
fn what_a_stranger_says_about_itself_is_not_passed_on() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    // Nor can it have the proxy's own words taken out again.
    let naming = "connection: x-forwarded-for, x-forwarded-proto, x-forwarded-host\r\n";
    for headers in ["", CLAIMS, naming, &format!("{naming}{CLAIMS}{CLAIMS}")] {
        proxy.connect().get("/", headers);
        let request = upstream.requests().pop().unwrap();
        for (name, value) in [
            ("x-forwarded-for", Some("127.0.0.1")),
            ("x-forwarded-proto", Some("http")),
            ("x-forwarded-host", Some("example.test")),
            ("via", None),
            ("forwarded", None),
        ] {
            assert_eq!(request.header(name), value, "{name} after {headers:?}: {request:?}");
        }
        assert!(!request.all("x-real-ip").contains(&"203.0.113.9"), "{request:?}");
    }
}

#[test]
fn what_a_trusted_proxy_says_about_its_client_is_kept_and_added_to() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[upstream.url()]).policy(&format!("{TRUSTING}{OPEN}")).start();
    proxy.connect().get("/", &format!("{CLAIMS}via: 1.0 front\r\n"));
    let request = upstream.requests().pop().unwrap();
    assert_eq!(request.all("x-forwarded-for").join(", "), "203.0.113.9, 127.0.0.1");
    assert_eq!(request.header("x-forwarded-proto"), Some("https"));
    assert_eq!(request.header("x-forwarded-host"), Some("shop.test"));
    assert_eq!(request.header("via"), Some("1.0 front"));
    // One that says nothing is described as a stranger is.
    proxy.get("/");
    let request = upstream.requests().pop().unwrap();
    assert_eq!(request.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(request.header("x-forwarded-proto"), Some("http"));
    assert_eq!(request.header("x-forwarded-host"), Some("example.test"));
}

#[test]
fn via_tells_of_the_proxy_either_way_if_it_is_wanted() {
    let upstream = Upstream::answering(|_| respond("200 OK", "via: 1.0 cache\r\n", "hello"));
    let proxy = Setup::to(&[upstream.url()]).proxy("via = true\n").start();
    // Nor can a client have it taken out again.
    let response = proxy.connect().get("/", "via: 1.0 front\r\nconnection: via\r\n");
    assert_eq!(response.all("via").join(", "), "1.0 cache, 1.1 spillgate");
    assert_eq!(upstream.request().header("via"), Some("1.1 spillgate"));
    proxy.connect().get("/", "via: 1.0 front\r\n");
    let request = upstream.requests().pop().unwrap();
    assert_eq!(request.all("via").join(", "), "1.0 front, 1.1 spillgate");
}

#[test]
fn the_upstream_is_called_by_its_own_name_if_it_wants_to() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[upstream.url()]).proxy("host-header = 'upstream'\n").start();
    proxy.get("/");
    let request = upstream.request();
    assert_eq!(request.header("host"), Some(upstream.address.to_string().as_str()));
    assert_eq!(request.header("x-forwarded-host"), Some("example.test"));
}

#[test]
fn a_whole_url_names_the_host_and_the_upstream_sees_its_path() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    wire.send("GET http://shop.test/a?b HTTP/1.1\r\nhost: shop.test\r\n\r\n");
    assert_eq!(wire.response("GET").unwrap().status(), 200);
    let request = upstream.request();
    assert_eq!(request.start, "GET /a?b HTTP/1.1");
    assert_eq!(request.header("host"), Some("shop.test"));
}

#[test]
fn nobody_is_led_to_speak_http2_behind_the_back_of_the_proxy() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    for wanted in ["h2c", "H2C", "websocket, h2c", "h2c, websocket", "h2c\r\nupgrade: websocket"] {
        let headers = format!(
            "connection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk\r\nupgrade: {wanted}\r\n"
        );
        assert_eq!(proxy.connect().get("/", &headers).text(), "hello");
        let request = upstream.requests().pop().unwrap();
        let upgrades = request.all("upgrade").join(", ").to_lowercase();
        assert!(!upgrades.contains("h2c"), "{request:?}");
        assert_eq!(request.header("http2-settings"), None);
    }
}
