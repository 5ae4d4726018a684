//! Servers that speak TLS.

use std::path::PathBuf;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use tempfile::TempDir;
use tollgate_redis::engine::{Fault, Server as Engines};

use crate::asking::{ask, options};
use crate::common::{Server, free_port};

/// An authority and a server's certificate that it has signed, as files.
struct Certificates(TempDir);

impl Certificates {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority);
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text);
        write("ca.pem", authority.pem()).unwrap();
        write("server.pem", certificate.unwrap().pem()).unwrap();
        write("server.key", key.serialize_pem()).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

#[tokio::test]
async fn a_server_is_believed_if_a_known_authority_has_signed_for_its_name() {
    let (known, stranger) = (Certificates::new(), Certificates::new());
    let port = free_port();
    let file = |name| known.file(name).display().to_string();
    let _server = Server::redis_with(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &file("server.pem"),
        "--tls-key-file",
        &file("server.key"),
        "--tls-auth-clients",
        "no",
    ]);
    let named = options(&format!("rediss://localhost:{port}"));
    let engine = Engines::connect(named.clone().authorities(known.file("ca.pem"))).await.unwrap();
    ask(&engine, 1).await.unwrap();

    let nameless = options(&format!("rediss://127.0.0.1:{port}"));
    let plain = options(&format!("redis://localhost:{port}"));
    for (options, why) in [
        (named.clone().authorities(stranger.file("ca.pem")), "invalid peer certificate"),
        (nameless.authorities(known.file("ca.pem")), "not valid for name"),
        (plain, "cannot be reached"),
    ] {
        let error = Engines::connect(options).await.map(|_| ()).unwrap_err();
        assert_eq!(error.fault(), Fault::Unreachable, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    for (file, why) in [("missing.pem", "cannot be read"), ("server.key", "no certificate")] {
        let options = named.clone().authorities(known.file(file));
        let error = Engines::connect(options).await.map(|_| ()).unwrap_err();
        assert_eq!(error.fault(), Fault::Misconfigured, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}
