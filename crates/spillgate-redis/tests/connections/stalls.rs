//! A server that stands still while its connections stay.

use std::sync::Arc;
use std::time::Duration;

use spillgate_redis::backend::Fault;
use spillgate_redis::client::Client;
use tokio::time::{Instant, sleep, timeout};

use crate::common::Server;
use crate::connections::asking::{PATIENCE, ask, options, scripts_run, until_up};

/// How often an idle node asks the server for its time and its memory.
const CHECK: Duration = Duration::from_millis(20);

async fn until_outage(client: &Client) {
    let begin = Instant::now();
    while client.health().outage.is_none() {
        assert!(begin.elapsed() < PATIENCE, "still no outage: {:?}", client.health());
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn calls_behind_a_check_that_is_not_answered_are_late_in_time() {
    let server = Server::redis();
    // Checks may take for ever, by comparison.
    let often = options(&server.url()).check_interval(CHECK).connect_time_out(PATIENCE / 2);
    let client = Client::connect(often).await.unwrap();
    ask(&client, 1).await.unwrap();
    server.pause();
    sleep(CHECK * 10).await;
    for outages in [0, 0, 1] {
        let late = timeout(PATIENCE / 4, ask(&client, 1)).await.unwrap().unwrap_err();
        assert_eq!(late.fault(), Fault::TimedOut);
        assert!(late.is_unanswered());
        assert_eq!(client.health().outages, outages);
    }
    assert!(!ask(&client, 1).await.unwrap_err().is_unanswered(), "it was not sent");
    server.resume();
    until_up(&client).await;
}

#[tokio::test]
async fn a_path_that_has_become_silent_is_an_outage_although_nobody_calls() {
    let server = Server::redis();
    let often = options(&server.url()).check_interval(CHECK);
    let client = Client::connect(often.connect_time_out(Duration::from_millis(50))).await.unwrap();
    sleep(CHECK * 5).await;
    assert_eq!(client.health().outages, 0);
    server.pause();
    until_outage(&client).await;
    server.resume();
    until_up(&client).await;
}

#[tokio::test]
async fn calls_that_are_given_up_keep_their_places_until_they_are_answered() {
    const WINDOW: u64 = 4;
    let server = Server::redis();
    let patient = options(&server.url()).command_time_out(PATIENCE).in_flight(WINDOW as usize);
    let client = Arc::new(Client::connect(patient).await.unwrap());
    ask(&client, 1).await.unwrap();
    let before = scripts_run(&server);
    server.pause();
    for name in 0..20 {
        let client = client.clone();
        let call = tokio::spawn(async move { ask(&client, name).await });
        sleep(Duration::from_millis(5)).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    let health = client.health();
    assert_eq!((health.in_flight, health.waiting), (WINDOW, 0));
    server.resume();
    // They are free again.
    ask(&client, 1).await.unwrap();
    assert_eq!(client.health().in_flight, 0);
    assert_eq!(scripts_run(&server), before + WINDOW + 1);
}

#[tokio::test]
async fn calls_that_are_given_up_before_they_are_late_are_an_outage_nevertheless() {
    let server = Server::redis();
    let client = Arc::new(Client::connect(options(&server.url()).in_flight(4)).await.unwrap());
    ask(&client, 1).await.unwrap();
    server.pause();
    for name in 0..10 {
        let _ = timeout(Duration::from_millis(5), ask(&client, name)).await;
    }
    until_outage(&client).await;
    assert!(client.health().time_outs >= 3);
    server.resume();
    until_up(&client).await;
    assert_eq!(client.health().in_flight, 0);
}
