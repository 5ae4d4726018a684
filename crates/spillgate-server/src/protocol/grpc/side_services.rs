//! Health and reflection.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{Request, Response};
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder;

use super::MESSAGE;
use super::body::Messages;
use super::call::{Call, admit, late};
use super::health::Health;
use super::pipe::pipe;
use super::reply;
use crate::Readiness;

/// Health, and reflection in its two versions.
pub(crate) struct SideServices(Vec<(&'static str, Serve)>);

type Serve = Box<dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync>;
type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// Envoy's `rls.proto` and its imports, compiled by `scripts/descriptor-set`.
const DESCRIPTOR_SET: &[u8] = include_bytes!("descriptor_set.bin");

/// What probes ask, which have no token.
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

impl SideServices {
    pub(crate) fn new(readiness: Arc<Readiness>) -> Self {
        let reflection = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(DESCRIPTOR_SET)
        };
        let mut services = Self(Vec::new());
        let health = HealthServer::new(Health(readiness));
        services.add(health.max_decoding_message_size(MESSAGE));
        // What is written here is right: a test asks for it.
        let _ = reflection()
            .build_v1()
            .map(|service| services.add(service.max_decoding_message_size(MESSAGE)));
        let _ = reflection()
            .build_v1alpha()
            .map(|service| services.add(service.max_decoding_message_size(MESSAGE)));
        services
    }

    fn add<S>(&mut self, service: S)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
        S: NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        self.0.push((S::NAME, Box::new(move |request| Box::pin(service.clone().call(request)))));
    }

    fn find(&self, path: &str) -> Option<&Serve> {
        let (service, _) = path.strip_prefix('/')?.split_once('/')?;
        self.0.iter().find(|(name, _)| *name == service).map(|(_, serve)| serve)
    }
}

impl Call<'_> {
    /// Answers a call of another service than the one that limits.
    pub(super) async fn serve_other(self) {
        let Self { server, peer, head, body, respond, in_progress: _in_progress } = self;
        let path = head.uri.path();
        let admitted = match path {
            HEALTH_CHECK => Ok(()),
            _ => admit(&server.app.access(), peer, &head),
        };
        let found = server.side_services.find(path);
        let found = found.ok_or_else(|| Status::unimplemented("unknown method"));
        match admitted.and(found) {
            Err(status) => drop(reply::send(respond, Err(status))),
            Ok(serve) => {
                let request = Request::from_parts(head, Body::new(Messages(body)));
                // A unary call is answered once its message is complete.
                match timeout(server.bounds.stalled, serve(request)).await {
                    Ok(Ok(response)) => pipe(response, respond, server.bounds.stalled).await,
                    Err(_) => drop(reply::send(respond, Err(late()))),
                }
            }
        }
    }
}

impl fmt::Debug for SideServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
