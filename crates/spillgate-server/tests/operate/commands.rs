//! The other commands.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::server::{Home, run, spillgate};
use crate::operate::clients::Resp;

const POLICY: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n[identity]\n\
    api-key = { header = 'x-api-key', accept = ['k1'] }\n[[limit]]\nname = 'login'\n\
    match = { path = '/login', method = 'POST' }\nper = 'ip'\nquota = '5/min'\n[[limit]]\n\
    name = 'all'\nper = 'global'\nquota = '1000/s'\nmode = 'shadow'\n";

#[test]
fn a_file_that_is_right_is_shown_as_a_table() {
    let home = Home::new(POLICY);
    let shown = run(spillgate().arg("check-config").arg(home.path("spillgate.toml")));
    let rows: Vec<Vec<_>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(shown.contains("spillgate.toml: OK\n"), "{shown}");
    assert!(rows.contains(&vec!["login", "5/min", "token-bucket", "ip", "enforce", "100000"]));
    assert!(
        rows.contains(&vec!["all", "1000/s", "token-bucket", "global", "shadow", "1"]),
        "{shown}"
    );
}

#[test]
fn a_request_is_explained_by_a_file_and_by_a_server() {
    let home = Home::new(POLICY);
    let request = ["--method", "POST", "--path", "/login?x=1", "--ip", "203.0.113.7"];
    let by_file = |arguments: &[&str]| {
        let file = home.path("spillgate.toml");
        // The variable may be set for other commands.
        let mut explain = spillgate();
        explain.env("SPILLGATE_TOKEN", "0123456789abcdef").args(["explain", "--config"]);
        run(explain.arg(file).args(arguments))
    };
    let fresh = by_file(&request);
    assert!(fresh.starts_with("answer   allowed\n"), "{fresh}");
    assert!(fresh.contains("5 of 5"), "{fresh}");
    let keyed = by_file(&["--path", "/", "--header", "X-Api-Key: k1"]);
    assert!(keyed.contains("named by the header x-api-key"), "{keyed}");
    let json = "{\"request\":{\"path\":\"/\",\"ip\":\"203.0.113.7\"}}";
    let same = by_file(&["--path", "/", "--ip", "203.0.113.7"]);
    assert_eq!(by_file(&["--json", json]), same);

    let server = home.start(&[]);
    let mut client = Resp::connect(server.resp).unwrap();
    for _ in 0..5 {
        assert_eq!(client.ask("SG.CHECK login 203.0.113.7").unwrap()[0], 0);
    }
    let url = server.url("");
    let by_server = |token: &str| {
        let mut explain = spillgate();
        explain.args(["explain", "--server", &url]).args(request).env("SPILLGATE_TOKEN", token);
        explain
    };
    let spent = run(&mut by_server(server.token()));
    assert!(spent.starts_with("answer   denied\n"), "{spent}");
    assert!(spent.contains("0 of 5"), "{spent}");
    let refused = by_server("wrong").output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("the token is missing or wrong; set SPILLGATE_TOKEN"), "{message}");
    server.stop();
}

#[test]
fn what_cannot_be_explained_is_told() {
    let home = Home::new(POLICY);
    let file = home.path("spillgate.toml");
    let file = file.to_str().unwrap();
    for (arguments, code, expected) in [
        (&["--path", "/"][..], 2, "<--config <FILE>|--server <URL>>"),
        (&["--config", file], 2, "<--path <PATH>|--json <JSON>>"),
        (&["--config", "missing", "--path", "/"], 1, "missing cannot be read"),
        (&["--config", file, "--path", "/", "--header", "x"], 2, "write \"name: value\""),
        (&["--config", file, "--path", "/", "--method", "G T"], 1, "invalid method"),
        (&["--config", file, "--json", "{\"requets\":1}"], 1, "requets"),
        (&["--server", "127.0.0.1:1", "--path", "/"], 1, "write its URL"),
        (&["--server", "http://127.0.0.1:1", "--path", "/"], 1, "cannot reach 127.0.0.1:1"),
        (&["--server", "https://127.0.0.1:1", "--path", "/"], 1, "add --ca FILE"),
    ] {
        let output = spillgate().arg("explain").args(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{message}");
        assert!(message.contains(expected), "{arguments:?}\n{message}");
    }
}

#[test]
fn completions_are_scripts_that_bash_understands() {
    let script = run(spillgate().args(["completions", "bash"]));
    assert!(script.contains("check-config") && script.contains("--snapshot-interval"));
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(run(spillgate().args(["completions", shell])).contains("spillgate"), "{shell}");
    }
}

#[test]
fn help_teaches_by_example() {
    for command in
        ["", "serve", "check-config", "explain", "replay", "list", "override", "completions"]
    {
        let mut help = spillgate();
        if !command.is_empty() {
            help.arg(command);
        }
        let help = run(help.arg("--help"));
        assert!(help.contains(&format!("\n  spillgate {command}")), "{help}");
    }
}
