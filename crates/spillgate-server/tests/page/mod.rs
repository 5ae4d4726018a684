//! The live page in a real browser, against a real server.

mod accounts;
mod browser;
mod connection;
mod contrast;
mod hostile;
mod keyboard;
mod look;
mod modules;
mod numbers;
mod operator;
mod parts;
mod proxy;
mod tab;

use crate::common::server::{Home, Server};

/// Two limits by name and one for requests, on free ports.
const POLICY: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n\
    [[limit]]\nname = 'api'\nquota = '1/h burst 5'\n\
    [[limit]]\nname = 'trial'\nper = 'ip'\nquota = '1/h burst 2'\nmode = 'shadow'\n\
    [[limit]]\nname = 'login'\nby-name = true\nper = 'user'\nquota = '2/h'\n";

fn start() -> (Home, Server) {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    (home, server)
}

/// A request by an address, as a body of `/v1/check`.
fn by(ip: &str) -> String {
    format!("{{\"request\":{{\"path\":\"/\",\"ip\":\"{ip}\"}}}}")
}
