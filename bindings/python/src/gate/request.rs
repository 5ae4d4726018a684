//! Requests as Python has them.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::LazyLock;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use spillgate_policy::{Caller, RequestView};

use crate::errors::{InvalidRequest, invalid};

/// What a policy looks at in a request.
#[derive(Default)]
pub(super) struct Request {
    method: Method,
    path: String,
    headers: HeaderMap,
    peer: Option<IpAddr>,
    host: Option<String>,
    caller: Option<Caller<'static>>,
}

impl Request {
    pub(super) fn new(
        method: &str,
        path: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        peer: Option<&Bound<'_, PyAny>>,
        host: Option<String>,
        caller: Option<&str>,
    ) -> PyResult<Self> {
        Self::read(method, path, headers, peer, host, caller).map_err(invalid_request)
    }

    fn read(
        method: &str,
        path: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        peer: Option<&Bound<'_, PyAny>>,
        host: Option<String>,
        caller: Option<&str>,
    ) -> PyResult<Self> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| invalid(format!("invalid method {method:?}")))?;
        let caller = caller.map(str::parse).transpose().map_err(invalid)?;
        let peer = peer.map(read_address).transpose()?;
        let path = path.map_or_else(|| Ok("/".to_owned()), read_path)?;
        let headers = headers.map_or_else(|| Ok(HeaderMap::new()), read_headers)?;
        Ok(Self { method, path, headers, peer, host, caller })
    }

    pub(super) fn view(&self) -> RequestView<'_> {
        static ROOT: LazyLock<Uri> = LazyLock::new(Uri::default);
        let view = RequestView::new(&self.method, &ROOT, &self.headers, self.peer)
            .with_path(&self.path)
            .with_caller(self.caller.as_ref());
        match &self.host {
            Some(host) => view.with_host(Some(host)),
            None => view,
        }
    }
}

/// A value that no request can have is the client's fault; a wrong type is the program's.
fn invalid_request(error: PyErr) -> PyErr {
    Python::attach(|py| match error.is_instance_of::<PyValueError>(py) {
        true => InvalidRequest::new_err(error.value(py).to_string()),
        false => error,
    })
}

/// The path without its query.
fn read_path(path: &Bound<'_, PyAny>) -> PyResult<String> {
    let bytes = text_or_bytes(path, "a path")?;
    let end = bytes.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(bytes.len());
    let path = bytes.get(..end).unwrap_or_default();
    match std::str::from_utf8(path) {
        Ok(text) => Ok(text.to_owned()),
        // As it would have been sent correctly.
        Err(_) => Ok(path.iter().map(|byte| encoded(*byte)).collect()),
    }
}

fn encoded(byte: u8) -> Cow<'static, str> {
    match byte {
        0x80.. => Cow::Owned(format!("%{byte:02X}")),
        _ => Cow::Owned(char::from(byte).to_string()),
    }
}

fn read_address(peer: &Bound<'_, PyAny>) -> PyResult<IpAddr> {
    let text = peer.str()?;
    let text = text.to_str()?;
    text.parse().map_err(|_| {
        invalid(format!("the peer {text:?} is not an IP address; pass None if it is not known"))
    })
}

/// Headers: a mapping, or pairs of text or bytes.
pub(super) fn read_headers(headers: &Bound<'_, PyAny>) -> PyResult<HeaderMap> {
    let mut read = HeaderMap::new();
    if let Ok(pairs) = headers.cast::<PyList>() {
        // What ASGI servers pass.
        read.reserve(pairs.len().min(128));
        for pair in pairs {
            add_header(&mut read, &pair)?;
        }
        return Ok(read);
    }
    let pairs = match headers.cast::<PyDict>() {
        Ok(headers) => headers.items().into_any(),
        Err(_) if headers.hasattr("items")? => headers.call_method0("items")?,
        Err(_) => headers.clone(),
    };
    for pair in pairs.try_iter()? {
        add_header(&mut read, &pair?)?;
    }
    Ok(read)
}

fn add_header(headers: &mut HeaderMap, pair: &Bound<'_, PyAny>) -> PyResult<()> {
    let (name, value) = match pair.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => (pair.get_item(0)?, pair.get_item(1)?),
        _ => read_pair(pair)?,
    };
    let bytes = text_or_bytes(&name, "the name of a header")?;
    let name = HeaderName::from_bytes(&bytes).map_err(|_| {
        invalid(format!("invalid header name {:?}", String::from_utf8_lossy(&bytes)))
    })?;
    let value = HeaderValue::from_bytes(&latin_1(&value)?)
        .map_err(|_| invalid(format!("header {name} has a control character in its value")))?;
    headers.try_append(name, value).map_err(|_| invalid("a request with too many headers"))?;
    Ok(())
}

/// The two items of a pair that is not a tuple: ASGI allows any iterable.
fn read_pair<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut items = pair.try_iter()?;
    match (items.next().transpose()?, items.next().transpose()?, items.next()) {
        (Some(name), Some(value), None) => Ok((name, value)),
        _ => Err(invalid("a header is not a pair; use (name, value)")),
    }
}

fn text_or_bytes<'a>(value: &'a Bound<'_, PyAny>, what: &str) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Cow::Borrowed(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("{what} of type {kind}; use str or bytes")))
}

/// The value of a header. As text it is Latin-1, as WSGI has it.
fn latin_1<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    let bytes = text_or_bytes(value, "the value of a header")?;
    if bytes.is_ascii() || value.is_instance_of::<PyBytes>() {
        return Ok(bytes);
    }
    let text = value.extract::<String>()?;
    let latin: Result<Vec<u8>, _> =
        text.chars().map(|char| u8::try_from(u32::from(char))).collect();
    latin.map(Cow::Owned).map_err(|_| invalid("a header has a value that is not Latin-1"))
}
