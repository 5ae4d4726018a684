use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, Method, Uri, header};

use crate::Caller;

/// What a policy looks at in a request.
///
/// ```
/// use spillgate_policy::RequestView;
///
/// let (parts, ()) = http::Request::get("/users/7").body(())?.into_parts();
/// let request = RequestView::from_parts(&parts, Some([203, 0, 113, 7].into()));
/// assert_eq!(request.path(), "/users/7");
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct RequestView<'r> {
    method: &'r Method,
    host: Host<'r>,
    path: &'r str,
    headers: &'r HeaderMap,
    peer: Option<IpAddr>,
    caller: Option<&'r Caller<'static>>,
}

/// Where the host is to be found, if anyone asks.
#[derive(Clone, Copy)]
enum Host<'r> {
    /// In the URI, or the header.
    Of(&'r Uri),
    Given(Option<&'r str>),
}

impl<'r> RequestView<'r> {
    /// A request of its parts. The peer is the address at the other end of the
    /// connection, if it is known.
    pub fn new(
        method: &'r Method,
        uri: &'r Uri,
        headers: &'r HeaderMap,
        peer: Option<IpAddr>,
    ) -> Self {
        Self { method, host: Host::Of(uri), path: uri.path(), headers, peer, caller: None }
    }

    /// The request of an HTTP message.
    pub fn from_parts(parts: &'r http::request::Parts, peer: Option<IpAddr>) -> Self {
        Self::new(&parts.method, &parts.uri, &parts.headers, peer)
    }

    /// Sets the path, if it is not that of the URI.
    pub fn with_path(self, path: &'r str) -> Self {
        Self { path, ..self }
    }

    /// Sets the host, if it is not that of the URI or header.
    pub fn with_host(self, host: Option<&'r str>) -> Self {
        Self { host: Host::Given(host), ..self }
    }

    /// Sets the caller, if the program knows it, by a session for example. The policy then does not
    /// identify it.
    pub fn with_caller(self, caller: Option<&'r Caller<'static>>) -> Self {
        Self { caller, ..self }
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &'r Method {
        self.method
    }

    /// The host, perhaps with a port.
    #[must_use]
    pub fn host(&self) -> Option<&'r str> {
        match self.host {
            Host::Of(uri) => host(uri, self.headers),
            Host::Given(host) => host,
        }
    }

    /// The path as it was sent, without the query.
    #[must_use]
    pub fn path(&self) -> &'r str {
        self.path
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &'r HeaderMap {
        self.headers
    }

    /// Who sent the request, if the program knows.
    #[must_use]
    pub fn caller(&self) -> Option<&'r Caller<'static>> {
        self.caller
    }

    /// The address at the other end of the connection.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }
}

/// The host: HTTP/2 names it in the URI, HTTP/1 in a header. If both do, and differ, it
/// cannot be told which of them the service goes by.
fn host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    if !headers.contains_key(header::HOST) {
        return uri.authority().map(Authority::as_str);
    }
    let told = only(headers, &header::HOST)?.to_str().ok()?;
    let is_same = |authority: &Authority| {
        told.eq_ignore_ascii_case(authority.as_str()) || told.eq_ignore_ascii_case(authority.host())
    };
    uri.authority().is_none_or(is_same).then_some(told)
}

/// The value of a header that is there once. One that is there twice is ambiguous:
/// who checked it may have read the other.
pub(crate) fn only(
    headers: &HeaderMap,
    name: impl header::AsHeaderName,
) -> Option<&header::HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

// Headers may hold secrets, so they are not shown.
debug_fields!(self: RequestView<'_> {
    method: self.method,
    host: self.host(),
    path: self.path,
    peer: self.peer,
});
