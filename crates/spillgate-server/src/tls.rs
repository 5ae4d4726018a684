//! TLS: one certificate for all listeners, which can be renewed while they serve.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

use crate::settings::{TlsFiles, read_small};

/// What upstreams call their protocols when they agree on one.
pub(crate) const H2: &[u8] = b"h2";
pub(crate) const HTTP1: &[u8] = b"http/1.1";

/// The certificate that clients are shown.
#[derive(Debug)]
pub(crate) struct Tls(ArcSwap<ServerConfig>);

impl Tls {
    /// Reads a certificate and its key. An error says which file is wrong, and how to mend
    /// it.
    pub(crate) fn load(files: &TlsFiles) -> Result<Self, String> {
        config(files).map(|config| Self(ArcSwap::from_pointee(config)))
    }

    /// Shows another certificate to whoever connects from now on.
    pub(crate) fn renew(&self, other: &Self) {
        self.0.store(other.0.load_full());
    }

    /// Takes connections, and agrees on one of these protocols with clients that ask. With
    /// none there is nothing to agree on.
    pub(crate) fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let mut config = self.0.load_full();
        if !protocols.is_empty() {
            let protocols = protocols.iter().map(|name| name.to_vec());
            Arc::make_mut(&mut config).alpn_protocols = protocols.collect();
        }
        config.into()
    }
}

/// What a client trusts: the certificates of a file.
pub(crate) fn client(ca: &Path) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    add(&mut roots, ca)?;
    trusting(roots)
}

/// What a proxy trusts: whatever this machine does, and the certificates of a file.
pub(crate) fn upstreams(ca: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(ca) = ca {
        add(&mut roots, ca)?;
    }
    if roots.is_empty() {
        return Err("this machine trusts no certificate, so no upstream of https can be \
                    trusted; name those to trust with ca in [proxy]"
            .to_owned());
    }
    trusting(roots)
}

fn add(roots: &mut RootCertStore, ca: &Path) -> Result<(), String> {
    for certificate in certificates("ca", ca)? {
        let refused = |error| format!("the ca {} cannot be used: {error}", ca.display());
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

fn config(files: &TlsFiles) -> Result<ServerConfig, String> {
    let TlsFiles { certificate, key } = files;
    let chain = certificates("tls-certificate", certificate)?;
    let secret = private_key(key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    builder.with_no_client_auth().with_single_cert(chain, secret).map_err(|error| {
        let (certificate, key) = (certificate.display(), key.display());
        match error {
            rustls::Error::InconsistentKeys(_) => format!(
                "the tls-key {key} is not that of the tls-certificate {certificate}; use the \
                 pair that was made together"
            ),
            error => format!("the tls-certificate {certificate} cannot be used: {error}"),
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
    read_small(path)
        .map_err(|error| format!("the {what} {} cannot be read: {error}", path.display()))
}

fn no_pem(what: &str, path: &Path, section: &str) -> String {
    let path = path.display();
    format!("the {what} {path} has no -----BEGIN {section}-----; it must be in PEM")
}

fn bad_pem(what: &str, path: &Path, error: &pem::Error) -> String {
    format!("the {what} {} cannot be understood: {error}", path.display())
}
