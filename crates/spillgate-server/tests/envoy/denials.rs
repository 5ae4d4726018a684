//! Denials of every protocol are logged, counted and listed alike.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::common::server::{Home, until};
use crate::envoy::client::{Client, OVER_LIMIT, descriptor, metric};

const CONFIG: &str = "
    limit = [
        { name = 'resp', quota = '1/h', per = 'header:x-key', by-name = true },
        { name = 'http', quota = '1/h', per = 'header:x-key', by-name = true },
        { name = 'grpc', quota = '1/h', match = { domain = 'edge' } },
    ]
    [server]
    http = '127.0.0.1:0'
    resp = '127.0.0.1:0'
    grpc = '127.0.0.1:0'
";

/// Sends bytes, and reads until the answer ends with this.
fn exchange(address: SocketAddr, request: &str, end: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        let mut bytes = [0; 1024];
        let count = socket.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend(&bytes[..count]);
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_is_logged_counted_and_listed_the_same_over_every_protocol() {
    let home = Home::new(CONFIG);
    let server = home.start(&[]);
    for command in ["SG.CHECK resp a", "CL.THROTTLE a 0 1 3600"] {
        let answer = exchange(server.resp, &format!("{command}\r\n{command}\r\n"), ":3600\r\n");
        assert!(answer.contains("*5\r\n:0\r\n") && answer.contains("*5\r\n:1\r\n"), "{answer}");
    }
    let body = r#"{"limit":"http","key":"a"}"#;
    let request = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(server.http, &request, "}");
    let answer = exchange(server.http, &request, "}");
    assert!(answer.contains("\"allowed\":false"), "{answer}");
    let mut client = Client::to(&server).await;
    let asked = descriptor(&[("k", "v")]);
    client.status("edge", &asked).await;
    assert_eq!(client.status("edge", &asked).await.code, OVER_LIMIT);

    let limits = ["resp", "cl.throttle", "http", "grpc"];
    let top: serde_json::Value = serde_json::from_str(&server.get("/v1/top")).unwrap();
    for limit in limits {
        let listed = top["limits"].as_array().unwrap().iter().find(|it| it["limit"] == limit);
        let listed = &listed.unwrap_or_else(|| panic!("{limit} in {top}"))["denied"];
        assert_eq!((&listed["total"], &listed["callers"][0]["count"]), (&1.into(), &1.into()));
        let count = |outcome| {
            let name =
                format!("spillgate_requests_total{{limit=\"{limit}\",outcome=\"{outcome}\"}}");
            metric(&server, &name)
        };
        assert_eq!((count("allowed"), count("denied")), (1.0, 1.0), "{limit}");
    }
    // The clients have closed theirs.
    let open = "spillgate_open_connections{protocol=\"resp\"}";
    until("no connection is open", || metric(&server, open) == 0.0);
    let log = server.stop();
    for limit in limits {
        let is_denial = |line: &&str| {
            line.contains(&format!("denied limit=\"{limit}\" ")) && line.contains("counted=")
        };
        let denials = log.lines().filter(is_denial).count();
        assert_eq!(denials, 1, "{limit}: {log}");
    }
}
