//! One kind of call to a gate, a layer or a protocol, so many times: `scripts/bench-instructions`
//! counts the instructions of one.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use spillgate::WhenFull;
use spillgate_policy::{Gate, LimitCheck, Policy, RequestView};
use spillgate_server::protocol::grpc::{self, GrpcServer};
use spillgate_server::protocol::http::{self as http1, Bounds, HttpServer};
use spillgate_server::protocol::resp::codec::{Decoder, Limits};
use spillgate_server::protocol::resp::{self, Endpoint};
use spillgate_server::{AnyStore, App};
use spillgate_tower::{PeerAddr, SpillgateLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tower_layer::Layer as _;
use tower_service::Service;

/// What a row is called, and what it does so many times.
type Row = (&'static str, fn(u32));

const ROWS: &[Row] = &[
    ("gate, no limit met", |count| gate("limit = []", "/hello", count)),
    ("gate, one limit", |count| gate(ONE, "/hello", count)),
    ("gate, three limits", |count| gate(THREE, "/hello", count)),
    ("gate, denied", |count| gate(DENYING, "/hello", count)),
    ("gate, denied, a strike", |count| gate(STRIKING, "/hello", count)),
    ("gate, banned", |count| gate(BANNING, "/hello", count)),
    ("gate, blocked", |count| gate("limit = []\nblock = ['10.0.0.0/8']", "/hello", count)),
    ("gate, per header and path", |count| gate(BY_HEADER, "/users/7/photos", count)),
    ("gate, a limit by name", by_name),
    ("gate, one concurrency limit", |count| gate(CONCURRENT, "/hello", count)),
    ("layer, one limit", |count| layer(ONE, count)),
    ("layer, three limits", |count| layer(THREE, count)),
    ("layer, one concurrency limit", |count| layer(CONCURRENT, count)),
    ("layer, denied", |count| layer(DENYING, count)),
    ("layer, banned", |count| layer(BANNING, count)),
    ("codec, CL.THROTTLE", decode),
    ("RESP, CL.THROTTLE", |count| resp(&throttle, 1, count)),
    ("RESP, CL.THROTTLE, pipelined", |count| resp(&throttle, 16, count)),
    ("RESP, CL.THROTTLE denied", |count| resp(&throttle_denied, 1, count)),
    ("RESP, check by name", |count| resp(&resp_check, 1, count)),
    ("RESP, check by name, pipelined", |count| resp(&resp_check, 16, count)),
    ("RESP, PING", |count| resp(&|_| command(&["PING"]), 1, count)),
    ("HTTP, check by name", |count| http(r#"{"limit":"keys","key":"KEY"}"#, count)),
    ("HTTP, check of a request", |count| {
        http(r#"{"request":{"method":"GET","path":"/hello","ip":"10.0.0.1"}}"#, count);
    }),
    ("HTTP, several limits", |count| {
        let checks = r#"{"checks":[{"limit":"keys","key":"KEY"},{"limit":"ip","key":"10.0.0.1"}]}"#;
        http(checks, count);
    }),
    ("gRPC, one descriptor", |count| grpc(1, count)),
    ("gRPC, three descriptors", |count| grpc(3, count)),
];

const ONE: &str = "[[limit]]\nname = 'ip'\nquota = '1000000/s burst 1000000'";
const CONCURRENT: &str = "[[limit]]\nname = 'ip'\nconcurrent = 1000";
const DENYING: &str = "[[limit]]\nname = 'ip'\nquota = '1/h'";
// A caller makes fewer calls than that.
const STRIKING: &str = "[[limit]]\nname = 'ip'\nquota = '1/h'\nban = { strikes = 100 }";
// The second call of each bans it.
const BANNING: &str = "[[limit]]\nname = 'ip'\nquota = '1/h'\nban = { strikes = 1 }";
const THREE: &str = "[[limit]]\nname = 'a'\nquota = '4000000/s burst 1000000'\n\
                     [[limit]]\nname = 'b'\nquota = '2000000/s burst 2000000'\n\
                     [[limit]]\nname = 'c'\nquota = '1000000/s burst 3000000'";
const BY_HEADER: &str = "[[limit]]\nname = 'photos'\nper = 'header:x-user'\n\
                         match = { path = '/users/{id}/photos' }\n\
                         quota = '1000000/s burst 1000000'";
const SERVER: &str = "[[limit]]\nname = 'ip'\nquota = '1000000/s burst 1000000'\n\
                      [[limit]]\nname = 'keys'\nper = 'user'\nby-name = true\n\
                      quota = '2000000/s burst 1000000'\n\
                      [[limit]]\nname = 'descriptors'\nquota = '1000000/s burst 1000000'\n\
                      match = { domain = 'bench', descriptor = { key = '*' } }";

/// Callers that take turns.
const CALLERS: u32 = 1_000;

fn caller(call: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0A00_0000 + call % CALLERS).into()
}

fn headers() -> HeaderMap {
    let headers = [("host", "api.example.com"), ("accept", "*/*"), ("x-user", "alice")];
    headers
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .into_iter()
        .collect()
}

fn gate(policy: &str, path: &str, count: u32) {
    let gate = Gate::new(Policy::from_toml(policy).unwrap()).unwrap();
    let (method, uri, headers) = (Method::GET, path.parse::<Uri>().unwrap(), headers());
    for call in 0..count {
        let request = RequestView::new(&method, &uri, &headers, Some(caller(call)));
        black_box(gate.try_decide(&request, |outcome| outcome.unwrap().answer()));
    }
}

fn by_name(count: u32) {
    let gate = Gate::new(Policy::from_toml(SERVER).unwrap()).unwrap();
    let users: Vec<String> = (0..CALLERS).map(|user| user.to_string()).collect();
    for call in 0..count {
        let values = [&*users[(call % CALLERS) as usize]];
        let check = LimitCheck::new("keys", &values, 1);
        black_box(gate.try_decide(&check, |outcome| outcome.unwrap().answer()));
    }
}

fn layer(policy: &str, count: u32) {
    let gate = Gate::new(Policy::from_toml(policy).unwrap()).unwrap();
    let mut service = SpillgateLayer::new(gate).metrics(Default::default()).layer(Hello);
    let (uri, headers) = (Uri::from_static("/hello"), headers());
    for call in 0..count {
        let mut request = Request::new(());
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers.clone();
        request.extensions_mut().insert(PeerAddr(caller(call)));
        let _ = black_box(at_once(service.call(request)));
    }
}

#[derive(Clone)]
struct Hello;

impl Service<Request<()>> for Hello {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Bytes::new())))
    }
}

/// What a future has that need not wait.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

fn decode(count: u32) {
    let (stream, limits) = (throttle(7), Limits::default());
    for _ in 0..count {
        let mut decoder = Decoder::default();
        black_box(decoder.decode(black_box(&stream), &limits).unwrap().unwrap().length);
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{words}", words.matches('$').count()).into_bytes()
}

fn throttle(call: u32) -> Vec<u8> {
    command(&["CL.THROTTLE", &format!("key:{}", call % CALLERS), "1000000", "1000000", "1"])
}

fn throttle_denied(call: u32) -> Vec<u8> {
    command(&["CL.THROTTLE", &format!("key:{}", call % CALLERS), "0", "1", "3600"])
}

fn resp_check(call: u32) -> Vec<u8> {
    command(&["SG.CHECK", "keys", &(call % CALLERS).to_string()])
}

fn resp(request: &dyn Fn(u32) -> Vec<u8>, at_once: u32, count: u32) {
    let app = app();
    let endpoint = Endpoint::new(Arc::clone(app.enforcer()));
    let requests: Vec<Vec<u8>> = (0..CALLERS).map(request).collect();
    let batches: Vec<_> = requests.chunks_exact(at_once as usize).map(<[_]>::concat).collect();
    let mark: &[u8] = if batches[0].ends_with(b"PING\r\n") { b"+PONG" } else { b"*5\r\n" };
    converse(count / at_once, mark, &batches, async |server| {
        resp::serve(server, None, &endpoint, pending()).await.unwrap();
    });
}

fn http(body: &str, count: u32) {
    let server = HttpServer::new(app());
    let request = |call: u32| {
        let body = body.replace("KEY", &call.to_string());
        let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let requests: Vec<_> = (0..CALLERS).map(request).collect();
    converse(count, b"HTTP/1.1 200 OK\r\n", &requests, async |stream| {
        let _ = http1::serve(stream, None, &server, pending()).await;
    });
}

fn app() -> Arc<App> {
    let policy = Policy::from_toml(SERVER).unwrap().with_throttle(100_000, WhenFull::Evict);
    Arc::new(App::new(Arc::new(Gate::with_store(policy, AnyStore::default()).unwrap()), SERVER))
}

/// Sends requests to a server in memory, each when the one before has its response, which begins
/// with `mark`.
fn converse(count: u32, mark: &[u8], requests: &[Vec<u8>], serve: impl AsyncFnOnce(DuplexStream)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut client, server) = duplex(64 * 1024);
    let talk = async {
        let mut buffer = vec![0; 64 * 1024];
        for (_, request) in (0..count).zip(requests.iter().cycle()) {
            client.write_all(request).await.unwrap();
            let length = client.read(&mut buffer).await.unwrap();
            let reply = &buffer[..length];
            assert!(reply.starts_with(mark), "{:?}", String::from_utf8_lossy(reply));
        }
        drop(client);
    };
    runtime.block_on(async { tokio::join!(serve(server), talk) });
}

fn grpc(descriptors: usize, count: u32) {
    let grpc = GrpcServer::new(app(), Bounds::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut client, server) = duplex(64 * 1024);
    let talk = async {
        let mut start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(SETTINGS, 0, 0, &[], &mut start);
        // Room for all responses.
        frame(WINDOW_UPDATE, 0, 0, &0x7000_0000_u32.to_be_bytes(), &mut start);
        client.write_all(&start).await.unwrap();
        let head = head("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit");
        let (mut heard, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        for call in 0..count {
            let (stream, mut out) = (2 * call + 1, Vec::new());
            frame(HEADERS, END_HEADERS, stream, &head, &mut out);
            frame(DATA, END_STREAM, stream, &message(descriptors, call), &mut out);
            client.write_all(&out).await.unwrap();
            while !take_end_of_stream(&mut heard) {
                let length = client.read(&mut buffer).await.unwrap();
                assert!(length > 0, "the server hung up");
                heard.extend(&buffer[..length]);
            }
        }
        drop(client);
    };
    let peer = Some((Ipv4Addr::LOCALHOST, 1).into());
    let serve = async {
        let _ = grpc::serve(server, peer, &grpc, pending()).await;
    };
    runtime.block_on(async { tokio::join!(serve, talk) });
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Drops frames up to the one that ends a stream, if it is there.
fn take_end_of_stream(heard: &mut Vec<u8>) -> bool {
    while let Some(&[a, b, c, kind, flags, ..]) = heard.first_chunk::<9>() {
        let end = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        if heard.len() < end {
            break;
        }
        heard.drain(..end);
        if kind == HEADERS && flags & END_STREAM != 0 {
            return true;
        }
    }
    false
}

/// Header fields as they are, without a table.
fn head(path: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        block.extend([&[0, name.len() as u8], name.as_bytes()].concat());
        block.extend([&[value.len() as u8], value.as_bytes()].concat());
    }
    block
}

/// A `RateLimitRequest`, with the prefix that gRPC puts before a message.
fn message(descriptors: usize, call: u32) -> Vec<u8> {
    let field = |number: u8, value: &[u8]| [&[number << 3 | 2, value.len() as u8], value].concat();
    let mut message = field(1, b"bench");
    for number in 0..descriptors {
        let value = format!("{number}:{}", call % CALLERS);
        let entry = [field(1, b"key"), field(2, value.as_bytes())].concat();
        message.extend(field(2, &field(1, &entry)));
    }
    [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next().and_then(|count| count.parse().ok())) {
        (Some(name), Some(count)) => {
            let row = ROWS.iter().find(|(row, _)| *row == name);
            row.unwrap_or_else(|| panic!("there is no row {name:?}")).1(count);
        }
        _ => ROWS.iter().for_each(|(name, _)| println!("{name}")),
    }
}
