//! Credentials that change while they are in use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use spillgate_redis::backend::Fault;
use spillgate_redis::client::{Client, Options};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::common::{Certificates, Server, log};
use crate::connections::asking::{PATIENCE, ask, hammer, options, until_down, until_up};

const ACCESS: &str = "ACL SETUSER limiter on >first ~spillgate:* +@all";

/// A server with a user, and a file with that user's password.
fn scene() -> (Server, TempDir, PathBuf, Options) {
    let server = Server::redis();
    server.command(ACCESS);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "first\n").unwrap();
    let options = options(&server.url()).user("limiter").password_file(&file);
    (server, folder, file, options)
}

/// Ends all connections of the user.
fn cut(server: &Server) {
    server.command("CLIENT KILL USER limiter");
}

/// Waits until so many connections were opened.
async fn until_connected(client: &Client, times: u64) {
    let begin = Instant::now();
    while client.health().connects < times {
        assert!(begin.elapsed() < PATIENCE, "still {:?}", client.health());
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_rotated_password_is_read_at_the_next_connect() {
    let (server, _folder, file, options) = scene();
    let client = Client::connect(options).await.unwrap();
    ask(&client, 1).await.unwrap();
    server.command("ACL SETUSER limiter >second");
    std::fs::write(&file, "second\n").unwrap();
    server.command("ACL SETUSER limiter <first");
    ask(&client, 1).await.unwrap();
    cut(&server);
    until_connected(&client, 2).await;
    until_up(&client).await;
}

#[tokio::test]
async fn a_password_file_that_cannot_be_used_leaves_the_password_as_it_was() {
    let (server, _folder, file, options) = scene();
    let client = Client::connect(options.clone()).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    for (connects, text) in [(2, None), (3, Some("")), (4, Some("\n")), (5, Some("not yet"))] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        cut(&server);
        until_connected(&client, connects).await;
        until_up(&client).await;
    }
    std::fs::write(&file, "").unwrap();
    let error = Client::connect(options).await.map(|_| ()).unwrap_err();
    assert_eq!(error.fault(), Fault::Misconfigured);
    assert!(error.to_string().ends_with("password is empty"), "{error}");
}

#[tokio::test]
async fn neither_the_old_nor_the_new_password_is_told() {
    let (server, _folder, file, options) = scene();
    let client = Client::connect(options).await.unwrap();
    std::fs::write(&file, "hunter2").unwrap();
    server.command("ACL SETUSER limiter resetpass >hunter3");
    cut(&server);
    let message = until_down(&client, Fault::Refused).await;
    assert!(!message.contains("hunter") && !message.contains("first"), "{message}");
    let shown = format!("{client:?}");
    assert!(!shown.contains("hunter") && !shown.contains("first"), "{shown}");
    std::fs::write(&file, "hunter3").unwrap();
    until_up(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_takes_up_new_credentials_without_an_outage() {
    let (server, _folder, file, options) = scene();
    let slow = options.command_time_out(Duration::from_secs(5));
    let client = Arc::new(Client::connect(slow.clone()).await.unwrap());
    let calls = tokio::spawn(hammer(client.clone(), Duration::from_millis(500)));
    assert_eq!(client.renew_credentials(slow.clone()), Ok(false), "nothing has changed");
    server.command("ACL SETUSER limiter >second");
    std::fs::write(&file, "second").unwrap();
    assert_eq!(client.renew_credentials(slow.clone()), Ok(true));
    until_connected(&client, 2).await;
    // Another user, in place of the file.
    server.command("ACL SETUSER other on >third ~spillgate:* +@all");
    assert_eq!(client.renew_credentials(slow.clone().user("other").password("x")), Ok(true));
    sleep(Duration::from_millis(50)).await;
    assert_eq!(client.health().connects, 2, "it was not accepted");
    let file = file.with_file_name("other");
    std::fs::write(&file, "third").unwrap();
    assert_eq!(client.renew_credentials(slow.user("other").password_file(&file)), Ok(true));
    until_connected(&client, 3).await;
    let outcome = calls.await.unwrap();
    assert_eq!(outcome.failed, 0, "{outcome:?}");
    assert_eq!(client.health().outages, 0);
    ask(&client, 1).await.unwrap();
    let clients = server.command("CLIENT LIST");
    assert!(clients.contains("user=other") && !clients.contains("user=limiter"), "{clients}");
}

#[tokio::test]
async fn a_reload_of_files_that_cannot_be_used_changes_nothing() {
    let (server, _folder, file, options) = scene();
    let client = Client::connect(options.clone()).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let error = client.renew_credentials(options).unwrap_err();
    assert!(error.to_string().contains("password cannot be read"), "{error}");
    cut(&server);
    until_connected(&client, 2).await;
    until_up(&client).await;
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let certificates = Certificates::new();
    let (_server, port) = Server::redis_with_tls(&certificates, "yes", &[]);
    let file = |name: &str| certificates.file(name);
    let options = options(&format!("rediss://localhost:{port}"))
        .authorities(file("ca.pem"))
        .client_certificate(file("client.pem"), file("client.key"));
    let client = Client::connect(options.clone()).await.unwrap();
    certificates.renew_client();
    assert_eq!(client.renew_credentials(options.clone()), Ok(true));
    until_connected(&client, 2).await;
    // One that is not accepted is not used.
    let good = ["client.pem", "client.key"].map(|name| std::fs::read(file(name)).unwrap());
    certificates.expire_client();
    assert_eq!(client.renew_credentials(options.clone()), Ok(true));
    sleep(Duration::from_millis(100)).await;
    ask(&client, 1).await.unwrap();
    assert_eq!((client.health().connects, client.health().outages), (2, 0));
    // A certificate whose key is yet to be written.
    std::fs::write(file("client.pem"), &good[0]).unwrap();
    let error = client.renew_credentials(options.clone()).unwrap_err();
    assert!(error.to_string().contains("do not go together"), "{error}");
    std::fs::write(file("client.key"), &good[1]).unwrap();
    assert_eq!(client.renew_credentials(options), Ok(true));
    until_connected(&client, 3).await;
    ask(&client, 1).await.unwrap();
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_at_a_reconnect_leaves_the_old_one_and_is_logged_once() {
    let certificates = Certificates::new();
    let (server, port) = Server::redis_with_tls(&certificates, "yes", &[]);
    let file = |name: &str| certificates.file(name);
    let options = options(&format!("rediss://localhost:{port}"))
        .authorities(file("ca.pem"))
        .client_certificate(file("client.pem"), file("client.key"));
    let logged = |what: &str| {
        let path = file("client.pem").display().to_string();
        log().lines().filter(|line| line.contains(&path) && line.contains(what)).count()
    };
    log();
    let client = Client::connect(options).await.unwrap();
    let good = std::fs::read(file("client.pem")).unwrap();
    let mut connects = 1;
    let mut reconnect = async || {
        connects += 1;
        server.command("CLIENT KILL TYPE normal");
        until_connected(&client, connects).await;
        until_up(&client).await;
    };
    std::fs::write(file("client.pem"), "no certificate").unwrap();
    reconnect().await;
    reconnect().await;
    assert_eq!(logged("keeping the previous ones"), 1);
    std::fs::remove_file(file("client.pem")).unwrap();
    reconnect().await;
    reconnect().await;
    assert_eq!(logged("cannot be read: No such file"), 1);
    assert_eq!(logged("keeping the previous ones"), 2);
    std::fs::write(file("client.pem"), good).unwrap();
    reconnect().await;
    assert_eq!(logged(""), 2);
}
