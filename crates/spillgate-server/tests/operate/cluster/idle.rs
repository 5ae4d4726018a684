//! What a server costs Redis that nobody asks.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use spillgate_testing::program;

use super::{config, metric};
use crate::common::redis::Redis;
use crate::common::server::{Home, until};

const LIMITS: &str = "[[limit]]\nname = 'leased'\nquota = '1000/h burst 1000'\nper = 'ip'\n\
    sharing = 'leased'\n[[limit]]\nname = 'strict'\nquota = '1000/h'\nper = 'ip'\n";

#[test]
fn a_server_that_nobody_asks_calls_redis_once_a_second() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMITS));
    let server = home.start(&[]);
    until("that it knows how many there are", || metric(&server, "spillgate_store_nodes") == 1.0);
    let port = redis.port().to_string();
    let mut monitor =
        program("redis-cli").args(["-p", &port, "monitor"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(monitor.stdout.take().unwrap()).lines();
    // What scripts do is no call.
    let mut calls = lines.map(Result::unwrap).filter(|line| !line.contains(" lua]"));
    assert_eq!(calls.next().as_deref(), Some("OK"));
    let calls: Vec<_> = calls.take(5).collect();
    monitor.kill().unwrap();
    monitor.wait().unwrap();
    let at = |call: &String| call.split(' ').next().unwrap().parse::<f64>().unwrap();
    let took = at(&calls[4]) - at(&calls[0]);
    assert!(took >= 3.9, "within {took} seconds: {calls:?}");
}
