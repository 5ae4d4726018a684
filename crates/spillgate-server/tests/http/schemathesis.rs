//! The OpenAPI document and the server agree, as far as Schemathesis can tell.

use std::path::Path;

use spillgate_testing::{effort, program};
use tempfile::TempDir;

use super::server::{Server, TOKEN};

/// Runs every check that makes sense, with these arguments.
async fn run(arguments: &[&str]) {
    let server = Server::start().await;
    // It leaves files where it runs.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for file in ["schemathesis.toml", "hooks.py"] {
        let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/schemathesis");
        std::fs::copy(Path::new(from).join(file), folder.path().join(file)).unwrap();
    }
    let mut command = program("target/schemathesis/bin/schemathesis");
    command.args(["--config-file", "schemathesis.toml", "run", &server.url("/v1/openapi.json")]);
    command.args(["--max-examples", &(5 * effort()).to_string()]);
    command.arg("--no-color").args(arguments).current_dir(folder.path());
    let ran = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let message = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{message}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(message.contains("No issues found"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_with_the_token() {
    let token = format!("Authorization: Bearer {TOKEN}");
    run(&["--header", &token]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_without_the_token() {
    run(&[]).await;
}
