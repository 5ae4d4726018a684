use tollgate_server::Access;

use super::client::{Reply, ask, check};
use super::server::{POLICY, Server, app, token};

/// The headers of Traefik and Caddy, and those of nginx as it is told to.
const FAMILIES: [[&str; 4]; 2] = [
    ["x-forwarded-uri", "x-forwarded-method", "x-forwarded-host", "x-forwarded-for"],
    ["x-original-uri", "x-original-method", "x-original-host", "x-real-ip"],
];

async fn auth(server: &Server, query: &str, headers: &[(&str, &str)]) -> Reply {
    let mut asks = ask(server, &format!("GET /auth{query}"));
    for (name, value) in headers {
        asks = asks.header(name, value);
    }
    asks.send().await
}

/// Asks about a request as a proxy of a family does.
async fn about(server: &Server, family: usize, path: &str, client: &str) -> Reply {
    let [uri, method, host, ip] = FAMILIES[family];
    auth(server, "", &[(uri, path), (method, "GET"), (host, "example.com"), (ip, client)]).await
}

#[tokio::test]
async fn a_proxy_on_the_same_machine_is_answered_for_its_clients() {
    let server = Server::start().await;
    for (family, client) in [(0, "203.0.113.7"), (1, "203.0.113.8")] {
        for remaining in (0..5).rev() {
            let reply = about(&server, family, "/api/x?y=1", client).await;
            assert_eq!((reply.status, reply.body.as_str()), (200, ""), "{reply:?}");
            let expected = format!("\"api\";r={remaining};t=");
            assert!(reply.header("ratelimit").unwrap().starts_with(&expected), "{reply:?}");
            assert_eq!(reply.header("x-ratelimit-limit"), Some("5"));
            assert_eq!(reply.header("x-tollgate-status"), Some("200"));
        }
        let reply = about(&server, family, "/api/x", client).await;
        assert_eq!(reply.status, 429);
        assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 3500);
        assert!(reply.detail().contains("The limit api is exceeded."), "{reply:?}");
    }
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(
        metrics.contains(r#"tollgate_requests_total{limit="api",outcome="denied"} 2"#),
        "{metrics}"
    );
}

#[tokio::test]
async fn what_a_client_writes_itself_does_not_count() {
    let server = Server::start().await;
    // The last of the list is whom the proxy was called by.
    for (index, spoofed) in
        ["1.1.1.1, ", "9.9.9.9,  ", "garbage, ", "127.0.0.1, ", ""].iter().enumerate()
    {
        let reply = about(&server, 0, "/api/x", &format!("{spoofed}203.0.113.7")).await;
        assert_eq!(reply.status, 200, "{index}");
    }
    assert_eq!(about(&server, 0, "/api/x", "8.8.8.8, 203.0.113.7").await.status, 429);
    // The path is what stands before the query, whatever that holds.
    for spoofed in [
        "/api/x?to=http://h/free",
        "/api/x#/free",
        "http://example.com/api/x?/free",
        "/free/../api/x",
    ] {
        assert_eq!(about(&server, 0, spoofed, "203.0.113.7").await.status, 429, "{spoofed}");
    }
    // Another client's headers beside those of the proxy.
    let [uri, method, host, ip] = FAMILIES[1];
    let nginx = [(uri, "/api/x"), (method, "GET"), (host, "h"), (ip, "203.0.113.7")];
    let with = |extra| [&nginx[..], &[extra]].concat();
    assert_eq!(auth(&server, "", &with(("x-forwarded-for", "8.8.8.8"))).await.status, 429);
    assert_eq!(auth(&server, "", &with(("x-forwarded-method", "PUT"))).await.status, 429);
    assert_eq!(auth(&server, "", &with(("x-forwarded-uri", "/free"))).await.status, 400);
    assert_eq!(auth(&server, "", &with((uri, "/free"))).await.status, 400);
    assert_eq!(auth(&server, "", &with((ip, "8.8.8.8"))).await.status, 400);
    assert_eq!(auth(&server, "", &with(("origin", "https://example.com"))).await.status, 429);
    assert_eq!(auth(&server, "", &with(("authorization", "Bearer x"))).await.status, 429);
    // A refusal in gRPC has the status 200, and the proxy would let it pass.
    let grpc = [(uri, "/api/x"), (method, "POST"), (host, "h"), (ip, "203.0.113.7")];
    let grpc = [&grpc[..], &[("content-type", "application/grpc")]].concat();
    assert_eq!(auth(&server, "", &grpc).await.status, 429);
}

#[tokio::test]
async fn a_proxy_that_leaves_something_out_is_told_what() {
    let server = Server::start().await;
    for family in FAMILIES {
        for missing in family {
            let all = family
                .map(|name| (name, if name.ends_with("method") { "GET" } else { "192.0.2.1" }));
            let headers: Vec<_> = all.into_iter().filter(|(name, _)| *name != missing).collect();
            let reply = auth(&server, "", &headers).await;
            assert_eq!(reply.status, 400, "{missing}");
            assert!(reply.detail().contains(missing), "{missing}: {}", reply.detail());
        }
    }
    assert_eq!(about(&server, 0, "/", "nobody").await.status, 400);
    assert_eq!(
        check(&server, r#"{"limit":"api","key":"192.0.2.1","cost":0}"#).await["remaining"],
        5
    );
}

#[tokio::test]
async fn whoever_is_not_known_as_a_proxy_is_refused() {
    let elsewhere = ["10.0.0.0/8".parse().unwrap()];
    let access = Access::loopback(token()).auth_from(elsewhere);
    let server = Server::with(app().with_access(access)).await;
    let reply = about(&server, 0, "/", "203.0.113.7").await;
    assert_eq!(reply.status, 403);
    assert!(reply.detail().contains("127.0.0.1 is not known as a proxy"), "{reply:?}");
    assert!(reply.detail().contains("auth-from"), "{reply:?}");
    // A policy that trusts it is enough, and then finds the client itself.
    let trusting = format!("[identity]\ntrusted-proxies = ['127.0.0.1', '192.0.2.0/24']\n{POLICY}");
    server.app.replace(&trusting).unwrap();
    assert_eq!(about(&server, 0, "/", "9.9.9.9, 203.0.113.7, 192.0.2.1").await.status, 200);
    let left = check(&server, r#"{"limit":"api","key":"203.0.113.7","cost":0}"#).await;
    assert_eq!(left["remaining"], 4);
}

#[tokio::test]
async fn a_refusal_can_have_a_status_that_the_proxy_knows() {
    let server = Server::start().await;
    server.app.gate().list(tollgate_policy::ListKind::Block, "198.51.100.1").unwrap();
    let [uri, method, host, ip] = FAMILIES[1];
    let ask = |query: &'static str, path: &'static str, client: &'static str| {
        let server = &server;
        async move {
            let headers = [(uri, path), (method, "GET"), (host, "h"), (ip, client)];
            let reply = auth(server, query, &headers).await;
            (reply.status, reply.header("x-tollgate-status").map(str::to_owned))
        }
    };
    for _ in 0..2 {
        assert_eq!(ask("?deny=403", "/once", "192.0.2.1").await, (200, Some("200".into())));
    }
    assert_eq!(ask("?deny=403", "/once", "192.0.2.1").await, (403, Some("429".into())));
    assert_eq!(ask("", "/once", "192.0.2.1").await, (429, Some("429".into())));
    assert_eq!(ask("?deny=401", "/once", "198.51.100.1").await, (401, Some("403".into())));
    for wrong in ["?deny=200", "?deny=x", "?deny=600", "?den=403"] {
        assert_eq!(ask(wrong, "/", "192.0.2.9").await, (400, None), "{wrong}");
    }
}

#[tokio::test]
async fn a_cost_that_is_settled_by_the_response_stands_since_nobody_sees_it() {
    let server = Server::start().await;
    for expected in [200, 200, 429] {
        assert_eq!(about(&server, 0, "/login", "192.0.2.1").await.status, expected);
    }
}

#[tokio::test]
async fn a_shaper_holds_a_request_back_until_it_is_its_turn() {
    let server = Server::start().await;
    let begin = tokio::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(about(&server, 0, "/queue", "192.0.2.1").await.status, 200);
    }
    // 20 a second: the third leaves 100 ms after the first.
    assert!(begin.elapsed().as_millis() >= 95, "{:?}", begin.elapsed());
}
