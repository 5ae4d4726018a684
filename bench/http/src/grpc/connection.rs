use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tower_service::Service;

use crate::Result;

/// A connection that many streams share. It neither balances nor connects again, as a channel
/// of tonic would: what the client does should be little, and the same for every server.
#[derive(Clone)]
pub struct Connection(http2::SendRequest<Body>);

pub type Client = Grpc<Connection>;

/// Connects, within a runtime.
pub async fn connect(port: u16) -> Result<Client> {
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    let origin = Uri::builder().scheme("http").authority(format!("127.0.0.1:{port}"));
    Ok(Grpc::with_origin(Connection(sender), origin.path_and_query("/").build()?))
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
