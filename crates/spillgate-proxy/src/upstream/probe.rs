use std::sync::Arc;

use http::header::{HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use tracing::{info, warn};

use super::Upstream;
use crate::body::RequestBody;
use crate::failure::Failure;

impl Upstream {
    /// Checks the health of the upstream: any status below 400 passes.
    pub(super) async fn probe(self: &Arc<Self>, path: &PathAndQuery) {
        let answered = self.check(path).await;
        let is_healthy = answered.as_ref().is_ok_and(|status| *status < 400);
        if !self.health.checked(is_healthy) {
            return;
        }
        let upstream = self.url.to_string();
        match answered {
            _ if is_healthy => info!(upstream, "upstream is healthy again"),
            Ok(status) => warn!(upstream, status, "upstream is unhealthy"),
            Err(error) => warn!(upstream, %error, "upstream is unhealthy"),
        }
    }

    async fn check(self: &Arc<Self>, path: &PathAndQuery) -> Result<u16, Failure> {
        let mut request = Request::new(RequestBody::default());
        *request.uri_mut() = Uri::from(path.clone());
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::try_from(self.url.authority.as_str()) {
            headers.insert(HOST, host);
        }
        headers.insert(USER_AGENT, HeaderValue::from_static("spillgate"));
        let answered = self.send(request, false).await.map_err(|unanswered| unanswered.why)?;
        // The rest of the response is discarded with its connection.
        Ok(answered.response.status().as_u16())
    }
}
