//! The live page: what is served at `/` to a browser, and its files.
//!
//! The files hold no data, so anyone may read them. What they show comes from `/v1/status` and other
//! routes, whose access rules count.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};

use super::problem::Problem;
use super::reply::{Reply, content};

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(super) const STYLE: &str = "text/css; charset=utf-8";
pub(super) const SVG: &str = "image/svg+xml";

/// Everything comes from this server, nothing is inline, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! files {
    ($($name:literal,)*) => {
        /// The files of the page, by name.
        static FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("page/", $name))),)*];
    };
}

files! {
    "access.js",
    "actions.js",
    "adaptive.js",
    "api.js",
    "app.js",
    "axis.js",
    "callers.js",
    "chart.js",
    "charts.css",
    "connection.js",
    "dialogs.css",
    "dialogs.js",
    "dom.js",
    "events.js",
    "explain.js",
    "format.js",
    "histogram.js",
    "history.js",
    "icon.svg",
    "limits.js",
    "live.js",
    "operator.js",
    "page.css",
    "page.html",
    "rows.js",
    "sparkline.js",
    "summary.js",
    "tables.css",
    "theme.css",
    "theme.js",
    "traffic.js",
    "upstreams.js",
    "welcome.js",
}

pub(super) fn page() -> Result<Reply, Problem> {
    let mut page = file("page.html")?;
    let headers = page.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    Ok(page)
}

pub(super) fn file(name: &str) -> Result<Reply, Problem> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    let (name, text) = found.ok_or_else(|| Problem::not_found("the page has no such file"))?;
    let content_type = match name.rsplit_once('.') {
        Some((_, "js")) => SCRIPT,
        Some((_, "css")) => STYLE,
        Some((_, "svg")) => SVG,
        _ => HTML,
    };
    let mut reply = content(content_type, *text);
    // A new version of the server brings a new page.
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    for (name, value) in [
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (opener, "same-origin"),
    ] {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocol/http/page");
        let files = std::fs::read_dir(folder).unwrap();
        let there: BTreeSet<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        let served: BTreeSet<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(served, there);
    }
}
