//! Clients that are connected and have nothing to ask.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For everything else that the tests of a process have open.
const OTHERS: usize = 500;

/// Lets this process have sockets for so many clients, as far as the system does, and
/// tells for how many.
pub(super) fn room_for(clients: usize) -> usize {
    let wanted = (clients + OTHERS) as u64;
    let granted = getrlimit(Resource::Nofile);
    if granted.current.is_none_or(|current| current >= wanted) {
        return clients;
    }
    let most = granted.maximum.map_or(wanted, |most| most.min(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..granted }).unwrap();
    let room = usize::try_from(most).unwrap().saturating_sub(OTHERS).min(clients);
    if room < clients {
        eprintln!("only {room} idle clients, not {clients}: raise the limit of open files");
    }
    room
}

/// Connects so many clients, each of which asks once and hears an answer.
pub(super) fn connect(address: SocketAddr, count: usize, request: &str) -> Vec<TcpStream> {
    // As many as the system keeps for a server that has not come to accept them.
    const AT_ONCE: usize = 100;
    let mut clients = Vec::with_capacity(count);
    while clients.len() < count {
        let begin = clients.len();
        for _ in 0..AT_ONCE.min(count - begin) {
            let mut client = TcpStream::connect(address).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            client.write_all(request.as_bytes()).unwrap();
            clients.push(client);
        }
        clients[begin..].iter_mut().for_each(hear);
    }
    clients
}

/// Hears an answer. None of those that are asked for here is as long as this.
fn hear(client: &mut TcpStream) {
    assert_ne!(client.read(&mut [0; 4096]).unwrap(), 0, "the server hung up");
}

/// Asks on every connection once more: all of them are still served.
pub(super) fn ask_all(clients: &mut [TcpStream], request: &str) {
    for client in clients {
        client.write_all(request.as_bytes()).unwrap();
        hear(client);
    }
}
