use spillgate_policy::{Adaptive, Limit};

use super::start_with;
use crate::common::program::run;

const PAGE: &str = include_str!("../../../../docs/redis.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_of_the_page_print_what_it_shows() {
    spillgate_testing::needs(&["redis-cli"]);
    let login = Limit::new("login", "5/min").by_name().per(["user"]);
    let jobs = Limit::concurrent("jobs", 2).by_name().per(["user"]);
    let service = Limit::adaptive("service", Adaptive::auto(10..=500));
    let server = start_with([Limit::new("api", "10/s burst 20"), login, jobs, service], None).await;
    let port = server.address.port();
    let blocks = PAGE.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let examples: Vec<_> = blocks.flat_map(|block| block.split("$ ").skip(1)).collect();
    assert_eq!(examples.len(), 9);
    let shown_permit = "9b1f3c5d7e80a2b4c6d8e0f1a3b5c7d9".repeat(2);
    let mut permit = String::new();
    for example in examples {
        let (command, expected) = example.split_once('\n').unwrap();
        // As in a terminal.
        let here = command.replace("-p 6390", &format!("--no-raw -p {port}"));
        let here = here.replace(&shown_permit, &permit);
        let mut printed = run("bash", &["-c", &here]).await;
        if command.contains("SG.ACQUIRE") {
            permit = printed.split('"').nth(1).unwrap().to_owned();
            printed = printed.replace(&permit, &shown_permit);
        }
        assert_eq!(printed.trim(), expected.trim(), "{command}");
    }
}
