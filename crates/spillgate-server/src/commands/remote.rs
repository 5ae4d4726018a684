//! A running server, queried over HTTP.
//!
//! A command that asks one flattens [`ServerArgs`], and sends what it asks with [`Remote::send`].

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::uri::{Authority, Uri};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use spillgate_net::tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::escape::shown;

/// How to reach a running server.
#[derive(Args)]
pub(super) struct ServerArgs {
    /// URL of the running server
    #[arg(long, short, value_name = "URL", default_value = "http://127.0.0.1:8390", global = true)]
    server: String,
    /// Bearer token of the server
    #[arg(
        long,
        env = "SPILLGATE_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        global = true
    )]
    token: Option<String>,
    /// CA certificate (PEM) of the server, for https://
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
}

impl ServerArgs {
    pub(super) fn remote(&self) -> Result<Remote, String> {
        Remote::new(&self.server, self.token.as_deref(), self.ca.as_deref())
    }
}

/// A running server.
pub(super) struct Remote {
    authority: Authority,
    token: Option<String>,
    tls: Option<TlsConnector>,
}

/// A request to a running server.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    /// The path, with its segments [encoded](segment).
    pub(super) path: &'a str,
    /// JSON, if there is a body.
    pub(super) body: Option<String>,
    /// The type of the response.
    pub(super) accept: &'static str,
}

impl<'a> Ask<'a> {
    /// Asks for JSON, without a body.
    pub(super) fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, body: None, accept: "application/json" }
    }

    pub(super) fn body(self, body: &impl ToString) -> Self {
        Self { body: Some(body.to_string()), ..self }
    }

    pub(super) fn accept(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }
}

/// Lists may be long.
const LONGEST: usize = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

/// A text as a segment of a path.
pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

impl Remote {
    pub(super) fn new(url: &str, token: Option<&str>, ca: Option<&Path>) -> Result<Self, String> {
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
        Ok(Self { authority, token: token.map(str::to_owned), tls })
    }

    /// Where it listens, as its URL says.
    pub(super) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The body of a successful response; empty if it has none.
    pub(super) async fn send(&self, ask: Ask<'_>) -> Result<String, Box<dyn Error>> {
        let ask = async {
            let socket = self.connect().await?;
            let Some(tls) = &self.tls else { return self.exchange(socket, ask).await };
            let name = ServerName::try_from(self.authority.host().to_owned())?;
            let socket = tls.connect(name, socket).await.map_err(|error| self.cannot(&error))?;
            self.exchange(socket, ask).await
        };
        timeout(TIMEOUT, ask).await.map_err(|_| self.cannot(&io::ErrorKind::TimedOut.into()))?
    }

    async fn connect(&self) -> Result<TcpStream, String> {
        let port = self.authority.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        // An address of IPv6 is in brackets here, and not there.
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        TcpStream::connect((host, port)).await.map_err(|error| self.cannot(&error))
    }

    async fn exchange(
        &self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        ask: Ask<'_>,
    ) -> Result<String, Box<dyn Error>> {
        let mut message = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(HOST, self.authority.as_str())
            .header(ACCEPT, ask.accept);
        if ask.body.is_some() {
            message = message.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            message = message.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let message = message.body(Full::new(Bytes::from(ask.body.unwrap_or_default())))?;
        let (mut client, connection) = http1::handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        let (head, body) = client.send_request(message).await?.into_parts();
        let body = Limited::new(body, LONGEST).collect().await;
        let body = body.map_err(|error| self.refused(&error.to_string()))?.to_bytes();
        match head.status {
            StatusCode::OK | StatusCode::NO_CONTENT => {
                Ok(String::from_utf8_lossy(&body).into_owned())
            }
            StatusCode::UNAUTHORIZED => Err(Box::new(Unauthorized(self.authority.clone()))),
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

/// The server wants another token than it was sent.
#[derive(Debug)]
pub(super) struct Unauthorized(Authority);

impl fmt::Display for Unauthorized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(server) = self;
        write!(f, "{server} refused: the token is missing or wrong; ")?;
        f.write_str("set SPILLGATE_TOKEN to the server's")
    }
}

impl Error for Unauthorized {}

/// What is wrong, according to a problem document, which may quote what a caller chose.
fn detail(body: &[u8]) -> Option<String> {
    let document: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(shown(document.get("detail")?.as_str()?))
}
