use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::Timeouts;
use crate::failure::Failure;
use crate::settings::{Scheme, UpstreamUrl};
use spillgate_net::{MaybeTls, tls};

/// Connects to an upstream. Its name is resolved for each connection.
#[derive(Debug)]
pub(super) struct Connector {
    secure: Option<Secure>,
}

#[derive(Debug)]
struct Secure {
    name: ServerName<'static>,
    any: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    Http1,
    /// HTTP/2, or HTTP/1.1 if the upstream chooses that.
    Any,
}

impl Connector {
    pub(super) fn new(url: &UpstreamUrl, trusted: Option<&ClientConfig>) -> Result<Self, String> {
        let Some(trusted) = trusted.filter(|_| url.scheme == Scheme::Https) else {
            return Ok(Self { secure: None });
        };
        let name = ServerName::try_from(url.host.clone())
            .map_err(|_| format!("upstream {url}: the host is not valid in a certificate; use a DNS name or an IP address"))?;
        let offering = |protocols: &[&[u8]]| {
            let mut config = trusted.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        let (any, http1) = (offering(&[tls::H2, tls::HTTP1]), offering(&[tls::HTTP1]));
        Ok(Self { secure: Some(Secure { name, any, http1 }) })
    }

    /// Connects. True if HTTP/2 was negotiated.
    pub(super) async fn connect(
        &self,
        url: &UpstreamUrl,
        speaks: Speaks,
        timeouts: &Timeouts,
    ) -> Result<(MaybeTls, bool), Failure> {
        let connecting = self.open(url, speaks);
        match timeout(timeouts.connect, connecting).await {
            Ok(connected) => connected.map_err(Failure::Connect),
            Err(_) => Err(Failure::ConnectTimeout),
        }
    }

    async fn open(&self, url: &UpstreamUrl, speaks: Speaks) -> io::Result<(MaybeTls, bool)> {
        let stream = match url.host.parse::<IpAddr>() {
            Ok(address) => TcpStream::connect((address, url.port)).await?,
            Err(_) => TcpStream::connect((url.host.as_str(), url.port)).await?,
        };
        // Best effort: without it requests are late.
        let _ = stream.set_nodelay(true);
        let Some(Secure { name, any, http1 }) = &self.secure else {
            return Ok((MaybeTls::Plain(stream), url.scheme == Scheme::H2c));
        };
        let config = if speaks == Speaks::Any { any } else { http1 };
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name.clone(), stream).await?;
        let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(tls::H2);
        Ok((MaybeTls::tls(stream), speaks_http2))
    }
}
