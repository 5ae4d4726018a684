use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use crate::pace::Pacer;
use crate::retry::RetryRules;
use crate::status::{BudgetStatus, Counts};
use crate::{Client, ClientBuilder, CloneBody};

/// Paces outgoing requests, learns from responses, and retries what is safe: a tower layer for HTTP
/// clients.
///
/// Clones of the layer, and all clients that they make, share one budget per host.
///
/// ```
/// use spillgate_client::ClientLayer;
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # let http_client = service_fn(async |_: http::Request<String>| {
/// #     Ok::<_, std::convert::Infallible>(http::Response::new("hello"))
/// # });
/// let layer = ClientLayer::new("100/s burst 20")?;
/// let client = ServiceBuilder::new().layer(layer.clone()).service(http_client);
///
/// let request = http::Request::get("https://api.example.com/things").body(String::new())?;
/// let response = client.oneshot(request).await?;
/// assert_eq!(response.status(), 200);
/// assert_eq!(layer.counts().sent, 1);
/// # Ok(())
/// # }
/// ```
pub struct ClientLayer<R = CloneBody> {
    pub(crate) shared: Arc<Shared<R>>,
}

/// What all clients of a layer have in common.
#[derive(Debug)]
pub(crate) struct Shared<R> {
    pub(crate) pacer: Arc<Pacer>,
    pub(crate) rules: RetryRules,
    pub(crate) deadline: Option<Duration>,
    pub(crate) replay: R,
}

impl ClientLayer {
    /// A layer with defaults that sends no more than a quota to each host, and less if the far side
    /// announces less.
    ///
    /// # Errors
    ///
    /// If the quota is invalid.
    pub fn new(quota: &str) -> Result<Self, spillgate::Error> {
        Self::builder().quota(quota).build()
    }

    /// A layer with defaults that knows no quota in advance, and learns what the far side announces.
    #[must_use]
    pub fn learning() -> Self {
        ClientBuilder::default().build_without_quota()
    }

    /// A builder for a layer.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl<R> ClientLayer<R> {
    /// What is known of each far side, in the order of their names.
    #[must_use]
    pub fn status(&self) -> Vec<BudgetStatus> {
        self.shared.pacer.status()
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.pacer.settings().counters.read()
    }
}

impl<I, R> Layer<I> for ClientLayer<R> {
    type Service = Client<I, R>;

    fn layer(&self, inner: I) -> Self::Service {
        Client::new(inner, Arc::clone(&self.shared))
    }
}

impl<R> Clone for ClientLayer<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<R> fmt::Debug for ClientLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLayer")
            .field("pacer", &self.shared.pacer)
            .field("rules", &self.shared.rules)
            .finish_non_exhaustive()
    }
}
