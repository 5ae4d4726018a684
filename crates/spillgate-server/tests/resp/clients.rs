use spillgate_server::protocol::resp::Password;
use spillgate_testing::program;

use super::start;
use crate::common::program::run;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_cli_shows_what_redis_cell_would_answer() {
    let port = start(None).await.address.port().to_string();
    for protocol in ["-2", "-3"] {
        let key = format!("user{protocol}");
        let call = ["-p", &port, protocol, "CL.THROTTLE", &key, "15", "30", "60"];
        assert_eq!(run("redis-cli", &call).await, "0\n16\n15\n-1\n2\n");
    }
    let check = ["-p", &port, "SG.CHECK", "api", "203.0.113.7", "5"];
    assert_eq!(run("redis-cli", &check).await, "0\n5\n0\n-1\n18000\n");
    assert_eq!(run("redis-cli", &["-p", &port, "PING"]).await, "PONG\n");
    let info = run("redis-cli", &["-p", &port, "INFO"]).await;
    assert!(info.contains("calls_allowed:3\r\n"), "{info}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_cli_gives_the_password() {
    let port = start(Password::new("secret")).await.address.port().to_string();
    let with = |password: &'static str, protocol| {
        let port = port.clone();
        async move {
            let arguments = ["-p", &port, protocol, "--no-auth-warning", "-a", password, "PING"];
            let output = program("redis-cli").args(arguments).output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
    };
    assert_eq!(with("secret", "-2").await, "PONG");
    assert_eq!(with("secret", "-3").await, "PONG");
    assert_eq!(with("wrong", "-2").await, "NOAUTH Authentication required.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_benchmark_runs_without_a_complaint() {
    let server = start(None).await;
    let port = server.address.port().to_string();
    let mut calls = 0;
    for pipeline in ["1", "16", "500"] {
        let options = ["-q", "-p", &port, "-n", "20000", "-c", "50", "-r", "1000", "-P", pipeline];
        let call = ["CL.THROTTLE", "key:__rand_int__", "15", "30", "60"];
        let report = run("redis-benchmark", &[&options[..], &call[..]].concat()).await;
        assert!(report.contains("requests per second"), "{report}");
        calls += 20_000;
    }
    let counts = server.endpoint.stats().counts();
    assert_eq!((counts.errors, counts.protocol_errors), (0, 0));
    assert!(counts.allowed + counts.limited >= calls, "{counts:?}");
    // 1,000 keys of 16 at once, and a few more while it ran.
    assert!((16_000..18_000).contains(&counts.allowed), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_py_is_at_home_over_both_protocols() {
    // In a folder of its own: the one of the system may be too old for RESP3.
    const PYTHON: &str = "target/python/bin/python";
    const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resp/redis_py.py");
    let server = start(Password::new("sesame")).await;
    let port = server.address.port().to_string();
    for protocol in ["2", "3"] {
        assert_eq!(run(PYTHON, &[SCRIPT, &port, protocol, "sesame"]).await, "ok\n");
    }
    assert_eq!(server.endpoint.stats().counts().protocol_errors, 0);
}
