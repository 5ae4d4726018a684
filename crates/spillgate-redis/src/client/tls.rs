use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error as TlsError, RootCertStore,
    SignatureScheme,
};

use super::address::Address;
use super::failure::unreachable_because;
use crate::backend::{BackendError, Fault, Result};

/// The TLS configuration: trusted CAs, and the client certificate.
#[derive(Debug)]
pub(super) struct TlsClient {
    config: ClientConfig,
    has_certificate: bool,
}

/// A PEM file.
#[derive(Clone, Copy)]
pub(super) struct Pem<'a> {
    pub(super) file: &'a Path,
    pub(super) bytes: &'a [u8],
}

/// What is known of one handshake.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    /// True once the server has requested a client certificate.
    is_asked: Arc<AtomicBool>,
    has_certificate: bool,
    /// The alert that the server sent.
    alert: Arc<OnceLock<AlertDescription>>,
}

/// A TLS connection that keeps the alert it ends with.
#[derive(Debug)]
pub(super) struct TlsConnection {
    stream: TlsStream<TcpStream>,
    pub(super) handshake: Handshake,
}

impl TlsClient {
    /// Trusts the given CAs or the system's, and presents a client certificate chain on request.
    pub(super) fn new(
        authorities: Option<Pem<'_>>,
        certificate: Option<(Pem<'_>, Pem<'_>)>,
    ) -> Result<Self> {
        let roots = match authorities {
            Some(pem) => from_file(pem)?,
            None => of_the_system()?,
        };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| wrong(format!("TLS cannot be set up: {why}")))?
            .with_root_certificates(roots);
        let has_certificate = certificate.is_some();
        let config = match certificate {
            None => config.with_no_client_auth(),
            Some((chain, key)) => {
                let (certificates, private_key) = (certificates(chain)?, private_key(key)?);
                config.with_client_auth_cert(certificates, private_key).map_err(|why| {
                    let (chain, key) = (chain.file.display(), key.file.display());
                    wrong(format!(
                        "the client certificate {chain} and key {key} do not go together: {why}"
                    ))
                })?
            }
        };
        Ok(Self { config, has_certificate })
    }

    /// Performs the handshake.
    pub(super) async fn connect(
        &self,
        address: &Address,
        stream: TcpStream,
    ) -> Result<TlsConnection> {
        let handshake = Handshake {
            is_asked: Arc::default(),
            has_certificate: self.has_certificate,
            alert: Arc::default(),
        };
        let mut config = self.config.clone();
        config.client_auth_cert_resolver = Arc::new(ClientCertResolver {
            is_asked: handshake.is_asked.clone(),
            certificate: config.client_auth_cert_resolver,
        });
        let name = ServerName::try_from(address.host().unwrap_or_default().to_owned())
            .map_err(|why| unreachable_because(address, &why))?;
        match TlsConnector::from(Arc::new(config)).connect(name, stream).await {
            Ok(stream) => Ok(TlsConnection { stream, handshake }),
            Err(why) => Err(handshake.explain(address, &why)),
        }
    }
}

impl Handshake {
    /// Why a server ended the connection, if that is about certificates. In TLS 1.3 the handshake
    /// completes before the server has verified the client certificate, so a refusal comes in place
    /// of the first reply.
    pub(super) fn refusal(&self, address: &Address) -> Option<BackendError> {
        // The alert may be lost: a server that closes with unread data resets the connection.
        if !self.is_asked.load(Ordering::Relaxed) {
            return None;
        }
        let (fault, text) = match (self.has_certificate, self.alert.get()) {
            (false, Some(_)) => (
                Fault::Refused,
                "requires a client certificate: set store.tls-cert and store.tls-key".to_owned(),
            ),
            (false, None) => (
                Fault::Unreachable,
                "closed the connection after it had asked for a client certificate: if it requires \
                 one, set store.tls-cert and store.tls-key"
                    .to_owned(),
            ),
            (true, Some(alert)) => (
                Fault::Refused,
                format!("does not accept the client certificate of store.tls-cert: {}", reason(alert)),
            ),
            (true, None) => (
                Fault::Unreachable,
                "closed the connection after it was shown the client certificate of store.tls-cert"
                    .to_owned(),
            ),
        };
        Some(BackendError::new(fault, format!("{address} {text}")))
    }

    /// Keeps the first alert.
    fn note(&self, why: &io::Error) {
        let tls = why.get_ref().and_then(|why| why.downcast_ref::<TlsError>());
        if let Some(TlsError::AlertReceived(alert)) = tls {
            let _ = self.alert.set(*alert);
        }
    }

    fn explain(&self, address: &Address, why: &io::Error) -> BackendError {
        let tls = why.get_ref().and_then(|why| why.downcast_ref::<TlsError>());
        if let Some(TlsError::InvalidCertificate(problem)) = tls {
            let text = format!(
                "{address} cannot be trusted: invalid peer certificate: {}",
                untrusted(problem)
            );
            return BackendError::new(Fault::Misconfigured, text);
        }
        self.note(why);
        let refused = self.alert.get().and_then(|_| self.refusal(address));
        refused.unwrap_or_else(|| {
            let why = why.get_ref().map_or_else(|| why.to_string(), ToString::to_string);
            unreachable_because(address, &format!("TLS: {why}"))
        })
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Poll::Ready(Err(why)) = &read {
            self.handshake.note(why);
        }
        read
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Presents a client certificate, and notes that one was requested.
#[derive(Debug)]
struct ClientCertResolver {
    is_asked: Arc<AtomicBool>,
    certificate: Arc<dyn ResolvesClientCert>,
}

impl ResolvesClientCert for ClientCertResolver {
    fn resolve(&self, hints: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // Relaxed: read by the task that makes the handshake, after it.
        self.is_asked.store(true, Ordering::Relaxed);
        self.certificate.resolve(hints, schemes)
    }

    fn has_certs(&self) -> bool {
        // Otherwise the resolver would not be called.
        true
    }
}

/// The meaning of an alert after a client certificate.
fn reason(alert: &AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "it does not know the authority that signed it".to_owned(),
        AlertDescription::CertificateExpired => "it has expired".to_owned(),
        AlertDescription::CertificateRevoked => "it was revoked".to_owned(),
        other => format!("alert {other:?}"),
    }
}

fn untrusted(problem: &CertificateError) -> String {
    match problem {
        CertificateError::UnknownIssuer => {
            format!("{problem}: set store.ca to the authority that signed it")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{problem}: renew the server's certificate")
        }
        problem => problem.to_string(),
    }
}

fn certificates(pem: Pem<'_>) -> Result<Vec<CertificateDer<'static>>> {
    let file = pem.file.display();
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.bytes).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(wrong(format!("the file {file} holds no certificate: it must be PEM"))),
        Err(why) => Err(wrong(format!("the file {file} has a bad certificate: {why}"))),
    }
}

fn private_key(pem: Pem<'_>) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem.bytes).map_err(|_| {
        let file = pem.file.display();
        wrong(format!("the file {file} holds no private key: it must be PEM, and not encrypted"))
    })
}

fn from_file(pem: Pem<'_>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|why| {
            wrong(format!("the file {} has a bad certificate: {why}", pem.file.display()))
        })?;
    }
    Ok(roots)
}

fn of_the_system() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // Systems may have malformed certificates. The others are enough.
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

fn wrong(text: String) -> BackendError {
    BackendError::new(Fault::Misconfigured, text)
}
