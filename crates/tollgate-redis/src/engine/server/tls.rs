use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::engine::{EngineError, Fault};

/// A connector that believes what the certificates in this file have signed, or those of the
/// system.
pub(super) fn connector(authorities: Option<&Path>) -> Result<TlsConnector, EngineError> {
    let roots = match authorities {
        Some(file) => from_file(file)?,
        None => of_the_system()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| wrong(format!("TLS cannot be set up: {why}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn from_file(file: &Path) -> Result<RootCertStore, EngineError> {
    let shown = file.display();
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file)
        .map_err(|why| wrong(format!("the file of authorities {shown} cannot be read: {why}")))?;
    for certificate in certificates {
        certificate
            .map_err(|why| why.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|why| why.to_string()))
            .map_err(|why| {
                wrong(format!("the file of authorities {shown} has a bad certificate: {why}"))
            })?;
    }
    if roots.is_empty() {
        return Err(wrong(format!(
            "the file of authorities {shown} holds no certificate: it must be PEM"
        )));
    }
    Ok(roots)
}

fn of_the_system() -> Result<RootCertStore, EngineError> {
    let mut roots = RootCertStore::empty();
    // Systems have certificates that are odd. Those that can be read are enough.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(wrong(
            "the system has no certificates of authorities: install them (package \
             ca-certificates), or name a file of them"
                .to_owned(),
        ));
    }
    Ok(roots)
}

fn wrong(text: String) -> EngineError {
    EngineError::new(Fault::Misconfigured, text)
}
