//! What a reload would change, and for whom.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::common::server::{Home, spillgate};

const OLD: &str = "block = ['10.0.0.0/8', 'key:hush-hush']\n[server]\nhttp = '127.0.0.1:0'\n\
    [identity]\napi-key = { header = 'x-api-key', accept = 'keys' }\n\
    [[limit]]\nname = 'api'\nquota = '10/s'\n\
    [[limit]]\nname = 'login'\nmatch = { path = '/login' }\nper = 'ip'\nquota = '5/min'\n";

fn diff(arguments: &[&Path]) -> Output {
    spillgate()
        .arg("diff")
        .args(arguments)
        .env("SPILLGATE_TOKEN", "0123456789abcdef")
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8(text).unwrap()
}

/// A folder with a configuration and the file of keys that it names.
fn home(config: &str) -> Home {
    let home = Home::new(config);
    std::fs::write(home.path("keys"), "hush-key\n").unwrap();
    home
}

#[test]
fn what_changes_is_told_with_whom_it_affects_and_without_secrets() {
    let old = home(OLD);
    let new = OLD
        .replace("'10/s'", "'5/s'\nmode = 'shadow'")
        .replace("'key:hush-hush'", "'user:hush-user'")
        .replace("per = 'ip'", "per = 'global'")
        .replace("http = '127.0.0.1:0'", "http = '127.0.0.1:1'\ntoken = 'hush-hush-hush-hush'")
        .replace("[identity]", "[identity]\ntrusted-proxies = ['10.1.0.0/16']");
    let new = home(&new);
    std::fs::write(new.path("keys"), "hush-key\nhush-other\n").unwrap();
    let files = [&old, &new].map(|home| home.path("spillgate.toml"));
    let output = diff(&[&files[0], &files[1]]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for line in [
        "! IDENTITY: callers may be taken for others than before",
        "  ~ identity.trusted-proxies: 0 ranges → 1 range\n      + 10.1.0.0/16",
        "x-api-key with one of 1 known value → x-api-key with one of 2 known values\n      + #",
        "  ! who has another name now starts afresh under api\n",
        "  ~ api: for every caller, shadow: refuses nobody\n",
        "      ▼ quota: 10/s → 5/s, stricter\n      ▲ mode: enforce → shadow, looser\n",
        "      = callers keep what they have spent\n",
        "      ▼ per: ip → global, stricter\n",
        "      ! every caller starts afresh\n",
        "  ~ block: 1 added, 1 removed\n      + user:#",
        "  ! server.http: 127.0.0.1:0 → 127.0.0.1:1\n",
        "limits: 2 changed, callers start afresh under 1; 1 setting needs a restart\n",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(!shown.contains("hush") && !shown.contains('\u{1b}'), "{shown}");
    let output = diff(&["--json".as_ref(), &files[0], &files[1]]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json["policy"]["restarted"], serde_json::json!(["login"]));
    assert_eq!(json["settings"][0]["setting"], "server.http");
    assert_eq!(json["settings"][0]["needs_restart"], true);
    assert!(!json.to_string().contains("hush"), "{json}");
}

#[test]
fn the_same_configuration_is_no_difference_wherever_it_is() {
    let (old, new) = (home(OLD), home(OLD));
    // Written otherwise, and the default is written out.
    let other =
        OLD.replace("quota = '10/s'", "algorithm = \"token-bucket\"\nquota = \"10 per 1 s\"");
    std::fs::write(new.path("spillgate.toml"), format!("# A comment.\n{other}")).unwrap();
    let files = [&old, &new].map(|home| home.path("spillgate.toml"));
    for pair in [[&files[0], &files[1]], [&files[0], &files[0]]] {
        let output = diff(&pair.map(PathBuf::as_path));
        let shown = text(&output);
        assert_eq!(output.status.code(), Some(0), "{shown}");
        assert!(shown.ends_with(": no difference\n"), "{shown}");
    }
}

#[test]
fn rules_of_envoy_are_compared_as_folders_and_as_files() {
    let rules = |requests: u32| {
        let home = Home::new("");
        let rule = format!(
            "domain: edge\ndescriptors:\n  - key: path\n    rate_limit: {{ unit: minute, requests_per_unit: {requests} }}\n"
        );
        std::fs::create_dir(home.path("rules")).unwrap();
        std::fs::write(home.path("rules/edge.yaml"), rule).unwrap();
        home
    };
    let (five, same, nine) = (rules(5), rules(5), rules(9));
    let (folder, file) = ("rules", "rules/edge.yaml");
    for (one, other) in [(folder, folder), (folder, file), (file, folder)] {
        let output = diff(&[&five.path(one), &same.path(other)]);
        assert_eq!(output.status.code(), Some(0), "{one} {other}: {}", text(&output));
    }
    let output = diff(&[&five.path(folder), &nine.path(folder)]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(shown.contains("~ edge/path: for descriptors that end at edge/path"), "{shown}");
    assert!(shown.contains("▲ quota: 5/min → 9/min, looser"), "{shown}");
    assert!(!shown.contains("SETTINGS"), "{shown}");
}

#[test]
fn what_cannot_be_compared_is_an_error_that_names_the_file() {
    let home = home(OLD);
    let good = home.path("spillgate.toml");
    std::fs::write(home.path("bad.toml"), "[[limit]]\nname = 'api'\nqouta = '5/s'\n").unwrap();
    std::fs::write(home.path("binary.toml"), [0xff, 0xfe, 0, 1, 2]).unwrap();
    std::fs::write(home.path("huge.toml"), "#".repeat((16 << 20) + 1)).unwrap();
    std::fs::create_dir(home.path("empty")).unwrap();
    let bomb: String = (1..60).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
        let above = level - 1;
        format!("{text}a{level}: &a{level} [*a{above}, *a{above}, *a{above}, *a{above}]\n")
    });
    std::fs::write(home.path("bomb.yaml"), format!("domain: edge\n{bomb}")).unwrap();
    for (file, expected) in [
        ("missing.toml", "missing.toml cannot be read"),
        ("bad.toml", "bad.toml:3:1: limit \"api\": unknown key \"qouta\""),
        ("binary.toml", "binary.toml cannot be read: stream did not contain valid UTF-8"),
        ("huge.toml", "it has more than 16 MiB"),
        ("empty", "empty has no file *.yaml or *.yml"),
        ("missing.yaml", "cannot be read"),
        ("bomb.yaml", "bomb.yaml:"),
    ] {
        let other = home.path(file);
        for pair in [[&good, &other], [&other, &good]] {
            let output = diff(&pair.map(PathBuf::as_path));
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{file}: {message}");
            assert!(message.contains(expected), "{file}: {message}");
            assert!(output.stdout.is_empty());
        }
    }
    let output = spillgate().arg("diff").arg(&good).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "one file is no comparison");
}
