//! TLS certificates, private keys and trust anchors, read from PEM files.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

use crate::read_file;

/// HTTP/2 in ALPN.
pub const H2: &[u8] = b"h2";
/// HTTP/1.1 in ALPN.
pub const HTTP1: &[u8] = b"http/1.1";

/// A certificate chain and its key, which can be renewed while connections are open.
#[derive(Debug)]
pub struct Tls(ArcSwap<ServerConfig>);

impl Tls {
    /// Reads a certificate chain and its key. The error names the file, and what would be right.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        config(certificate, key).map(|config| Self(ArcSwap::from_pointee(config)))
    }

    /// Presents the certificate chain of `other` to new connections.
    pub fn renew(&self, other: &Self) {
        self.0.store(other.0.load_full());
    }

    /// Accepts connections, and negotiates one of these protocols by ALPN; none to negotiate
    /// nothing.
    pub fn acceptor(&self, alpn: &[&[u8]]) -> TlsAcceptor {
        let mut config = self.0.load_full();
        if !alpn.is_empty() {
            let alpn = alpn.iter().map(|name| name.to_vec());
            Arc::make_mut(&mut config).alpn_protocols = alpn.collect();
        }
        config.into()
    }
}

/// A client that trusts the CA certificates of a file. The error says what is wrong with it.
pub fn client(ca: &Path) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    add(&mut roots, ca)?;
    trusting(roots)
}

/// A client that trusts the system's CA certificates, and those of a file. The error says what is
/// wrong with the file, or that there are none.
pub fn system_client(ca: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(ca) = ca {
        add(&mut roots, ca)?;
    }
    if roots.is_empty() {
        return Err(
            "the system trusts no CA certificate, so no https:// upstream can be verified; \
                    set upstream-ca in [proxy]"
                .to_owned(),
        );
    }
    trusting(roots)
}

fn add(roots: &mut RootCertStore, ca: &Path) -> Result<(), String> {
    for certificate in certificates("CA certificate", ca)? {
        let refused = |error| format!("invalid CA certificate {}: {error}", ca.display());
        roots.add(certificate).map_err(refused)?;
    }
    Ok(())
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn config(certificate: &Path, key: &Path) -> Result<ServerConfig, String> {
    let chain = certificates("tls-cert", certificate)?;
    let secret = private_key(key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    builder.with_no_client_auth().with_single_cert(chain, secret).map_err(|error| {
        let (certificate, key) = (certificate.display(), key.display());
        match error {
            rustls::Error::InconsistentKeys(_) => format!(
                "the tls-key {key} does not belong to the tls-cert {certificate}; use the key that \
                 the certificate was issued for"
            ),
            error => format!("the tls-cert {certificate} cannot be used: {error}"),
        }
    })
}

fn unusable(error: &rustls::Error) -> String {
    format!("TLS cannot be used: {error}")
}

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(what, path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(no_pem(what, path, "CERTIFICATE")),
        Err(error) => Err(bad_pem(what, path, &error)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = read("tls-key", path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => no_pem("tls-key", path, "PRIVATE KEY"),
        error => bad_pem("tls-key", path, &error),
    })
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error| format!("the {what} {} cannot be read: {error}", path.display());
    read_file(path, 1).map_err(cannot)
}

fn no_pem(what: &str, path: &Path, section: &str) -> String {
    let path = path.display();
    format!("the {what} {path} has no -----BEGIN {section}-----; it must be in PEM")
}

fn bad_pem(what: &str, path: &Path, error: &pem::Error) -> String {
    format!("the {what} {} cannot be understood: {error}", path.display())
}
