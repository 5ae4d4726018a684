//! A log that cannot be written is nobody's trouble but its reader's.

use std::process::Command;

use spillgate_testing::program;

use crate::common::server::{Home, Server, run, spillgate};

#[test]
fn requests_are_answered_although_the_disk_of_the_log_is_full() {
    let home = Home::new(
        "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\n[[limit]]\nname = 'api'\nquota = '1/h'\n",
    );
    let mut command = Command::new("sh");
    command.env("SPILLGATE_SHUTDOWN_DELAY", "1ms");
    command.args(["-c", "exec \"$0\" serve --config \"$1\" 2>/dev/full"]);
    command.arg(spillgate().get_program()).arg(home.path("spillgate.toml"));
    let server = Server::start(command);
    let asked = ["x-original-uri: /", "x-original-method: GET", "x-original-host: a"];
    let ask = || {
        let mut curl = program("curl");
        curl.args(["-s", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code}"]);
        for header in asked.into_iter().chain(["x-real-ip: 192.0.2.1"]) {
            curl.args(["-H", header]);
        }
        run(curl.arg(server.url("/auth")))
    };
    assert_eq!([ask(), ask(), ask()], ["200", "429", "429"]);
    server.stop();
}
