//! A running server, queried over HTTP.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::uri::{Authority, Uri};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use spillgate_net::tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// A running server.
pub(super) struct Remote {
    authority: Authority,
    tls: Option<TlsConnector>,
}

/// An explanation has some kilobytes.
const LONGEST: usize = 16 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

impl Remote {
    pub(super) fn new(url: &str, ca: Option<&Path>) -> Result<Self, String> {
        let wrong =
            || format!("invalid server URL {url:?}; write its URL, such as http://127.0.0.1:8390");
        let parts = url.parse::<Uri>().map_err(|_| wrong())?.into_parts();
        let authority = parts.authority.ok_or_else(wrong)?;
        let tls = match (parts.scheme.as_ref().map(http::uri::Scheme::as_str), ca) {
            (Some("http"), _) => None,
            (Some("https"), Some(ca)) => Some(Arc::new(tls::client(ca)?).into()),
            (Some("https"), None) => {
                return Err(
                    "https needs the CA certificate of the server; add --ca FILE".to_owned()
                );
            }
            _ => return Err(wrong()),
        };
        Ok(Self { authority, tls })
    }

    /// What `/v1/explain` says of a request.
    pub(super) async fn explain(
        &self,
        token: Option<&str>,
        request: String,
    ) -> Result<String, Box<dyn Error>> {
        let ask = async {
            let socket = self.connect().await?;
            let Some(tls) = &self.tls else { return self.ask(socket, token, request).await };
            let name = ServerName::try_from(self.authority.host().to_owned())?;
            let socket = tls.connect(name, socket).await.map_err(|error| self.cannot(&error))?;
            self.ask(socket, token, request).await
        };
        timeout(TIMEOUT, ask).await.map_err(|_| self.cannot(&io::ErrorKind::TimedOut.into()))?
    }

    async fn connect(&self) -> Result<TcpStream, String> {
        let port = self.authority.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        // An address of IPv6 is in brackets here, and not there.
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        TcpStream::connect((host, port)).await.map_err(|error| self.cannot(&error))
    }

    async fn ask(
        &self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        token: Option<&str>,
        request: String,
    ) -> Result<String, Box<dyn Error>> {
        let mut message = Request::post("/v1/explain")
            .header(HOST, self.authority.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/plain");
        if let Some(token) = token {
            message = message.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let message = message.body(Full::new(Bytes::from(request)))?;
        let (mut client, connection) = http1::handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        let (head, body) = client.send_request(message).await?.into_parts();
        let body = Limited::new(body, LONGEST).collect().await;
        let body = body.map_err(|error| self.refused(&error.to_string()))?.to_bytes();
        match head.status {
            StatusCode::OK => Ok(String::from_utf8_lossy(&body).into_owned()),
            StatusCode::UNAUTHORIZED => {
                Err(self.refused("it requires its token; set SPILLGATE_TOKEN"))
            }
            status => Err(self.refused(&detail(&body).unwrap_or_else(|| status.to_string()))),
        }
    }

    fn cannot(&self, error: &io::Error) -> String {
        format!("cannot reach {}: {error}", self.authority)
    }

    fn refused(&self, why: &str) -> Box<dyn Error> {
        format!("{} refused: {why}", self.authority).into()
    }
}

/// What is wrong, according to a problem document.
fn detail(body: &[u8]) -> Option<String> {
    let document: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(document.get("detail")?.as_str()?.to_owned())
}
