//! Another file, while requests are being decided.

use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;

use crate::common::server::{Home, Server, run, until};
use crate::operate::clients::{Http, Resp, spent};

const SERVER: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n";

fn with_burst(burst: i64) -> String {
    format!("{SERVER}[[limit]]\nname = 'api'\nquota = '1/h burst {burst}'\n")
}

pub(super) fn reloads(server: &Server, outcome: &str) -> u64 {
    let metrics = server.get("/metrics");
    let name = format!("spillgate_reloads_total{{outcome=\"{outcome}\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
    count.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

#[test]
fn reloads_under_load_lose_no_request_and_forgive_nobody() {
    let home = Home::new(&with_burst(500_000));
    let server = home.start(&[]);
    let (http, resp) = (server.http, server.resp);
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let is_over = Arc::clone(&is_over);
            spawn(move || {
                let mut allowed = 0;
                if number % 2 == 0 {
                    let mut client = Resp::connect(resp).unwrap();
                    while !is_over.load(Ordering::Relaxed) {
                        let [limited, ..] = client.ask("SG.CHECK api 203.0.113.7").unwrap();
                        allowed += i64::from(limited == 0);
                    }
                } else {
                    let mut client = Http::connect(http).unwrap();
                    while !is_over.load(Ordering::Relaxed) {
                        allowed += i64::from(client.check("api", "203.0.113.7").unwrap());
                    }
                }
                allowed
            })
        })
        .collect();
    for (round, burst) in [600_000, 900_000, 700_000].into_iter().enumerate() {
        home.write(&with_burst(burst));
        server.signal("HUP");
        let expected = round as u64 + 1;
        // The change itself is noticed as well, sooner or later.
        until("a reload", || reloads(&server, "accepted") >= expected);
        let limit = Resp::connect(resp).unwrap().ask("SG.CHECK api 203.0.113.7 0").unwrap()[1];
        assert_eq!(limit, burst);
        let look = "SG.CHECK api 203.0.113.7 0";
        until("more load", || spent(resp, look) > 500 * i64::try_from(expected).unwrap());
    }
    is_over.store(true, Ordering::Relaxed);
    let allowed: i64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert_eq!(spent(resp, "SG.CHECK api 203.0.113.7 0"), allowed);
    assert_eq!(reloads(&server, "refused"), 0);
    server.stop();
}

#[test]
fn a_file_that_is_changed_back_right_after_a_signal_is_taken_up_too() {
    let home = Home::new(&with_burst(10));
    let server = home.start(&[]);
    home.write(&with_burst(20));
    server.signal("HUP");
    until("the reload", || limit_of(&server) == 20);
    home.write(&with_burst(10));
    until("the next one", || limit_of(&server) == 10);
    server.stop();
}

#[test]
fn a_pipe_in_place_of_the_file_is_refused_and_nobody_waits_for_it() {
    let home = Home::new(&with_burst(10));
    let server = home.start(&[]);
    std::fs::remove_file(home.path("spillgate.toml")).unwrap();
    run(Command::new("mkfifo").arg(home.path("spillgate.toml")));
    server.signal("HUP");
    until("the refusal", || reloads(&server, "refused") > 0);
    std::fs::remove_file(home.path("spillgate.toml")).unwrap();
    home.write(&with_burst(30));
    until("the next reload", || limit_of(&server) == 30);
    server.stop();
}

fn limit_of(server: &Server) -> i64 {
    Resp::connect(server.resp).unwrap().ask("SG.CHECK api 203.0.113.7 0").unwrap()[1]
}

#[test]
fn a_changed_file_is_taken_up_by_itself_also_behind_a_link_that_moves() {
    let home = Home::new("");
    // As a ConfigMap does it: a link to a folder that is swapped.
    for (folder, burst) in [("one", 10), ("two", 20)] {
        std::fs::create_dir(home.path(folder)).unwrap();
        std::fs::write(home.path(folder).join("spillgate.toml"), with_burst(burst)).unwrap();
    }
    let link = |folder: &str| {
        let _ = std::fs::remove_file(home.path("next"));
        std::os::unix::fs::symlink(folder, home.path("next")).unwrap();
        std::fs::rename(home.path("next"), home.path("data")).unwrap();
    };
    std::fs::remove_file(home.path("spillgate.toml")).unwrap();
    link("one");
    std::os::unix::fs::symlink("data/spillgate.toml", home.path("spillgate.toml")).unwrap();
    let server = home.start(&[]);
    let limit =
        || Resp::connect(server.resp).unwrap().ask("SG.CHECK api 203.0.113.7 0").unwrap()[1];
    assert_eq!(limit(), 10);
    link("two");
    until("the new burst", || limit() == 20);
    server.stop();
}

#[test]
fn a_bad_reload_is_refused_and_shown_and_the_old_policy_stays() {
    let home = Home::new(&with_burst(10));
    let server = home.start(&[]);
    home.write(&format!(
        "{SERVER}max-conections = 5\n[[limit]]\nname = 'api'\nquota = '10/fortnight'\n"
    ));
    until("the refusal", || reloads(&server, "refused") == 1);
    assert_eq!(
        Resp::connect(server.resp).unwrap().ask("SG.CHECK api 203.0.113.7 0").unwrap()[1],
        10
    );
    let ready = server.get("/readyz");
    for told in ["spillgate.toml:4:1", "did you mean \\\"max-connections\\\"", "fortnight"] {
        assert!(ready.contains(told), "{ready}");
    }
    assert!(server.get("/metrics").contains("spillgate_reload_failed 1"));

    home.write(&with_burst(30));
    until("the next one", || reloads(&server, "accepted") == 1);
    assert!(!server.get("/readyz").contains("fortnight"));
    assert_eq!(
        Resp::connect(server.resp).unwrap().ask("SG.CHECK api 203.0.113.7 0").unwrap()[1],
        30
    );
    let log = server.stop();
    assert_eq!(log.matches("reload refused").count(), 2, "both problems are told\n{log}");
}

#[test]
fn what_needs_a_restart_is_told() {
    let home = Home::new(&with_burst(10));
    let server = home.start(&[]);
    let changed = with_burst(20)
        .replace("[[limit]]", "max-connections = 5\nshutdown-timeout = '1s'\n[[limit]]");
    home.write(&changed);
    until("the reload", || reloads(&server, "accepted") == 1);
    let mut socket = std::net::TcpStream::connect(server.resp).unwrap();
    let log = server.stop();
    let changed = "reloaded changed=[api: 1/h burst 10 → 1/h burst 20]";
    let needed = "changed settings need a restart settings=[server.max-connections, server.shutdown-timeout]";
    assert!(log.contains(changed) && log.contains(needed), "{log}");
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_reload_says_what_changed_or_that_nothing_did() {
    let home = Home::new(&with_burst(10));
    let server = home.start(&[]);
    server.signal("HUP");
    until("the first reload", || reloads(&server, "accepted") == 1);
    let limit = "[[limit]]\nname = 'new'\nquota = '5/s'\n";
    let text = format!("block = ['192.0.2.1']\n{}{limit}", with_burst(20));
    home.write(
        &text.replace("[[limit]]\nname = 'api'", "public-metrics = true\n[[limit]]\nname = 'api'"),
    );
    until("the second reload", || reloads(&server, "accepted") == 2);
    let log = server.stop();
    let changed = "reloaded changed=[api: 1/h burst 10 → 1/h burst 20] added=[new] \
                   lists=[block: 1 added, 0 removed] settings=[server.public-metrics]";
    for line in ["reloaded: nothing changed in the configuration file", changed] {
        assert!(log.contains(line), "{line}\n{log}");
    }
    assert!(!log.contains("need a restart"), "{log}");
}
