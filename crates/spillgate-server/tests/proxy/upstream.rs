//! A service behind the proxy, which does what a test says and keeps what it was sent.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{JoinHandle, spawn};

use spillgate_testing::Port;

use crate::proxy::message::Message;
use crate::proxy::wire::Wire;

/// Ends with the test, and its connections with it.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// What came.
#[derive(Default)]
pub(crate) struct Seen {
    connections: Mutex<Vec<Weak<TcpStream>>>,
    requests: Mutex<Vec<Message>>,
    /// What no proxy may send.
    faults: Mutex<Vec<String>>,
}

impl Upstream {
    /// A service that answers every request by a text that is a whole response.
    pub(crate) fn answering(answer: impl Fn(&Message) -> String + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", answer)
    }

    /// The same at a given address.
    pub(crate) fn at(
        address: impl std::net::ToSocketAddrs,
        answer: impl Fn(&Message) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::listen(address, move |mut wire, seen| {
            while let Some(request) = seen.next(&mut wire) {
                if !request.is_whole || !wire.send(answer(&request)) {
                    return;
                }
            }
        })
    }

    /// A service that treats every connection as it is told.
    pub(crate) fn playing(play: impl Fn(Wire, &Seen) + Send + Sync + 'static) -> Self {
        Self::listen("127.0.0.1:0", play)
    }

    fn listen(
        address: impl std::net::ToSocketAddrs,
        play: impl Fn(Wire, &Seen) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, is_over) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
        let (play, shared, over) = (Arc::new(play), Arc::clone(&seen), Arc::clone(&is_over));
        let accepting = spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let wire = Wire::new(socket);
                shared.connections.lock().unwrap().push(wire.watch());
                let (play, seen) = (Arc::clone(&play), Arc::clone(&shared));
                spawn(move || play(wire, &seen));
            }
        });
        Self { address, seen, is_over, accepting: Some(accepting) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.lock().unwrap().len()
    }

    /// The requests so far. Fails if there was one that no proxy may send.
    pub(crate) fn requests(&self) -> Vec<Message> {
        let faults = self.seen.faults.lock().unwrap();
        assert!(faults.is_empty(), "the upstream was sent {faults:?}");
        self.seen.requests.lock().unwrap().clone()
    }

    /// The only request so far.
    pub(crate) fn request(&self) -> Message {
        let requests = self.requests();
        let [request] = &requests[..] else { panic!("not one request: {requests:#?}") };
        request.clone()
    }
}

impl Seen {
    /// Reads a request and keeps it. `None` at the end, or if there is none that a strict server takes.
    pub(crate) fn next(&self, wire: &mut Wire) -> Option<Message> {
        match wire.request()? {
            Ok(request) => {
                self.requests.lock().unwrap().push(request.clone());
                Some(request)
            }
            Err(fault) => {
                self.faults.lock().unwrap().push(fault);
                None
            }
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let connections = self.seen.connections.lock().unwrap();
        for connection in connections.iter().filter_map(Weak::upgrade) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// A response with a body.
pub(crate) fn ok(body: &str) -> String {
    respond("200 OK", "", body)
}

/// A response with a status, more headers and a body.
pub(crate) fn respond(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

/// An address of loopback at which nobody listens, nor will by chance.
pub(crate) fn nobody() -> Port {
    Port::reserve_on([127, 0, 0, 77].into())
}
