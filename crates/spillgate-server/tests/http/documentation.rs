use std::process::Command;

use super::server::{Server, TOKEN};

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

/// A text without what differs from one run to the next: times, and names of reservations and permits.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text.trim();
    let changing =
        ["_after\":", "_in\":", "\"expires\":", "\"since\":", "\"reservation\":", "\"permit\":"];
    while let Some((before, after)) = changing
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
    spillgate_testing::needs(&["curl"]);
    // As on the page, but nothing is refilled while the examples run.
    let policy = "[[limit]]\nname = 'api'\nquota = '10/h burst 20'\n\
                  [[limit]]\nname = 'login'\nby-name = true\nper = 'user'\nquota = '5/day'\n";
    let server = Server::with_policy(policy).await;
    // Of the sections about permits, reports and bans.
    let other = "[[limit]]\nname = 'jobs'\nby-name = true\nper = 'user'\nconcurrent = 2\n\
                 [[limit]]\nname = 'login'\nby-name = true\nper = 'user'\nquota = '5/day'\n\
                 ban = { strikes = 2, window = '10m', duration = '10m' }\n\
                 [[limit]]\nname = 'service'\nadaptive = { min = 10, max = 500 }\n";
    let other = Server::with_policy(other).await;
    let (mut reservation, mut permit) = (String::new(), String::new());
    let shown_reservation = "1f0c7d9a6b4e3f52a8d0c1b2e3f4a5b6";
    let shown_permit = "9b1f3c5d7e80a2b4c6d8e0f1a3b5c7d9".repeat(2);
    let examples = examples();
    assert!(examples.len() > 15);
    for (command, expected) in examples {
        let is_other = ["/v1/permits", "/v1/reports", "/v1/strikes", "/v1/bans"]
            .iter()
            .any(|it| command.contains(it));
        let server = if is_other { &other } else { &server };
        let here = command.replace("127.0.0.1:8390", &server.address.to_string());
        let here = here.replace(shown_reservation, &reservation).replace(&shown_permit, &permit);
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
        if let Some((_, rest)) = printed.split_once("\"permit\":\"") {
            permit = rest.split('"').next().unwrap().to_owned();
        }
    }
}
