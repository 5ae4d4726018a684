//! Flags go before variables, variables before the file, the file before defaults.

use crate::server::{Home, Server, run, tollgate};

const FILE: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\nlog-level = 'off'\n\
    log-format = 'json'\n[[limit]]\nname = 'api'\nquota = '5/s'\n";

#[test]
fn the_closest_word_counts() {
    let home = Home::new(FILE);
    let start = |variable: Option<&str>, flags: &[&str]| {
        let mut command = tollgate();
        command.args(["serve", "-c"]).arg(home.path("tollgate.toml")).args(flags);
        if let Some(level) = variable {
            command.env("TOLLGATE_LOG_LEVEL", level);
        }
        Server::start(command).stop()
    };
    assert_eq!(start(None, &[]), "", "the file says: no log");
    let json = start(Some("info"), &[]);
    assert!(json.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{json}");
    assert!(json.contains("\"message\":\"started\""), "{json}");
    assert_eq!(start(Some("info"), &["--log-level", "error"]), "");
    let text = start(Some("info"), &["--log-format", "text"]);
    assert!(text.contains("INFO started version="), "{text}");
}

#[test]
fn every_setting_of_the_file_has_a_flag_and_a_variable_of_the_same_name() {
    let help = run(tollgate().args(["serve", "--help"]));
    let flags: Vec<_> = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--")?.split([' ', '[', '=']).next())
        .filter(|flag| !["help", "config"].contains(flag))
        .collect();
    assert!(flags.len() > 20, "{flags:?}");
    // Whatever is unknown is told, with all that is known.
    let home = Home::new("[server]\nzzzzzzzzzzzz = 1\n");
    let checked = tollgate().arg("check-config").arg(home.path("tollgate.toml")).output().unwrap();
    let told = String::from_utf8(checked.stderr).unwrap();
    let known = told.split("known are ").nth(1).unwrap().trim();
    let mut known: Vec<_> = known.split(", ").collect();
    for flag in &flags {
        let variable = format!("[env: TOLLGATE_{}", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&variable), "{variable}");
    }
    let mut flags = flags;
    flags.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, flags);
}

#[test]
fn a_listener_that_is_off_is_not_there() {
    let home = Home::new(FILE);
    let server = home.start(&["--resp", "off"]);
    assert!(!server.banner.contains("redis"), "{}", server.banner);
    server.stop();
}
