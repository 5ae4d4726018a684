//! What the servers among the examples share: a visitor.
//!
//! Each of them is a program that, by default, serves on a free port of this machine,
//! is visited by a script, and fails if anything came back that should not have. With
//! `--serve [ADDRESS]` nobody visits: it serves until it is stopped.

mod client;

use std::error::Error;
use std::net::SocketAddr;

use tokio::net::TcpListener;

pub use self::client::{Ask, Client, Reply};

/// What scripts, and the programs that play them, end with.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// A visit to a server that is about to start.
#[derive(Debug)]
pub struct Visit {
    address: SocketAddr,
    serves: bool,
}

impl Visit {
    /// Reads the command line, and opens the port for the server.
    ///
    /// # Errors
    ///
    /// If the command line cannot be understood, or the port cannot be had.
    pub async fn begin() -> Outcome<(TcpListener, Self)> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (serves, address) = match arguments.as_slice() {
            [] => (false, "127.0.0.1:0"),
            ["--serve"] => (true, "127.0.0.1:8080"),
            ["--serve", address] => (true, *address),
            _ => return Err("usage: [--serve [ADDRESS]], such as --serve 127.0.0.1:8080".into()),
        };
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, Self { address, serves }))
    }

    /// Starts the server and plays the script, or, with `--serve`, says what to try and
    /// serves. In `to_try`, `URL` stands for where the server is.
    ///
    /// # Errors
    ///
    /// Those of the script, or of the server.
    pub async fn play<E: Error + Send + Sync + 'static>(
        self,
        server: impl IntoFuture<Output = Result<(), E>, IntoFuture: Send + 'static>,
        to_try: &str,
        script: impl AsyncFnOnce(Client) -> Outcome,
    ) -> Outcome {
        let url = format!("http://{}", self.address);
        if self.serves {
            println!("Serving at {url}. Try:\n\n{}\n", to_try.trim().replace("URL", &url));
            return Ok(server.into_future().await?);
        }
        let server = tokio::spawn(server.into_future());
        script(Client::new(url)).await?;
        server.abort();
        match server.await {
            Ok(ended) => Ok(ended?),
            Err(error) if error.is_cancelled() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits as long as a `Retry-After` says.
///
/// # Errors
///
/// If the reply has none.
pub async fn wait_for(reply: &Reply) -> Outcome {
    let seconds = reply.header("retry-after").parse()?;
    println!("... {seconds} s later");
    tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    Ok(())
}
