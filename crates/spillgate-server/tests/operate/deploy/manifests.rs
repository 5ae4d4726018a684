//! What no test runs: it has the form that it must have, and its pieces fit together.

use serde_json::Value;
use spillgate_testing::program;

use crate::common::server::{Home, run, spillgate};
use crate::operate::documents::read;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
const KUBERNETES: &str = "deploy/kubernetes/spillgate.yaml";

/// The documents of a file in YAML.
fn documents(path: &str) -> Vec<Value> {
    const CONVERT: &str = "import json, sys, yaml\n\
        print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1], encoding='utf-8')))))";
    let mut python = program("target/python/bin/python");
    serde_json::from_str(&run(python.args(["-c", CONVERT]).arg(format!("{ROOT}{path}")))).unwrap()
}

/// The document of a kind in the manifest.
fn kind(name: &str) -> Value {
    let found: Vec<_> =
        documents(KUBERNETES).into_iter().filter(|document| document["kind"] == name).collect();
    let [document] = &found[..] else { panic!("{name}: {found:?}") };
    document.clone()
}

/// The texts under a key of each element of a list.
fn each<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().map(|element| element[key].as_str().unwrap()).collect()
}

fn keys(table: &Value) -> Vec<&str> {
    table.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_manifest_has_the_form_that_kubernetes_wants() {
    let validate = |path: &str| {
        let mut command = program("target/python/bin/kubernetes-validate");
        command.arg("--strict").arg(path).output().unwrap()
    };
    let output = validate(&format!("{ROOT}{KUBERNETES}"));
    assert!(output.status.success(), "{output:?}");

    // What it is there to notice.
    let home = Home::new("");
    let wrong = home.path("wrong.yaml");
    std::fs::write(&wrong, read(KUBERNETES).replace("readinessProbe", "readynessProbe")).unwrap();
    assert!(!validate(wrong.to_str().unwrap()).status.success());
}

#[test]
fn a_server_takes_the_file_of_the_manifest_and_listens_where_the_manifest_says() {
    let config = kind("ConfigMap")["data"]["spillgate.toml"].as_str().unwrap().to_owned();
    let deployment = kind("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let folder = |name: &str| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["name"] == name).unwrap();
        mount["mountPath"].as_str().unwrap()
    };

    // As the pod would see it, in another place.
    let home = Home::new("");
    let here = home.path("");
    let here = here.to_str().unwrap().trim_end_matches('/');
    home.write(&config.replace(folder("secret"), here));
    for secret in ["token", "store-secret"] {
        assert!(read(KUBERNETES).contains(&format!("--from-literal={secret}=")));
        std::fs::write(home.path(secret), "0123456789abcdef0123456789abcdef").unwrap();
    }
    let file = format!("{}/spillgate.toml", folder("config"));
    assert_eq!(container["args"], serde_json::json!(["serve", "--config", file]));
    let message = run(spillgate().arg("check-config").arg(home.path("spillgate.toml")));

    let ports = container["ports"].as_array().unwrap();
    for port in ports {
        let (name, number) = (port["name"].as_str().unwrap(), &port["containerPort"]);
        let listens = |line: &str| {
            line.trim().starts_with(name) && line.ends_with(&format!("0.0.0.0:{number}"))
        };
        assert!(message.lines().any(listens), "{name} {number}: {message}");
    }
    let port =
        |name: &str| &ports.iter().find(|port| port["name"] == name).unwrap()["containerPort"];
    assert_eq!(&container["startupProbe"]["grpc"]["port"], port("grpc"));
    for probe in ["readinessProbe", "livenessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "http", "{probe}");
    }
    for of_service in kind("Service")["spec"]["ports"].as_array().unwrap() {
        assert_eq!(&of_service["port"], port(of_service["targetPort"].as_str().unwrap()));
    }
}

#[test]
fn the_pieces_of_the_manifest_name_each_other() {
    let deployment = kind("Deployment");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(&kind("Service")["spec"]["selector"], labels);
    assert_eq!(&kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"], labels);
    let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["configMap"]["name"], kind("ConfigMap")["metadata"]["name"]);
    let mounts = &deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
    assert_eq!(each(volumes, "name"), each(mounts, "name"));
    // Who the image runs it as.
    let user = &deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"];
    assert!(read("deploy/Dockerfile").contains(&format!("--uid {user} ")));
}

#[test]
fn a_server_takes_the_rules_for_envoy_in_either_format() {
    let policy = format!("{ROOT}deploy/envoy/spillgate.toml");
    let message = run(spillgate().args(["check-config", &policy]));
    assert!(message.contains("per-address") && message.contains("127.0.0.1:8391"), "{message}");
    let home = Home::new("limit = []");
    let rules = format!("{ROOT}deploy/envoy/ratelimit");
    let file = home.path("spillgate.toml");
    let message = run(spillgate().arg("check-config").arg(file).args(["--envoy-config", &rules]));
    assert!(message.contains("127.0.0.1:8391"), "{message}");
}

#[test]
fn the_configuration_of_traefik_names_what_there_is() {
    let [document] = &documents("deploy/traefik/spillgate.yml")[..] else { panic!("one document") };
    let http = &document["http"];
    assert_eq!(keys(http), ["middlewares", "routers", "services"]);
    let middleware = &http["middlewares"]["spillgate"];
    assert_eq!(keys(middleware), ["forwardAuth"]);
    let ask = &middleware["forwardAuth"];
    assert_eq!(keys(ask), ["address", "authResponseHeaders"]);
    assert_eq!(ask["address"], "http://127.0.0.1:8390/auth");
    for (_, router) in http["routers"].as_object().unwrap() {
        assert_eq!(keys(router), ["middlewares", "rule", "service"]);
        let named = router["middlewares"].as_array().unwrap();
        assert!(named.iter().all(|name| !http["middlewares"][name.as_str().unwrap()].is_null()));
        let service = &http["services"][router["service"].as_str().unwrap()];
        assert!(each(&service["loadBalancer"]["servers"], "url")[0].starts_with("http://"));
    }
}
