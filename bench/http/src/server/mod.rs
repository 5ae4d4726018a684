//! An axum server with one handler, and one of the layers to be compared.

mod allowance;
mod layers;
mod usage;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::{io, process, thread};

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

pub use self::allowance::Allowance;
use crate::Result;
use crate::kind::Kind;

/// Where the handler is that is limited.
pub const HELLO: &str = "/hello";

/// Where the server tells its CPU time, and no layer is in the way.
pub const USAGE: &str = "/__usage";

/// Serves, on a free port that it prints, until the standard input ends.
///
/// One thread: the client has the other processor, and all CPU time is a request's.
pub fn run(kind: Kind, allowance: Allowance) -> Result<()> {
    let app = app(kind, allowance)?;
    thread::spawn(end_with_input);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?.port());
        io::stdout().flush()?;
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        Ok(axum::serve(listener, service).await?)
    })
}

pub fn app(kind: Kind, allowance: Allowance) -> Result<Router> {
    let hello = Router::new().route(HELLO, get(async || "hello, world"));
    Ok(layers::add(hello, kind, allowance)?.route(USAGE, get(usage::tell)))
}

/// Whoever started this server holds the other end of its input.
fn end_with_input() {
    let _ = io::stdin().read_to_end(&mut Vec::new());
    process::exit(0);
}
