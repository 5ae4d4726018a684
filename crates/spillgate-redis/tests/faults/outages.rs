//! What callers see while something is wrong with the server or the network.

use std::time::Duration;

use tokio::time::sleep;

use crate::common::{Proxy, Server};
use crate::faults::node::HOT;
use crate::faults::scene::{Scene, fault, has_connections, rounds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_is_missed_no_longer_than_it_is_away() {
    let mut server = Server::redis();
    let mut scene = Scene::new("kill -9", &server.url()).await;
    for _ in 0..rounds() {
        let killed = async || {
            server.kill();
            sleep(fault()).await;
            server.start_again();
        };
        let round = scene.round(killed).await;
        round.was_noticed();
        // It has kept nothing, so that everybody begins anew.
        assert!(round.calls.forgiven() <= HOT.burst);
        has_connections(&server, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_holds_calls_up_for_no_longer_than_the_time_out() {
    let server = Server::redis();
    let mut scene = Scene::new("SIGSTOP", &server.url()).await;
    for _ in 0..rounds() {
        let stopped = async || {
            server.pause();
            sleep(fault()).await;
            server.resume();
        };
        let round = scene.round(stopped).await;
        round.was_noticed();
        assert_eq!(round.calls.forgiven(), 0);
        has_connections(&server, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_is_too_slow_is_an_outage() {
    let server = Server::redis();
    let proxy = Proxy::to(server.port).await;
    let mut scene = Scene::new("200 ms of latency", &proxy.url()).await;
    for _ in 0..rounds() {
        let slow = async || {
            proxy.set_latency(Duration::from_millis(200));
            sleep(fault()).await;
            proxy.set_latency(Duration::ZERO);
        };
        let round = scene.round(slow).await;
        round.was_noticed();
        assert_eq!(round.calls.forgiven(), 0);
        has_connections(&server, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_is_replaced() {
    let server = Server::redis();
    let proxy = Proxy::to(server.port).await;
    let mut scene = Scene::new("cut connections", &proxy.url()).await;
    for _ in 0..rounds() {
        let round = scene.round(async || proxy.cut()).await;
        assert_eq!(round.calls.forgiven(), 0);
        has_connections(&server, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_half_open_is_given_up() {
    let server = Server::redis();
    let proxy = Proxy::to(server.port).await;
    let mut scene = Scene::new("half-open connections", &proxy.url()).await;
    for _ in 0..rounds() {
        let round = scene.round(async || proxy.silence()).await;
        round.was_noticed();
        assert_eq!(round.calls.forgiven(), 0);
        has_connections(&server, 1).await;
    }
}
