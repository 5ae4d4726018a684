//! `spillgate replay` as it is typed.

use crate::common::server::{Home, run, spillgate};

const POLICY: &str = "[server]\nhttp = '127.0.0.1:0'\n\
     [[limit]]\nname = 'login'\nmatch = { path = '/login' }\nquota = '5/min'\n";

/// A folder with a policy, and a log of seven logins of one caller and one of another.
fn home() -> Home {
    let home = Home::new(POLICY);
    let line = |ip: &str| {
        format!(
            "{ip} - - [17/Nov/2025:12:00:00 +0000] \"POST /login HTTP/1.1\" 401 5 \"-\" \"curl/8\"\n"
        )
    };
    std::fs::write(home.path("access.log"), line("203.0.113.7").repeat(7) + &line("203.0.113.8"))
        .unwrap();
    home
}

fn replay(home: &Home, arguments: &[&str]) -> String {
    run(spillgate().current_dir(home.path("")).arg("replay").args(arguments))
}

#[test]
fn a_log_is_replayed_and_reported_in_every_form() {
    let home = home();
    let text =
        replay(&home, &["--policy", "spillgate.toml", "access.log", "--html", "report.html"]);
    assert!(text.contains("access.log (combined)"), "{text}");
    assert!(text.contains("denied                   2  25.00 %"), "{text}");
    let html = std::fs::read_to_string(home.path("report.html")).unwrap();
    assert!(html.contains("<td>ip:203.0.113.7</td><td>2</td>"), "{html}");
    let json = replay(&home, &["--policy", "spillgate.toml", "--json", "access.log"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["allowed"], &json["refused"]), (&6.into(), &2.into()));
    let csv =
        replay(&home, &["-p", "spillgate.toml", "--csv", "--format", "combined", "access.log"]);
    assert!(csv.contains("limit,\"login\",6,2,0\n"), "{csv}");
}

#[test]
fn a_suggestion_is_a_valid_policy_and_denies_nobody_it_was_made_for() {
    let home = home();
    let suggestion = replay(&home, &["--suggest", "--policy", "spillgate.toml", "access.log"]);
    std::fs::write(home.path("new.toml"), &suggestion).unwrap();
    let checked = run(spillgate().arg("check-config").arg(home.path("new.toml")));
    assert!(checked.contains("new.toml: OK"), "{checked}\n{suggestion}");
    let compared = replay(&home, &["-p", "spillgate.toml", "--compare", "new.toml", "access.log"]);
    assert!(compared.contains("newly allowed              2"), "{compared}\n{suggestion}");
    // Without a policy, there is one limit for everything.
    let plain = replay(&home, &["--suggest", "access.log"]);
    assert!(plain.contains("name = \"all\""), "{plain}");
}

#[test]
fn mistakes_are_named() {
    let home = home();
    std::fs::write(home.path("other.log"), "hello\n").unwrap();
    for (arguments, message) in [
        (&["access.log"][..], "--policy <FILE>"),
        (&["-p", "spillgate.toml", "missing.log"], "missing.log cannot be read: No such file"),
        (
            &["-p", "spillgate.toml", "other.log"],
            "other.log: unknown log format. First line: hello",
        ),
        (
            &["-p", "spillgate.toml", "--format", "iis", "other.log"],
            "\"iis\" is no log format; use one of",
        ),
        (
            &["-p", "spillgate.toml", "--zone", "CET", "access.log"],
            "write Z, +02:00, -0500 or the name of a place",
        ),
        (&["--suggest", "--never-denied", "101", "access.log"], "write a number from 0 to 100"),
        (&["-p", "nowhere.toml", "access.log"], "nowhere.toml cannot be read"),
    ] {
        let mut command = spillgate();
        let output =
            command.current_dir(home.path("")).arg("replay").args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(message), "{arguments:?}: {error}");
    }
}
