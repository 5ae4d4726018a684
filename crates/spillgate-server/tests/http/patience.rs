use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use spillgate_enforce::MetricsFormat;
use spillgate_server::App;
use spillgate_server::protocol::http::{Bounds, HttpServer, serve};
use spillgate_testing::effort;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::client::Reply;
use super::server::{Server, app, shown};
use super::wire::request;

/// Bounds that a test can wait for.
fn hasty() -> Bounds {
    let mut bounds = Bounds::default();
    bounds.stalled = Duration::from_millis(200);
    bounds.idle = Duration::from_millis(600);
    bounds
}

/// The same, but nobody waits until a connection has been idle for too long.
fn hasty_unless_idle() -> Bounds {
    let mut bounds = hasty();
    bounds.idle = Duration::from_secs(120);
    bounds
}

/// Sees to it that a server has waited as long as its bound says: on a machine that does nothing
/// else not much longer, and on any not as long as another bound says.
#[track_caller]
fn assert_waited(waited: Duration, bound: Duration, of: &str) {
    let most = if effort() > 1 { bound + Duration::from_millis(600) } else { LONG };
    assert!((bound - Duration::from_millis(10)..most).contains(&waited), "{of}: {waited:?}");
}

const LONG: Duration = Duration::from_secs(60);

/// How long a server waits after each of these pieces.
async fn patience(server: &Server, pieces: &[&str], pause: Duration) -> (Duration, String) {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let begin = Instant::now();
    let mut reply = Vec::new();
    for piece in pieces {
        let _ = socket.write_all(piece.as_bytes()).await;
        if timeout(pause, socket.read_buf(&mut reply)).await.is_ok() {
            break;
        }
    }
    let _ = timeout(LONG, socket.read_to_end(&mut reply)).await.unwrap();
    (begin.elapsed(), String::from_utf8_lossy(&reply).into_owned())
}

#[tokio::test]
async fn slow_clients_are_not_waited_for() {
    let server: &Server = Box::leak(Box::new(Server::bounded(hasty_unless_idle()).await));
    let stalled = hasty().stalled;
    let short = Duration::from_millis(1);
    // A head that never ends, also if it goes on and on.
    let (waited, reply) = patience(server, &["GET / HTTP/1.1\r\nhost: l"], short).await;
    assert_waited(waited, stalled, &reply);
    assert!(reply.is_empty(), "{reply}");
    let drops = ["x-slow: y\r\n"; 5000];
    let pieces = [&["GET / HTTP/1.1\r\n"], &drops[..]].concat();
    let (waited, reply) = patience(server, &pieces, Duration::from_millis(20)).await;
    assert_waited(waited, stalled, &reply);
    assert!(reply.is_empty(), "{reply}");
    // A body that does not come, or less of it than announced.
    let lie = request("").replace("content-length: 31", "content-length: 99");
    let (waited, reply) = patience(server, &[&lie], short).await;
    assert_waited(waited, stalled, &reply);
    assert_eq!(Reply::parse(reply.as_bytes()).status, 408, "{reply}");
    // The beginning of a request that came together with the one before.
    let free = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 40\r\n\r\n{\"limit\":\"many\",\"key\":\"user:1\",\"cost\":0}";
    for (whole, begin) in [
        ("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", "GET /hea"),
        ("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", "GET /auth HTTP/1.1\r\nx: "),
        (free, "POST /v1/check HTTP/1.1\r\n"),
        (free, "GET /auth?"),
    ] {
        let (waited, reply) = patience(server, &[&format!("{whole}{begin}")], short).await;
        assert_waited(waited, stalled, &format!("{whole}{begin}: {reply}"));
        assert!(reply.starts_with("HTTP/1.1 "), "{whole}{begin}: {reply}");
    }
    assert_eq!(server.app.gate().usage()[7].1.callers, 0, "only whole requests have spent");
    // Silence, before and after a request.
    let server: &Server = Box::leak(Box::new(Server::bounded(hasty()).await));
    let idle = hasty().idle;
    let (waited, reply) = patience(server, &[], short).await;
    assert_waited(waited, idle, &reply);
    let (waited, reply) = patience(server, &[&request("")], short).await;
    assert_waited(waited, idle, &reply);
    assert_eq!(Reply::parse(reply.as_bytes()).status, 200);
    // The same if its body came later.
    let (head, body) = free.split_at(free.len() - 40);
    let (waited, reply) = patience(server, &[head, body], short).await;
    assert_waited(waited, idle, &reply);
    assert_eq!(Reply::parse(reply.as_bytes()).status, 200);
    assert_eq!(server.app.gate().usage()[7].1.callers, 1, "only whole requests have spent");
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_nothing_but_itself() {
    let http = Arc::new(HttpServer::new(Arc::new(app())).bounds(hasty()));
    let (mut client, stream) = duplex(256);
    let served = tokio::spawn({
        let http = Arc::clone(&http);
        async move { serve(stream, None, &http, pending()).await }
    });
    let asks = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.write_all(asks.as_bytes()).await.unwrap();
    let ended = timeout(LONG, served).await.unwrap().unwrap();
    assert!(ended.is_ok(), "{ended:?}");
}

#[tokio::test]
async fn a_shutdown_answers_the_request_in_hand_and_ends_idle_connections() {
    let http = shown(HttpServer::new(Arc::new(app())));
    let start = |stop: oneshot::Receiver<()>| {
        let (client, stream) = duplex(64 * 1024);
        let http = Arc::clone(&http);
        let served = tokio::spawn(async move {
            let peer = "127.0.0.1:1".parse().ok();
            serve(stream, peer, &http, async { drop(stop.await) }).await
        });
        (client, served)
    };
    // A shaper holds this one back for 150 ms.
    let (stop, stopped) = oneshot::channel();
    let (mut client, served) = start(stopped);
    let auth = "GET /auth HTTP/1.1\r\nhost: localhost\r\nx-original-uri: /queue\r\n\
                x-original-method: GET\r\nx-original-host: h\r\nx-real-ip: 192.0.2.1\r\n\r\n";
    client.write_all(auth.repeat(3).as_bytes()).await.unwrap();
    let mut first = [0; 15];
    client.read_exact(&mut first).await.unwrap();
    stop.send(()).unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("HTTP/1.1 200 OK\r\n"), "the second was in hand: {rest}");
    served.await.unwrap().unwrap();

    let (stop, stopped) = oneshot::channel();
    let (mut client, served) = start(stopped);
    client.write_all(request("").as_bytes()).await.unwrap();
    // Has arrived, and is answered; the connection then ends.
    stop.send(()).unwrap();
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).await.unwrap();
    assert_eq!(Reply::parse(&reply).status, 200);
    served.await.unwrap().unwrap();
}

/// Requests that are sent one after the other are answered as the client reads: what waits for it
/// is one response, and a buffer of those before.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_not_answered_on_and_on() {
    let http = shown(HttpServer::new(Arc::new(app())));
    let (mut client, stream) = duplex(64 * 1024);
    let request = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let check = r#"{"limit":"api","key":"203.0.113.7","cost":0}"#;
    let check = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{check}",
        check.len()
    );
    let flood = async {
        // Until the server reads no more.
        for request in [check.repeat(100), request.repeat(10_000)] {
            client.write_all(request.as_bytes()).await.unwrap();
        }
    };
    tokio::select! {
        served = serve(stream, None, &http, pending()) => panic!("{served:?}"),
        () = flood => panic!("all of it was read"),
        () = sleep(Duration::from_secs(1)) => {}
    }
    let metrics = http.app().metrics(MetricsFormat::Text);
    let line = metrics.lines().find(|line| line.contains("route=\"openapi\"")).unwrap();
    let answered: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(answered < 10, "{answered}");
}

/// How often `/auth` was answered.
fn auth_count(app: &App) -> u64 {
    let metrics = app.metrics(MetricsFormat::Text);
    let lines = metrics.lines().filter(|line| line.contains("route=\"auth\""));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test(start_paused = true)]
async fn small_requests_with_large_answers_wait_until_some_are_read() {
    let http = shown(HttpServer::new(Arc::new(app())));
    let (mut client, stream) = duplex(4096);
    let flood = async {
        client.write_all("GET /auth HTTP/1.1\r\n\r\n".repeat(1_000).as_bytes()).await.unwrap();
    };
    tokio::select! {
        served = serve(stream, None, &http, pending()) => panic!("{served:?}"),
        () = flood => panic!("all of it was read"),
        () = sleep(Duration::from_secs(1)) => {}
    }
    let answered = auth_count(http.app());
    assert!((1..100).contains(&answered), "{answered}");
}

/// The beginning of a head for `/auth` that is larger than other routes take.
fn endless() -> String {
    format!("GET /auth HTTP/1.1\r\nhost: localhost\r\nx: {}", "x".repeat(20_000))
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_ask_auth_has_no_more_room_for_a_head_than_elsewhere() {
    for (peer, is_proxy) in [("192.0.2.9:1", false), ("127.0.0.1:1", true)] {
        let http = shown(HttpServer::new(Arc::new(app())));
        let (mut client, stream) = duplex(1024 * 1024);
        client.write_all(endless().as_bytes()).await.unwrap();
        let served = serve(stream, peer.parse().ok(), &http, pending());
        let ended = timeout(Duration::from_secs(5), served).await;
        assert_eq!(ended.is_err(), is_proxy, "{peer}: {ended:?}");
        let mut reply = Vec::new();
        client.read_to_end(&mut reply).await.unwrap();
        if !is_proxy {
            let reply = Reply::parse(&reply);
            assert_eq!((reply.status, auth_count(http.app())), (431, 1), "{reply:?}");
            assert_eq!(reply.detail(), "request head larger than 16384 bytes");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_long_for_the_rest_of_a_head() {
    let rest = "\r\n\r\n";
    for (late, answers) in [(Duration::from_millis(500), 1), (Duration::from_secs(5), 0)] {
        let http = shown(HttpServer::new(Arc::new(app())));
        let (mut client, stream) = duplex(1024 * 1024);
        let begin = Instant::now();
        let shutdown = sleep(Duration::from_secs(1));
        let peer = "127.0.0.1:1".parse().ok();
        let (served, ()) = tokio::join!(serve(stream, peer, &http, shutdown), async {
            client.write_all(endless().as_bytes()).await.unwrap();
            sleep(Duration::from_secs(1) + late).await;
            // It may have been closed.
            let _ = client.write_all(rest.as_bytes()).await;
        });
        assert!(served.is_ok(), "{served:?}");
        assert_eq!(auth_count(http.app()), answers, "{late:?}");
        assert!(begin.elapsed() < Duration::from_secs(7), "{late:?}: {:?}", begin.elapsed());
    }
}
