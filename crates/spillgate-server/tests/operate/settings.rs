//! Precedence: flag, environment variable, file, default.

use crate::common::server::{Home, Server, run, spillgate};

const FILE: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\nlog-level = 'off'\n\
    log-format = 'json'\n[[limit]]\nname = 'api'\nquota = '5/s'\n";

#[test]
fn the_closest_word_counts() {
    let home = Home::new(FILE);
    let start = |variable: Option<&str>, flags: &[&str]| {
        let mut command = spillgate();
        command.args(["serve", "-c"]).arg(home.path("spillgate.toml")).args(flags);
        if let Some(level) = variable {
            command.env("SPILLGATE_LOG_LEVEL", level);
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
    let help = run(spillgate().args(["serve", "--help"]));
    let flags: Vec<_> = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--")?.split([' ', '[', '=']).next())
        .filter(|flag| !["help", "config"].contains(flag))
        .collect();
    assert!(flags.len() > 20, "{flags:?}");
    // Whatever is unknown is told, with all that is known.
    let known = |table: &str| {
        let home = Home::new(&format!("[{table}]\nzzzzzzzzzzzz = 1\n"));
        let mut check = spillgate();
        let checked = check.arg("check-config").arg(home.path("spillgate.toml")).output().unwrap();
        let text_shown = String::from_utf8(checked.stderr).unwrap();
        let known = text_shown.split("known are ").nth(1).unwrap().trim().to_owned();
        known.split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    let of_store = known("store").into_iter().map(|key| match key.as_str() {
        "url" => "store".to_owned(),
        key => format!("store-{key}"),
    });
    let mut known: Vec<_> = known("server").into_iter().chain(of_store).collect();
    for flag in &flags {
        let variable = format!("[env: SPILLGATE_{}", flag.to_uppercase().replace('-', "_"));
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

#[test]
fn what_is_beyond_its_range_is_refused_wherever_it_is_given() {
    let cases = [
        ("max-connections", "0", "max-connections is 0; write at least 1"),
        (
            "max-connections",
            "9999999999",
            "max-connections is 9999999999; write at most 4294967296",
        ),
        ("throttle-capacity", "0", "throttle-capacity is 0; write at least 1"),
        ("max-resp-buffer-bytes", "1", "max-resp-buffer-bytes is 1; write at least 1048576"),
        ("max-reservations", "0", "max-reservations is 0; write at least 1"),
        ("max-header-bytes", "1", "max-header-bytes is 1; write at least 8192"),
        ("max-header-bytes", "9999999", "max-header-bytes is 9999999; write at most 1048576"),
        ("max-body-bytes", "0", "max-body-bytes is 0; write at least 1"),
        (
            "max-body-bytes",
            "99999999999",
            "max-body-bytes is 99999999999; write at most 1073741824",
        ),
        ("snapshot-interval", "1ns", "snapshot-interval is \"1ns\"; write at least 100ms"),
        ("http-idle-timeout", "99ms", "http-idle-timeout is \"99ms\"; write at least 100ms"),
        ("resp-idle-timeout", "5us", "resp-idle-timeout is \"5us\"; write at least 100ms"),
        ("io-timeout", "1ms", "io-timeout is \"1ms\"; write at least 100ms"),
    ];
    for (key, value, expected) in cases {
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let written = if is_number { value.to_owned() } else { format!("'{value}'") };
        let table = format!("[server]\n{key} = {written}\n");
        let (text_shown, plain) = (Home::new(&table), Home::new(FILE));
        let variable = format!("SPILLGATE_{}", key.to_uppercase().replace('-', "_"));
        let flag = format!("--{key}");
        let check = |home: &Home| {
            let mut check = spillgate();
            check.arg("check-config").arg(home.path("spillgate.toml"));
            check
        };
        let in_file = check(&text_shown).output().unwrap();
        let in_variable = check(&plain).env(&variable, value).output().unwrap();
        let as_flag = check(&plain).args([&flag, value]).output().unwrap();
        for refused in [in_file, in_variable, as_flag] {
            let text_shown = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(1), "{key} {value}: {text_shown}");
            assert!(
                text_shown.starts_with("spillgate: ") && text_shown.lines().count() == 1,
                "{text_shown}"
            );
            assert!(text_shown.trim_end().ends_with(expected), "{text_shown}");
        }
    }
}

#[test]
fn a_server_without_the_redis_protocol_keeps_no_keys_for_it() {
    let home = Home::new(FILE);
    let metric = "\nspillgate_evictions_total{limit=\"cl.throttle\"} ";
    let (with, without) = (home.start(&[]), home.start(&["--resp", "off"]));
    assert!(with.get("/metrics").contains(metric));
    assert!(!without.get("/metrics").contains(metric));
    // A million keys of 26 bytes.
    let (with, without) = (with.memory("VmSize:"), without.memory("VmSize:"));
    assert!(with > without + 20_000_000, "{with} {without}");
}

#[test]
fn what_a_restart_with_the_redis_protocol_off_finds_in_a_snapshot_does_no_harm() {
    let home = Home::new(FILE);
    let state = home.path("state").display().to_string();
    let server = home.start(&["--snapshot", &state]);
    crate::operate::clients::Resp::connect(server.resp)
        .unwrap()
        .ask("CL.THROTTLE k 5 1 3600")
        .unwrap();
    server.stop();
    let server = home.start(&["--snapshot", &state, "--resp", "off", "--log-level", "info"]);
    let log = server.stop();
    assert!(!log.contains("ERROR"), "{log}");
}

/// A shell that lets a server open so many files: at first, and if it asks for more.
fn with_files(soft: u32, hard: u32, arguments: &str) -> Server {
    let spillgate = spillgate();
    let program = spillgate.get_program().display();
    let mut shell = std::process::Command::new("sh");
    shell.env("SPILLGATE_SHUTDOWN_DELAY", "1ms");
    shell.arg("-c").arg(format!(
        "ulimit -Sn {soft} && ulimit -Hn {hard} && exec {program} serve --http 127.0.0.1:0 \
         --resp 127.0.0.1:0 {arguments}"
    ));
    Server::start(shell)
}

#[test]
fn open_files_are_mentioned_only_if_there_are_too_few_for_the_clients_that_were_asked_for() {
    let files = |server: &Server| {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u32>().unwrap()
    };
    for (hard, arguments) in [(4096, ""), (4096, "--max-connections 1500"), (1024, "")] {
        let server = with_files(512, hard, arguments);
        assert_eq!(files(&server), hard, "as many as the system lets it have");
        let log = server.stop();
        assert!(!log.contains("files") && !log.contains("WARN"), "{hard} {arguments}: {log}");
    }
    let log = with_files(512, 1024, "--max-connections 1500").stop();
    let expected = "open-file limit 1024 is below the 3320 needed for 1500 connections per \
                    protocol; raise it (systemd: LimitNOFILE=, Docker: --ulimit nofile=, shell: \
                    ulimit -Hn), or configure at most 352 connections";
    assert!(log.contains("WARN") && log.contains(expected), "{log}");
}
