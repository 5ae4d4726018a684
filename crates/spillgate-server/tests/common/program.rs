use std::process::Output;

/// What a program prints.
pub(crate) async fn run(program: &'static str, arguments: &[&str]) -> String {
    let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let mut command = spillgate_testing::program(program);
    let run = move || command.args(arguments).output();
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{program} failed: {status}\n{stdout}\n{stderr}");
    assert!(stderr.is_empty(), "{program} complains: {stderr}");
    stdout.into_owned()
}
