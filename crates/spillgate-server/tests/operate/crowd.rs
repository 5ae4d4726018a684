//! Many connections that do nothing useful, and those who get through nevertheless.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use spillgate::{Clock, SystemClock};
use spillgate_testing::program;

use crate::common::server::{Home, Server, run, spillgate};

const PLACES: usize = 40;

/// How soon a newcomer is answered, though all places are taken: far sooner than the 30 s after
/// which those would be closed anyway.
const PROMPTLY: Duration = Duration::from_secs(20);

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PROMPTLY)).unwrap();
    socket
}

/// Connections on each of which only so much is sent.
fn crowd(address: SocketAddr, begin: &str) -> Vec<TcpStream> {
    let one = |_| {
        let mut socket = connect(address);
        socket.write_all(begin.as_bytes()).unwrap();
        socket
    };
    (0..PLACES).map(one).collect()
}

/// Sends something, and reads until the answer is there.
fn ask(socket: &mut TcpStream, request: &str, answer: &str) {
    socket.write_all(request.as_bytes()).unwrap();
    let mut output = String::new();
    let mut bytes = [0; 4096];
    while !output.contains(answer) {
        let count = socket.read(&mut bytes).unwrap();
        assert!(count > 0, "closed after {output:?}");
        output += &String::from_utf8_lossy(&bytes[..count]);
    }
}

/// One after the other, more newcomers than there are places are answered promptly, and whoever
/// is in the middle of something stays.
fn get_through(address: SocketAddr, begins: &[&str], request: &str, answer: &str) {
    for begin in begins {
        let crowd = crowd(address, begin);
        let start = SystemClock.now();
        for _ in 0..2 * PLACES {
            ask(&mut connect(address), request, answer);
        }
        let took = SystemClock.now().since(start);
        assert!(took < PROMPTLY, "{begin:?}: {took:?}");
        drop(crowd);
    }
}

fn start(extra: &[&str]) -> Server {
    let mut command = spillgate();
    command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    command.args(["--grpc", "127.0.0.1:0", "--max-connections", &PLACES.to_string()]).args(extra);
    Server::start(command)
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// A check whose body is not there yet.
fn half_a_check(address: SocketAddr) -> TcpStream {
    let mut socket = connect(address);
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 35\r\n\r\n{\"limit\":\"api\",";
    socket.write_all(head.as_bytes()).unwrap();
    socket
}

const OTHER_HALF: &str = "\"key\":\"203.0.113.7\"}";

#[test]
fn half_sent_heads_do_not_keep_a_probe_out_and_a_request_at_work_is_answered() {
    let server = start(&[]);
    let mut at_work = half_a_check(server.http);
    let mut kept = connect(server.http);
    ask(&mut kept, HEALTH, "200 OK");
    // Also behind a request that is whole, whoever answers that.
    let behind = ["GET /hea", "GET /auth HTTP/1.1\r\nx: "].map(|begin| format!("{HEALTH}{begin}"));
    let [behind, auth_behind] = &behind;
    let begins = ["GET /healthz HTTP/1.1\r\nhost: loc", "G", "POST /v1/check HTTP/1.1\r\nx: ", ""];
    let begins = [&begins[..], &[behind, auth_behind]].concat();
    get_through(server.http, &begins, HEALTH, "200 OK");
    ask(&mut at_work, OTHER_HALF, "\"allowed\":true");
    ask(&mut kept, HEALTH, "200 OK");
    let log = server.stop();
    assert!(log.contains("max connections reached; closed the oldest"), "{log}");
}

#[test]
fn half_sent_commands_do_not_keep_a_client_out_and_one_that_is_idle_stays() {
    let server = start(&[]);
    let mut idle = connect(server.resp);
    ask(&mut idle, "PING\r\n", "+PONG\r\n");
    let begins = ["*2\r\n$4\r\nECHO\r\n$5\r\nhel", "PIN", "", "PING\r\nPIN"];
    get_through(server.resp, &begins, "PING\r\n", "+PONG\r\n");
    ask(&mut idle, "PING\r\n", "+PONG\r\n");
    server.stop();
}

#[test]
fn silent_connections_do_not_keep_calls_over_grpc_out() {
    let server = start(&[]);
    // Settings are answered by settings.
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    get_through(server.grpc, &["", "PRI * HTTP/2.0\r\n", preface], preface, "\0\x04\0");
    server.stop();
}

#[test]
fn handshakes_that_are_not_finished_do_not_keep_others_out() {
    let home = Home::new(
        "limit = []\n[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\nmax-connections = 40\n",
    );
    home.certify();
    let files = ["cert.pem", "key.pem"].map(|name| home.path(name).display().to_string());
    let server = home.start(&["--tls-cert", &files[0], "--tls-key", &files[1]]);
    let _silent = crowd(server.http, "");
    // The first bytes of a message of TLS.
    let _begun = crowd(server.http, "\x16\x03\x01\x02\0\x01");
    let mut curl = program("curl");
    curl.args(["-sS", "--max-time", "20", "--cacert", &files[0]]);
    run(curl.arg(format!("https://127.0.0.1:{}/healthz", server.http.port())));
    server.stop();
}

#[test]
fn half_sent_heads_do_not_keep_clients_of_the_proxy_out() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = upstream.local_addr().unwrap();
    thread::spawn(move || {
        for socket in upstream.incoming() {
            thread::spawn(move || {
                let mut socket = socket.unwrap();
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = socket.read(&mut bytes) {
                    let asked = String::from_utf8_lossy(&bytes[..count]).to_lowercase();
                    let answer = match asked.contains("upgrade: echo") {
                        true => {
                            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                                 upgrade: echo\r\n\r\n"
                        }
                        false if asked.starts_with("echo") => &*asked,
                        false => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
                    };
                    let _ = socket.write_all(answer.as_bytes());
                }
            });
        }
    });
    let home = Home::new(&format!(
        "limit = []\n[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\nmax-connections = {PLACES}\n\
         [proxy]\nlisten = '127.0.0.1:0'\nto = 'http://{to}'\n"
    ));
    let server = home.start(&[]);
    let line = server.banner.lines().find_map(|line| line.trim().strip_prefix("proxy"));
    let proxy = line.and_then(|line| line.split("://").nth(1)?.split(' ').next()).unwrap();
    let proxy = proxy.parse().unwrap();
    let mut at_work = connect(proxy);
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\nab";
    at_work.write_all(head.as_bytes()).unwrap();
    // One that speaks something else by now, as a WebSocket does.
    let mut switched = connect(proxy);
    let upgrade =
        "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    ask(&mut switched, upgrade, "101 Switching Protocols");
    ask(&mut switched, "echo one", "echo one");
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let behind = format!("{request}GET / HT");
    let begins = ["", "GET / HTTP/1.1\r\nho", "PRI * HT", &behind];
    get_through(proxy, &begins, request, "\r\n\r\nhi");
    ask(&mut at_work, "cd", "\r\n\r\nhi");
    ask(&mut switched, "echo two", "echo two");
    drop(switched);
    server.stop();
}

#[test]
fn the_admin_listener_answers_when_all_places_of_the_other_are_at_work() {
    let server = start(&["--admin", "127.0.0.1:0"]);
    let line = server.banner.lines().find_map(|line| line.trim().strip_prefix("admin"));
    let admin = line.unwrap().trim().strip_prefix("http://").unwrap().parse().unwrap();
    let mut at_work: Vec<_> = (0..PLACES).map(|_| half_a_check(server.http)).collect();
    for _ in 0..PLACES {
        ask(&mut connect(admin), HEALTH, "200 OK");
    }
    let metrics = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    ask(&mut connect(admin), metrics, "spillgate_open_connections{protocol=\"http\"}");
    ask(&mut half_a_check(admin), OTHER_HALF, "\"allowed\":true");
    for socket in &mut at_work {
        ask(socket, OTHER_HALF, "\"allowed\":");
    }
    server.stop();
}
