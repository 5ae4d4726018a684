use std::process::Command;
use std::sync::Arc;

use spillgate_policy::{Gate, Policy};
use spillgate_server::{Access, AnyStore, App};

use super::server::{Server, TOKEN, token};

const PAGE: &str = include_str!("../../../../docs/http.md");

/// Commands and what they print, as a page shows them.
fn examples() -> Vec<(String, String)> {
    let mut examples = Vec::<(String, String)>::new();
    let blocks = PAGE.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    for block in blocks {
        for line in block.lines() {
            match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push((command.to_owned(), String::new())),
                (None, Some((command, printed))) => {
                    let is_open = command.matches('\'').count() % 2 == 1;
                    let goes_on = command.ends_with(['\\', '|']) || is_open;
                    let text = if goes_on && printed.is_empty() { command } else { printed };
                    text.push('\n');
                    text.push_str(line);
                }
                (None, None) => panic!("{line}"),
            }
        }
    }
    examples
}

/// A text without what differs from one run to the next: times, and names of reservations.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text.trim();
    while let Some((before, after)) = ["_after\":", "\"reservation\":"]
        .iter()
        .filter_map(|name| rest.split_once(name))
        .min_by_key(|(before, _)| before.len())
    {
        steady.push_str(before);
        let end = after.find([',', '}']).unwrap();
        steady.push_str(if after.starts_with("null") { "null" } else { "some" });
        rest = &after[end..];
    }
    steady + rest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_of_the_page_print_what_it_shows() {
    // As on the page, but nothing is refilled while the examples run.
    let policy = "[[limit]]\nname = 'api'\nquota = '10/h burst 20'\n\
                  [[limit]]\nname = 'login'\nby-name = true\nper = 'user'\nquota = '5/day'\n";
    let gate = Arc::new(
        Gate::with_store(Policy::from_toml(policy).unwrap(), AnyStore::default()).unwrap(),
    );
    let app = App::new(gate, policy).with_access(Access::loopback(token()));
    let server = Server::with(app).await;
    let mut reservation = String::new();
    let shown_id = "1f0c7d9a6b4e3f52a8d0c1b2e3f4a5b6";
    let examples = examples();
    assert!(examples.len() > 15);
    for (command, expected) in examples {
        let here = command.replace("127.0.0.1:8390", &server.address.to_string());
        let here = here.replace(shown_id, &reservation);
        let mut bash = Command::new("bash");
        bash.args(["-c", &here]).env("TOKEN", TOKEN);
        let output = tokio::task::spawn_blocking(move || bash.output()).await.unwrap().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}");
        assert_eq!(
            steady(&printed.replace("10/h", "10/s").replace("5/day", "5/min")),
            steady(&expected),
            "{command}"
        );
        if let Some((_, rest)) = printed.split_once("\"reservation\":\"") {
            reservation = rest.split('"').next().unwrap().to_owned();
        }
    }
}
