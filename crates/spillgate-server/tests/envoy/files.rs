//! Files of envoyproxy/ratelimit, while a server goes by them.

use std::os::unix::fs::symlink;
use std::path::Path;

use spillgate_testing::program;

use crate::common::server::{Home, run, spillgate, until};
use crate::envoy::client::{Client, OK, OVER_LIMIT, descriptor, metric, start, write};

const EDGE: &str = "domain: edge\ndescriptors:\n\
    - {key: k, rate_limit: {unit: hour, requests_per_unit: 3}}\n";
const MORE: &str = "domain: more\ndescriptors:\n\
    - {key: k, rate_limit: {unit: hour, requests_per_unit: 1}}\n";

fn reloads(server: &crate::common::server::Server, outcome: &str) -> f64 {
    metric(server, &format!("spillgate_reloads_total{{outcome=\"{outcome}\"}}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_taken_up_when_they_come_change_and_go_and_keep_what_was_spent() {
    let (home, server) = start("", &[("edge.yaml", EDGE)], &[]);
    let folder = home.path("envoy");
    let mut client = Client::to(&server).await;
    let k = descriptor(&[("k", "v")]);
    assert_eq!(client.status("edge", &k).await.limit_remaining, 2);
    assert!(client.status("more", &k).await.current_limit.is_none());

    write(&folder, "more.yml", MORE);
    until("that a file has come", || reloads(&server, "accepted") == 1.0);
    assert_eq!(client.status("more", &k).await.code, OK);
    assert_eq!(client.status("more", &k).await.code, OVER_LIMIT);
    assert_eq!(client.status("edge", &k).await.limit_remaining, 1);

    write(&folder, "edge.yaml", &EDGE.replace('3', "10"));
    until("that a file has changed", || reloads(&server, "accepted") == 2.0);
    assert_eq!(client.status("edge", &k).await.limit_remaining, 7);
    assert_eq!(client.status("more", &k).await.code, OVER_LIMIT);

    std::fs::remove_file(folder.join("more.yml")).unwrap();
    until("that a file has gone", || reloads(&server, "accepted") == 3.0);
    assert!(client.status("more", &k).await.current_limit.is_none());
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_one_domain_are_put_together_in_the_order_of_their_names() {
    let rule = |value: &str, amount: u32| {
        let limit = format!("{{unit: hour, requests_per_unit: {amount}}}");
        format!("- {{key: path, value: {value}, rate_limit: {limit}}}\n")
    };
    let file = |rules: String| format!("domain: edge\ndescriptors:\n{rules}");
    let (first, second) = (file(rule("/v1*", 10)), file(rule("/v1/a*", 20) + &rule("/v2*", 30)));
    let (home, server) = start("", &[("b.yaml", &second), ("a.yaml", &first)], &[]);
    let mut client = Client::to(&server).await;
    for (path, limit) in [("/v1/ab", 10), ("/v2", 30)] {
        let status = client.status("edge", &descriptor(&[("path", path)])).await;
        assert_eq!(status.current_limit.unwrap().requests_per_unit, limit, "{path}");
    }
    // What is in two of them is told with both places, and refuses the whole folder.
    write(&home.path("envoy"), "c.yaml", &file(rule("/v3", 1) + &rule("/v2*", 40)));
    until("that it is refused", || reloads(&server, "refused") >= 1.0);
    let ready = server.get("/readyz");
    let places =
        ["c.yaml:4: the descriptor has the same key and the same value as that of", "b.yaml:4;"];
    assert!(places.iter().all(|place| ready.contains(place)), "{ready}");
    assert!(client.status("edge", &descriptor(&[("path", "/v3")])).await.current_limit.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_file_refuses_all_and_what_is_in_force_stays() {
    let (home, server) = start("", &[("edge.yaml", EDGE)], &[]);
    let folder = home.path("envoy");
    let mut client = Client::to(&server).await;
    let k = descriptor(&[("k", "v")]);
    write(&folder, "bad.yaml", "domain: bad\ndescriptors:\n- key: k\n  rate_limt: {}\n");
    write(&folder, "more.yaml", MORE);
    until("that it is refused", || reloads(&server, "refused") >= 1.0);
    assert_eq!(client.status("edge", &k).await.limit_remaining, 2);
    assert!(client.status("more", &k).await.current_limit.is_none(), "none of it is taken up");
    let ready = server.get("/readyz");
    assert!(ready.contains("bad.yaml:4: a descriptor has no key"), "{ready}");

    std::fs::remove_file(folder.join("bad.yaml")).unwrap();
    until("that it is mended", || reloads(&server, "accepted") == 1.0);
    assert_eq!(client.status("more", &k).await.limit_remaining, 0);
    assert!(!server.get("/readyz").contains("bad.yaml"));
    let log = server.stop();
    assert!(log.contains("reload refused: ") && log.contains("rate_limt"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_an_operator_sends_keeps_the_files() {
    let (_home, server) = start("", &[("edge.yaml", EDGE)], &[]);
    let mut client = Client::to(&server).await;
    let k = descriptor(&[("k", "v")]);
    assert_eq!(client.status("edge", &k).await.limit_remaining, 2);
    let bearer = format!("authorization: Bearer {}", server.token());
    let text = "[[limit]]\nname = 'api'\nquota = '5/h'\n";
    let mut curl = program("curl");
    run(curl
        .args(["-fsS", "-X", "PUT", "-H", &bearer, "-H", "content-type: application/toml"])
        .args(["--data-binary", text, &server.url("/v1/policy")]));
    assert_eq!(client.status("edge", &k).await.limit_remaining, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_links_is_read_as_kubernetes_makes_it() {
    let home = Home::new(crate::envoy::client::SERVER);
    let folder = home.path("mounted");
    let version = |name: &str, text: &str| {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        std::fs::write(folder.join(name).join("edge.yaml"), text).unwrap();
    };
    version("..2026_1", EDGE);
    symlink("..2026_1", folder.join("..data")).unwrap();
    symlink("..data/edge.yaml", folder.join("edge.yaml")).unwrap();
    let server = home.start(&["--envoy-config", folder.to_str().unwrap()]);
    let mut client = Client::to(&server).await;
    let k = descriptor(&[("k", "v")]);
    assert_eq!(client.status("edge", &k).await.limit_remaining, 2);
    version("..2026_2", &EDGE.replace('3', "5"));
    symlink("..2026_2", folder.join("..new")).unwrap();
    std::fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    until("that the link leads elsewhere", || reloads(&server, "accepted") == 1.0);
    assert_eq!(client.status("edge", &k).await.limit_remaining, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_is_fixed_unless_a_bucket_is_asked_for() {
    for (arguments, algorithm) in
        [(&[][..], "fixed-window"), (&["--envoy-algorithm", "token-bucket"], "token-bucket")]
    {
        let (_home, server) = start("", &[("edge.yaml", EDGE)], arguments);
        let bearer = format!("authorization: Bearer {}", server.token());
        let mut curl = program("curl");
        let limits = run(curl.args(["-fsS", "-H", &bearer]).arg(server.url("/v1/limits")));
        assert!(limits.contains(&format!("\"algorithm\":\"{algorithm}\"")), "{limits}");
        assert!(limits.contains("\"name\":\"edge/k\""), "{limits}");
    }
}

#[test]
fn everything_that_is_wrong_with_a_folder_is_told() {
    let home = Home::new(crate::envoy::client::SERVER);
    let folder = home.path("envoy");
    let check = |folder: &Path| {
        let mut check = spillgate();
        check.arg("check-config").arg(home.path("spillgate.toml"));
        let output = check.arg("--envoy-config").arg(folder).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = check(&folder);
    assert!(code == Some(1) && message.contains("cannot be read"), "{message}");
    std::fs::create_dir(&folder).unwrap();
    write(&folder, "notes.txt", "not one of them");
    let (code, message) = check(&folder);
    assert!(code == Some(1) && message.contains("has no file *.yaml or *.yml"), "{message}");

    write(&folder, "a.yaml", EDGE);
    write(&folder, "b.yaml", "domain: b\ndescriptors:\n- key: ''\n- key: k\n  value: [1]\n");
    write(&folder, "c.yaml", EDGE);
    std::fs::write(folder.join("d.yaml"), [0xff, 0xfe]).unwrap();
    std::fs::create_dir(folder.join("e.yaml")).unwrap();
    std::fs::write(folder.join("f.yaml"), vec![b'#'; 2 << 20]).unwrap();
    let (code, message) = check(&folder);
    assert_eq!(code, Some(1));
    let expected = [
        "b.yaml:3: the descriptor's key is empty; name it",
        "b.yaml:5: value must be a text, and is a list",
        "c.yaml:3: the descriptor has the same key as that of ",
        "d.yaml: it is not UTF-8",
        "e.yaml: it cannot be read: it is not a file",
        "f.yaml: it cannot be read: it has more than 1 MiB",
    ];
    let lines: Vec<_> = message.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{message}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.contains(expected), "{line}\n{expected}");
    }
}
