use tollgate_policy::Limit;

use super::program::run;
use super::start_with;

const PAGE: &str = include_str!("../../../../docs/redis.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_of_the_page_print_what_it_shows() {
    let port = start_with(Limit::new("api", "10/s burst 20"), None).await.address.port();
    let blocks = PAGE.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let examples: Vec<_> = blocks.flat_map(|block| block.split("$ ").skip(1)).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let (command, expected) = example.split_once('\n').unwrap();
        // As in a terminal.
        let here = command.replace("-p 6390", &format!("--no-raw -p {port}"));
        assert_eq!(run("bash", &["-c", &here]).await.trim(), expected.trim(), "{command}");
    }
}
