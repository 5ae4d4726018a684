//! The other commands.

use std::io::Write;
use std::process::{Command, Stdio};

use spillgate_testing::program;

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
        (&["--config", file], 2, "<--path <PATH>|--domain <DOMAIN>|--json <JSON>>"),
        (&["--config", file, "--domain", "edge"], 2, "--descriptor"),
        (&["--config", file, "--descriptor", "a=1"], 2, "--domain"),
        (&["--config", file, "--domain", "e", "--descriptor", "a"], 2, "write \"key=value\""),
        (&["--config", file, "--domain", "", "--descriptor", "a=1"], 1, "must not be empty"),
        (&["--config", file, "--domain", "e", "--path", "/"], 2, "cannot be used with"),
        (&["--config", file, "--json", "{\"domain\":\"e\"}"], 1, "one of {\"request\"} and"),
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
    for command in [
        "",
        "serve",
        "check-config",
        "diff",
        "explain",
        "replay",
        "list",
        "override",
        "schema",
        "completions",
        "man",
    ] {
        let mut help = spillgate();
        if !command.is_empty() {
            help.arg(command);
        }
        let help = run(help.arg("--help"));
        assert!(help.contains(&format!("\n  spillgate {command}")), "{help}");
    }
}

const RULES: &str = "domain: edge\ndescriptors:\n  - key: remote_address\n    rate_limit: \
    { unit: hour, requests_per_unit: 3 }\n  - key: remote_address\n    value: 192.0.2.10\n    \
    rate_limit: { unlimited: true }\n  - key: route\n    value: login\n    descriptors:\n      \
    - key: remote_address\n        shadow_mode: true\n        rate_limit: { unit: day, \
    requests_per_unit: 5, name: logins }\n";

/// A folder with rules of Envoy.
fn with_rules(config: &str) -> Home {
    let home = Home::new(config);
    std::fs::create_dir(home.path("rules")).unwrap();
    std::fs::write(home.path("rules/edge.yaml"), RULES).unwrap();
    home
}

#[test]
fn rules_of_envoy_are_validated_alone() {
    let home = with_rules("");
    for path in ["rules", "rules/edge.yaml"] {
        let shown = run(spillgate().arg("check-config").arg(home.path(path)));
        assert!(
            shown.contains(&format!("{path}: OK\n  domain edge: 3 rules, 1 of them unlimited\n"))
        );
        let rows: Vec<Vec<_>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        let rule = "edge/remote_address";
        let row = [rule, "3/h", "fixed-window", "descriptor:remote_address", "enforce", "100000"];
        assert!(rows.contains(&row.to_vec()), "{shown}");
        assert!(!shown.contains("http") && !shown.contains("quota-of-call"), "{shown}");
    }
    std::fs::write(home.path("rules/other.yml"), "domain: [\n").unwrap();
    std::fs::write(home.path("rules/third.yaml"), "domain: x\nlimits: 5\n").unwrap();
    std::fs::write(home.path("rules/binary.yaml"), [0xff, 0, 1]).unwrap();
    let output = spillgate().arg("check-config").arg(home.path("rules")).output().unwrap();
    let problems = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for expected in ["other.yml:", "third.yaml:2: ", "binary.yaml: it is not UTF-8"] {
        assert!(problems.contains(expected), "{problems}");
    }
}

#[test]
fn descriptors_are_explained_by_rules_by_a_file_and_by_a_server() {
    let home = with_rules(
        "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\ngrpc = '127.0.0.1:0'\n\
         envoy-config = 'rules'\n[[limit]]\nname = 'all'\nmatch = { domain = 'edge' }\n\
         per = 'global'\nquota = '100/s'\n",
    );
    let call = [
        "--domain",
        "edge",
        "--descriptor",
        "remote_address=203.0.113.7",
        "--descriptor",
        "route=login,remote_address=203.0.113.7",
    ];
    let by_file = |path: &str, more: &[&str]| {
        let mut explain = spillgate();
        run(explain.args(["explain", "--config"]).arg(home.path(path)).args(call).args(more))
    };
    let rules = by_file("rules", &[]);
    assert!(rules.starts_with("answer   allowed\ndomain   \"edge\"\n"), "{rules}");
    assert!(rules.contains("limit    edge/remote_address: passes\n"), "{rules}");
    assert!(rules.contains("3 of 3 left"), "{rules}");
    assert!(rules.contains("limited, by the rule called \"logins\"\n"), "{rules}");
    assert!(rules.contains("edge/route=login/remote_address (shadow): passes"), "{rules}");
    assert!(!rules.contains("203.0.113.7"), "{rules}");
    let file = by_file("spillgate.toml", &["--hits", "4"]);
    assert!(file.starts_with("answer   denied\n"), "{file}");
    assert!(file.contains("limit    edge/remote_address: denies"), "{file}");
    assert!(file.contains("limit    all: passes"), "{file}");

    let server = home.start(&[]);
    let mut explain = spillgate();
    explain.args(["explain", "--server", &server.url("")]).args(call);
    let shown = run(explain.env("SPILLGATE_TOKEN", server.token()));
    assert!(shown.starts_with("answer   allowed\n") && shown.contains("3 of 3 left"), "{shown}");
    let again = run(&mut explain);
    let without_keys = |text: &str| {
        let words = text.split_whitespace().filter(|word| !word.contains('#'));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(without_keys(&shown), without_keys(&again), "nothing is spent");
    server.stop();
}

#[test]
fn every_subcommand_has_a_manual_page_with_all_its_flags() {
    let home = Home::new("");
    run(spillgate().args(["man", "--dir"]).arg(home.path("man")));
    let page = |name: &str| {
        let file = home.path(&format!("man/{name}.1"));
        std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    // As help lists them, so that a new one is among them.
    let commands = |help: &str| -> Vec<String> {
        let rows = help.split("Commands:\n").nth(1).unwrap_or_default();
        let rows = rows.lines().take_while(|row| !row.is_empty());
        let names = rows.filter_map(|row| row.split_whitespace().next());
        names.filter(|name| *name != "help").map(str::to_owned).collect()
    };
    let mut left: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = left.pop() {
        let help = run(spillgate().args(&command).arg("--help"));
        let name = std::iter::once("spillgate".to_owned()).chain(command.clone());
        let name = name.collect::<Vec<_>>().join("-");
        let shown = page(&name).replace("\\-", "-");
        for line in help.lines() {
            let flags = line.trim().split(|it: char| !it.is_ascii_alphanumeric() && it != '-');
            for flag in flags.take(3).filter(|word| word.starts_with("--")) {
                assert!(shown.contains(flag), "{name}: {flag}");
            }
        }
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"] {
            assert!(
                shown.contains(&format!(".SH \"{section}\""))
                    || shown.contains(&format!(".SH {section}")),
                "{name}: {section}"
            );
        }
        let mut man = program("man");
        let file = home.path(&format!("man/{name}.1"));
        let output = man.args(["--warnings", "-E", "UTF-8", "-l"]).arg(file).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaints.is_empty(), "{name}: {complaints}");
        left.extend(
            commands(&help)
                .into_iter()
                .map(|below| command.iter().cloned().chain([below]).collect()),
        );
        seen += 1;
    }
    assert_eq!(std::fs::read_dir(home.path("man")).unwrap().count(), seen);
    assert!(seen > 15, "{seen}");
    assert!(page("spillgate-serve").contains("SPILLGATE_TOKEN"));
    assert_eq!(run(spillgate().args(["man", "ban", "add"])), page("spillgate-ban-add"));
    let output = spillgate().args(["man", "bna"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("there is no page spillgate-bna; there are spillgate, "), "{message}");
}
