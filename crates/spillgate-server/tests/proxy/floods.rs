//! Heads over HTTP/2 are bounded as those of HTTP/1.1 are.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use tokio::time::timeout;

use crate::proxy::frames::{CONTINUATION, HEADERS, PREFACE, SETTINGS, frame};
use crate::proxy::http2::connect;
use crate::proxy::setup::Proxy;
use crate::proxy::upstream::{Upstream, ok};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_too_many_headers_is_a_431_and_others_go_on() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    let mut client = connect(proxy.address).await;
    let mut ask = async |names: &mut dyn Iterator<Item = String>| {
        let request = names
            .fold(Request::get("http://example.test/"), |request, name| request.header(name, "y"));
        let sent = client.send_request(request.body(Empty::<Bytes>::new()).unwrap());
        timeout(PATIENCE, sent).await.unwrap().unwrap().status().as_u16()
    };
    assert_eq!(ask(&mut (0..100).map(|number| format!("x-{number}"))).await, 200);
    assert_eq!(ask(&mut (0..101).map(|number| format!("x-{number}"))).await, 431);
    assert_eq!(ask(&mut (0..101).map(|_| "x".to_owned())).await, 431);
    assert_eq!(upstream.requests().len(), 1);
    // However many pieces there are, a cookie is one header.
    assert_eq!(ask(&mut (0..200).map(|_| "cookie".to_owned())).await, 200);
    let seen = upstream.requests().pop().unwrap();
    assert_eq!(seen.header("cookie").map(|cookie| cookie.split("; ").count()), Some(200));
    let over_http1: String = (0..101).map(|number| format!("x-{number}: y\r\n")).collect();
    assert_eq!(proxy.connect().get("/", &over_http1).status(), 431);
}

#[test]
fn a_head_without_end_is_hung_up_on() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    // A literal header, again and again: short ones, ones of a whole frame, and nothing at all.
    let long = [&[0, 1, b'x', 127, 0x81, 0x7e][..], &[b'y'; 16_256]].concat();
    for part in [&[0, 1, b'x', 1, b'y'][..], &long, &[]] {
        let mut wire = proxy.connect();
        wire.send([PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, 0, 1, &[])].concat());
        let part = frame(CONTINUATION, 0, 1, part);
        let sent = (0..100_000).take_while(|_| wire.send(&part)).count();
        assert!(sent < 100_000, "frames of {} bytes are taken without end", part.len());
    }
    let resident = proxy.server.resident();
    assert!(resident < 200 << 20, "{resident} bytes");
    assert_eq!(proxy.get("/").text(), "hello");
    assert_eq!(upstream.requests().len(), 1);
}
