//! What is no gRPC, or too much of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client;
use http::Request;
use prost::Message;
use spillgate_server::protocol::grpc::messages::{RateLimitRequest, RateLimitResponse};
use tokio::net::TcpStream as AsyncStream;
use tokio::time::timeout;

use crate::envoy::client::{Client, OK, descriptor, start};

const POLICY: &str = "[[limit]]\nname = 'api'\nmatch = { domain = 'edge' }\nquota = '1000/h'\n";
const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

/// What a call is answered with: status, code of gRPC, and the message of an error.
async fn call(
    address: SocketAddr,
    method: &str,
    path: &str,
    kind: &str,
    body: Bytes,
) -> (u16, String, String) {
    let stream = AsyncStream::connect(address).await.unwrap();
    let (mut send, connection) = client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{address}{path}"))
        .header("content-type", kind)
        .body(())
        .unwrap();
    let (response, mut stream) = send.send_request(request, false).unwrap();
    // What is refused while it is sent is not sent to its end.
    let _ = stream.send_data(body, true);
    let response = response.await.unwrap();
    let (head, mut body) = response.into_parts();
    while let Some(Ok(piece)) = body.data().await {
        body.flow_control().release_capacity(piece.len()).unwrap();
    }
    let trailers = body.trailers().await.ok().flatten().unwrap_or_default();
    let header = |name: &str| {
        let value = head.headers.get(name).or_else(|| trailers.get(name));
        value.map_or("", |value| value.to_str().unwrap()).to_owned()
    };
    let answer = (head.status.as_u16(), header("grpc-status"), header("grpc-message"));
    connection.abort();
    answer
}

fn framed(flag: u8, length: u32, message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(flag);
    bytes.put_u32(length);
    bytes.put_slice(message);
    bytes.freeze()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_understood_is_refused_with_a_reason() {
    let (_home, server) = start(POLICY, &[], &[]);
    let grpc = "application/grpc";
    let large = vec![0; 64 * 1024 + 1];
    let cases: [(&str, &str, &str, Bytes, u16, &str, &str); 11] = [
        ("GET", PATH, grpc, Bytes::new(), 405, "", ""),
        ("POST", PATH, "application/json", Bytes::new(), 415, "", ""),
        ("POST", PATH, "application/grpc-web", Bytes::new(), 415, "", ""),
        ("POST", "/other.Service/Method", grpc, framed(0, 0, b""), 200, "12", "unknown%20method"),
        ("POST", "/", grpc, framed(0, 0, b""), 200, "12", "unknown%20method"),
        ("POST", PATH, grpc, Bytes::new(), 200, "3", "missing%20message"),
        ("POST", PATH, grpc, framed(1, 2, b"ab"), 200, "12", "compressed"),
        ("POST", PATH, grpc, framed(0, 9, b"ab"), 200, "3", "9%20bytes%20announced"),
        (
            "POST",
            PATH,
            grpc,
            framed(0, 2, &[0xff, 0xff]),
            200,
            "3",
            "failed%20to%20decode%20request",
        ),
        ("POST", PATH, grpc, framed(0, 0, b""), 200, "3", "domain"),
        ("POST", PATH, grpc, framed(0, large.len() as u32, &large), 200, "8", "65536%20bytes"),
    ];
    for (method, path, kind, body, status, code, message) in cases {
        let output = call(server.grpc, method, path, kind, body).await;
        assert_eq!((output.0, &*output.1), (status, code), "{method} {path} {kind}: {output:?}");
        assert!(output.2.contains(message), "{output:?}");
    }
    let mut client = Client::to(&server).await;
    assert_eq!(client.status("edge", &descriptor(&[("k", "v")])).await.code, OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_and_silence_end_the_connection_and_nothing_else() {
    let (_home, server) =
        start(POLICY, &[], &["--io-timeout", "300ms", "--http-idle-timeout", "400ms"]);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let oversized = [&preface[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat();
    let data_first = [&preface[..], &[0, 0, 1, 0, 0, 0, 0, 0, 1, 7]].concat();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"*1\r\n$4\r\nPING\r\n",
        &[0; 64],
        &oversized,
        &data_first,
        b"PRI * H",
        b"",
    ] {
        let mut stream = TcpStream::connect(server.grpc).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // Ended, one way or the other.
        let ended = stream.read_to_end(&mut rest);
        let is_late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!is_late, "{bytes:?}");
    }
    let mut client = Client::to(&server).await;
    assert_eq!(client.status("edge", &descriptor(&[("k", "v")])).await.code, OK);
}

/// Begins a call with a piece of its message, the rest of which never comes. Tells the code of
/// the answer.
async fn begin(address: SocketAddr, path: &str, piece: &'static [u8]) -> String {
    let stream = AsyncStream::connect(address).await.unwrap();
    let (mut send, connection) = client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let (response, mut stream) = send.send_request(request, false).unwrap();
    stream.send_data(Bytes::from_static(piece), false).unwrap();
    let response = timeout(Duration::from_secs(60), response).await.unwrap().unwrap();
    connection.abort();
    response.headers()["grpc-status"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_never_comes_is_not_waited_for_for_ever() {
    let (_home, server) = start(POLICY, &[], &["--io-timeout", "300ms"]);
    for path in [PATH, HEALTH_CHECK] {
        assert_eq!(begin(server.grpc, path, &[0, 0]).await, "4", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_takes_its_answer_is_not_waited_for_for_ever() {
    let (_home, server) = start(POLICY, &[], &["--io-timeout", "300ms"]);
    let stream = AsyncStream::connect(server.grpc).await.unwrap();
    let mut builder = client::Builder::new();
    let handshake = builder.initial_window_size(0).handshake::<_, Bytes>(stream);
    let (mut send, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("http://{}{HEALTH_CHECK}", server.grpc))
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let (response, mut stream) = send.send_request(request, false).unwrap();
    stream.send_data(framed(0, 0, b""), true).unwrap();
    let mut body = response.await.unwrap().into_body();
    let ended = timeout(Duration::from_secs(60), body.data()).await.unwrap();
    assert_eq!(ended.unwrap().unwrap_err().reason(), Some(h2::Reason::CANCEL));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_room_is_made_for_a_message_that_would_be_too_large() {
    let (_home, server) = start(POLICY, &[], &[]);
    // Who has no token may check, too. One byte more than there may be.
    assert_eq!(begin(server.grpc, HEALTH_CHECK, &[0, 0, 1, 0, 1]).await, "11");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_may_come_byte_by_byte() {
    let (_home, server) = start(POLICY, &[], &[]);
    let request = RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: vec![descriptor(&[("k", "v")])],
        hits_addend: 0,
    };
    let message = request.encode_to_vec();
    let message = framed(0, message.len() as u32, &message);
    let stream = AsyncStream::connect(server.grpc).await.unwrap();
    let (mut send, connection) = client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("http://{}{PATH}", server.grpc))
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let (response, mut stream) = send.send_request(request, false).unwrap();
    for (place, byte) in message.iter().enumerate() {
        let is_last = place + 1 == message.len();
        stream.send_data(Bytes::copy_from_slice(&[*byte]), is_last).unwrap();
    }
    let mut body = response.await.unwrap().into_body();
    let mut answer = BytesMut::new();
    while let Some(piece) = body.data().await {
        answer.extend_from_slice(&piece.unwrap());
    }
    let answer = RateLimitResponse::decode(&answer[5..]).unwrap();
    assert_eq!((answer.overall_code, answer.statuses[0].limit_remaining), (OK, 999));
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_opens_calls_only_to_reset_them_is_sent_away() {
    let (_home, server) = start(POLICY, &[], &[]);
    let mut head = Vec::new();
    for (name, value) in
        [(":method", "POST"), (":scheme", "http"), (":path", PATH), (":authority", "a")]
    {
        // As it is, without a table.
        head.push(0);
        for text in [name, value] {
            head.push(text.len() as u8);
            head.extend(text.bytes());
        }
    }
    let (headers, reset, settings, goaway) = (1, 3, 4, 7);
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(settings, 0, 0, &[]));
    for stream in (1..2_000).step_by(2) {
        bytes.extend(frame(headers, 4, stream, &head));
        bytes.extend(frame(reset, 0, stream, &8_u32.to_be_bytes()));
    }
    let mut stream = TcpStream::connect(server.grpc).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // It may be sent away before all of it is sent.
    let _ = stream.write_all(&bytes);
    let mut output = Vec::new();
    let _ = stream.read_to_end(&mut output);
    let mut rest = &output[..];
    let mut codes = Vec::new();
    while let [a, b, c, kind, more @ ..] = rest {
        let (payload, next) = more[5..].split_at(u32::from_be_bytes([0, *a, *b, *c]) as usize);
        if *kind == goaway {
            codes.push(payload[7]);
        }
        rest = next;
    }
    // To be calm.
    assert_eq!(codes, [11], "{output:?}");
    let mut client = Client::to(&server).await;
    assert_eq!(client.status("edge", &descriptor(&[("k", "v")])).await.code, OK);
}
