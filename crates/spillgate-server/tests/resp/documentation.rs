use spillgate_policy::Limit;

use super::start_with;
use crate::common::program::run;

const PAGE: &str = include_str!("../../../../docs/redis.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_of_the_page_print_what_it_shows() {
    let login = Limit::new("login", "5/min").by_name().per(["user"]);
    let server = start_with([Limit::new("api", "10/s burst 20"), login], None).await;
    let port = server.address.port();
    let blocks = PAGE.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let examples: Vec<_> = blocks.flat_map(|block| block.split("$ ").skip(1)).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let (command, expected) = example.split_once('\n').unwrap();
        // As in a terminal.
        let here = command.replace("-p 6390", &format!("--no-raw -p {port}"));
        assert_eq!(run("bash", &["-c", &here]).await.trim(), expected.trim(), "{command}");
    }
}
