use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::Outcome;

/// An HTTP client that prints a line for each request: what was asked, and what came back.
#[derive(Clone, Debug)]
pub struct Client {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    url: String,
}

/// A request to be sent: it is, when it is awaited.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Ask {
    client: Client,
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

/// What came back. [`Display`](fmt::Display) shows all of it.
#[derive(Debug)]
pub struct Reply {
    /// The status, which can be compared with a number.
    pub status: StatusCode,
    /// The body.
    pub body: String,
    headers: HeaderMap,
}

/// The headers of replies that a line has room for.
const SHOWN: [&str; 3] = ["ratelimit", "retry-after", "x-tokens-used"];

impl Client {
    pub(crate) fn new(url: String) -> Self {
        Self::connecting_by(HttpConnector::new(), url)
    }

    fn connecting_by(connector: HttpConnector, url: String) -> Self {
        Self { http: legacy::Client::builder(TokioExecutor::new()).build(connector), url }
    }

    /// A client at another address of this machine. All that begin with 127 are its own
    /// on Linux; other systems have to be told.
    pub fn at(&self, address: [u8; 4]) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_local_address(Some(address.into()));
        Self::connecting_by(connector, self.url.clone())
    }

    /// Where the server is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks for a page.
    pub fn get(&self, path: &str) -> Ask {
        self.ask(Method::GET, path, String::new())
    }

    /// Sends a text or the fields of a form, as `curl -d` does.
    pub fn post(&self, path: &str, body: impl Into<String>) -> Ask {
        self.ask(Method::POST, path, body.into())
    }

    fn ask(&self, method: Method, path: &str, body: String) -> Ask {
        Ask { client: self.clone(), method, path: path.to_owned(), headers: Vec::new(), body }
    }
}

impl Ask {
    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    async fn send(self) -> Outcome<Reply> {
        let mut line = format!("{} {}", self.method, self.path);
        let mut request = Request::builder().method(self.method);
        for (name, value) in self.headers {
            line.push_str(&format!("  {name}: {value}"));
            request = request.header(name, value);
        }
        if !self.body.is_empty() {
            line.push_str(&format!("  {}", self.body));
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let request = request.uri(format!("{}{}", self.client.url, self.path));
        let sent = self.client.http.request(request.body(self.body.into())?).await;
        let response = sent.inspect_err(|_| println!("{line:<52}  nobody is there"))?;
        let (parts, body) = response.into_parts();
        let body = String::from_utf8(body.collect().await?.to_bytes().into())?;
        let reply = Reply { status: parts.status, headers: parts.headers, body };
        println!("{line:<52}  {}{}", reply.status, reply.shown());
        Ok(reply)
    }
}

impl IntoFuture for Ask {
    type Output = Outcome<Reply>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl Reply {
    /// The values of a header; empty if it is not there.
    pub fn header(&self, name: &str) -> String {
        let values = self.headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
        values.collect::<Vec<_>>().join(", ")
    }

    fn shown(&self) -> String {
        let there = SHOWN.iter().filter(|name| self.headers.contains_key(**name));
        there.map(|name| format!("  {name}: {}", self.header(name))).collect()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    {}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "    {name}: {}", value.to_str().unwrap_or("?"))?;
        }
        write!(f, "\n    {}", self.body)
    }
}
