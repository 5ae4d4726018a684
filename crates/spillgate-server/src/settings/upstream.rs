//! Values of the proxy.

use spillgate_proxy::{HostHeader, UpstreamUrl};

use super::value::{Value, words};

impl Value for UpstreamUrl {
    type Bound = ();
    const PLACEHOLDER: &'static str = "URL";
    const EXAMPLE: &'static str = "http://127.0.0.1:3000";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(str::to_owned)
    }
}

words!(HostHeader, ["keep" => HostHeader::Keep, "upstream" => HostHeader::Upstream]);
