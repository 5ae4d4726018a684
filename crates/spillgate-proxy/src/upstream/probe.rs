use std::sync::Arc;

use http::header::{HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use tracing::{info, warn};

use super::Upstream;
use crate::body::RequestBody;
use crate::failure::Failure;

impl Upstream {
    /// Asks whether the upstream is well: any status of success or redirection says so.
    pub(super) async fn probe(self: &Arc<Self>, path: &PathAndQuery) {
        let answered = self.ask(path).await;
        let is_well = answered.as_ref().is_ok_and(|status| *status < 400);
        if !self.health.asked(is_well) {
            return;
        }
        let upstream = self.url.to_string();
        match answered {
            _ if is_well => info!(upstream, "an upstream is well again"),
            Ok(status) => warn!(upstream, status, "an upstream is not well"),
            Err(error) => warn!(upstream, %error, "an upstream is not well"),
        }
    }

    async fn ask(self: &Arc<Self>, path: &PathAndQuery) -> Result<u16, Failure> {
        let mut request = Request::new(RequestBody::default());
        *request.uri_mut() = Uri::from(path.clone());
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::try_from(self.url.authority.as_str()) {
            headers.insert(HOST, host);
        }
        headers.insert(USER_AGENT, HeaderValue::from_static("spillgate"));
        let answered = self.send(request, false).await.map_err(|unanswered| unanswered.why)?;
        // The rest of the response is of no interest, and goes with its connection.
        Ok(answered.response.status().as_u16())
    }
}
