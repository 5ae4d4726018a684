use std::process::{Command, Output};

/// What a program prints.
pub(crate) async fn run(program: &'static str, arguments: &[&str]) -> String {
    let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let run = move || Command::new(program).args(arguments).output();
    let ran = tokio::task::spawn_blocking(run).await.unwrap();
    let Output { status, stdout, stderr } = ran.unwrap_or_else(|error| {
        panic!("{program} cannot be run: {error}; scripts/test installs it")
    });
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{program} failed: {status}\n{stdout}\n{stderr}");
    assert!(stderr.is_empty(), "{program} complains: {stderr}");
    stdout.into_owned()
}
