//! Servers that speak TLS, and ask for certificates.

use spillgate_redis::backend::{BackendError, Fault};
use spillgate_redis::client::{Client, Options};

use crate::common::{Certificates, Server, TlsSentinel};
use crate::connections::asking::{ask, options};

async fn refusal(options: Options) -> BackendError {
    Client::connect(options).await.map(|_| ()).unwrap_err()
}

fn with_client(options: &Options, certificates: &Certificates) -> Options {
    options
        .clone()
        .client_certificate(certificates.file("client.pem"), certificates.file("client.key"))
}

#[tokio::test]
async fn a_server_is_believed_if_a_known_authority_has_signed_for_its_name() {
    let (known, stranger) = (Certificates::new(), Certificates::new());
    // The certificate is for localhost and 127.0.0.1 only.
    let two = ["--bind", "127.0.0.1", "127.0.0.2"];
    let (_server, port) = Server::redis_with_tls(&known, "no", &two);
    let named = options(&format!("rediss://localhost:{port}"));
    let client = Client::connect(named.clone().authorities(known.file("ca.pem"))).await.unwrap();
    ask(&client, 1).await.unwrap();

    let other_name = options(&format!("rediss://127.0.0.2:{port}"));
    let plain = options(&format!("redis://localhost:{port}"));
    for (options, fault, why) in [
        (
            named.clone().authorities(stranger.file("ca.pem")),
            Fault::Misconfigured,
            "invalid peer certificate: UnknownIssuer: set store.ca",
        ),
        (named.clone(), Fault::Misconfigured, "set store.ca"),
        (other_name.authorities(known.file("ca.pem")), Fault::Misconfigured, "not valid for name"),
        (plain, Fault::Unreachable, "cannot be reached"),
    ] {
        let error = refusal(options).await;
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.fault(), fault, "{error}");
    }
    for (file, why) in [("missing.pem", "cannot be read"), ("server.key", "no certificate")] {
        let error = refusal(named.clone().authorities(known.file(file))).await;
        assert_eq!(error.fault(), Fault::Misconfigured, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_client_shows_its_certificate_to_a_server_that_asks_for_one() {
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let (known, stranger) = (Certificates::new(), Certificates::new());
        let (_server, port) = Server::redis_with_tls(&known, "yes", &["--tls-protocols", protocol]);
        let named =
            options(&format!("rediss://localhost:{port}")).authorities(known.file("ca.pem"));
        let client = Client::connect(with_client(&named, &known)).await.unwrap();
        ask(&client, 1).await.unwrap();

        // Time and again: what a server says last may be lost, as seldom as that is.
        let mut is_clear = [false; 2];
        for _ in 0..10 {
            let error = refusal(named.clone()).await;
            assert!(error.to_string().ends_with("set store.tls-cert and store.tls-key"), "{error}");
            is_clear[0] |= error.to_string().contains("requires a client certificate:");
            let error = refusal(with_client(&named, &stranger)).await;
            assert!(error.to_string().contains("certificate of store.tls-cert"), "{error}");
            is_clear[1] |= error.fault() == Fault::Refused
                && error.to_string().ends_with("it does not know the authority that signed it");
        }
        assert_eq!(is_clear, [true; 2], "{protocol}");
        known.expire_client();
        let error = refusal(with_client(&named, &known)).await;
        assert!(error.to_string().contains("certificate of store.tls-cert"), "{protocol}: {error}");
    }
}

#[tokio::test]
async fn a_server_may_leave_certificates_to_its_clients() {
    let certificates = Certificates::new();
    let (_server, port) = Server::redis_with_tls(&certificates, "optional", &[]);
    let named = options(&format!("rediss://localhost:{port}"));
    let named = named.authorities(certificates.file("ca.pem"));
    ask(&Client::connect(named.clone()).await.unwrap(), 1).await.unwrap();
    ask(&Client::connect(with_client(&named, &certificates)).await.unwrap(), 1).await.unwrap();
    // What is wrong otherwise is told as it is.
    let error = refusal(named.password("hunter2").user("nobody")).await;
    assert!(error.to_string().contains("does not accept this user and password"), "{error}");
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_told_with_their_file() {
    let (certificates, other) = (Certificates::new(), Certificates::new());
    let named = options("rediss://localhost:1");
    let file = |name: &str| certificates.file(name);
    for (options, why) in [
        (
            named.clone().client_certificate(file("none.pem"), file("client.key")),
            "none.pem cannot be read",
        ),
        (
            named.clone().client_certificate(file("client.pem"), file("none.key")),
            "none.key cannot be read",
        ),
        (
            named.clone().client_certificate(file("client.key"), file("client.key")),
            "holds no certificate",
        ),
        (
            named.clone().client_certificate(file("client.pem"), file("client.pem")),
            "holds no private key",
        ),
        (
            named.client_certificate(file("client.pem"), other.file("client.key")),
            "do not go together",
        ),
        (
            with_client(&options("redis://localhost:1"), &certificates),
            "begin the URL with rediss://",
        ),
    ] {
        let error = refusal(options).await;
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.fault(), Fault::Misconfigured, "{error}");
    }
}

#[tokio::test]
async fn sentinels_and_nodes_of_a_cluster_are_shown_the_certificate_too() {
    let certificates = Certificates::new();
    let (_master, master) = Server::redis_with_tls(&certificates, "yes", &[]);
    let sentinel = TlsSentinel::start(&certificates, master);
    let in_cluster = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let (node, port) = Server::redis_with_tls(&certificates, "yes", &in_cluster);
    node.command("CLUSTER ADDSLOTSRANGE 0 16383");
    while !node.command("CLUSTER INFO").contains("cluster_state:ok") {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    for url in [
        format!("rediss+sentinel://127.0.0.1:{}/main", sentinel.port),
        format!("rediss+cluster://localhost:{port}"),
    ] {
        let trusting = options(&url).authorities(certificates.file("ca.pem"));
        let client = Client::connect(with_client(&trusting, &certificates)).await.unwrap();
        ask(&client, 1).await.unwrap();
        let error = refusal(trusting).await;
        assert!(
            error.to_string().ends_with("set store.tls-cert and store.tls-key"),
            "{url}: {error}"
        );
    }
}
