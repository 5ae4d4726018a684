//! The credentials of connections, read from files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::{info, warn};

use super::options::{Login, Password, Sources};
use super::tls::{Pem, TlsClient};
use crate::backend::{BackendError, Fault, Result};

/// Credentials that were read together, and are used together.
#[derive(Debug)]
pub(super) struct Credentials {
    login: Login,
    sentinel_login: Login,
    tls: Option<TlsClient>,
    contents: Contents,
}

/// The credentials of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access<'a> {
    pub(super) login: &'a Login,
    pub(super) tls: Option<&'a TlsClient>,
}

/// The credentials in force, and their sources.
#[derive(Debug)]
pub(super) struct CredentialStore {
    current: ArcSwap<Credentials>,
    state: Mutex<SourceState>,
    /// The timeout of reading files.
    time_out: Duration,
    /// Held while files are read: a read that hangs blocks one thread, not one per attempt.
    reading: Arc<AsyncMutex<()>>,
    /// Notifies connections of new credentials.
    renewed: watch::Sender<()>,
}

#[derive(Debug)]
struct SourceState {
    sources: Sources,
    /// The error of the last read.
    problem: Option<BackendError>,
}

/// The contents of the files.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    password: Option<Password>,
    sentinel_password: Option<Password>,
    authorities: Option<Vec<u8>>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// More than any certificate chain.
const MOST: u64 = 1 << 20;

impl CredentialStore {
    /// Reads all files.
    pub(super) fn new(sources: Sources, time_out: Duration) -> Result<Self> {
        let contents = Contents::read(&sources)?;
        let current = ArcSwap::from_pointee(Credentials::new(&sources, contents)?);
        let state = Mutex::new(SourceState { sources, problem: None });
        let (reading, renewed) = (Arc::default(), watch::Sender::new(()));
        Ok(Self { current, state, time_out, reading, renewed })
    }

    pub(super) fn current(&self) -> Arc<Credentials> {
        self.current.load_full()
    }

    /// Subscribes to changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.renewed.subscribe()
    }

    /// Reads the files again, and returns the credentials in force. If that fails or times out, the
    /// previous ones stay, which is logged once.
    pub(super) async fn refresh(self: &Arc<Self>) -> Arc<Credentials> {
        let reading = async {
            let (store, turn) = (Arc::clone(self), Arc::clone(&self.reading).lock_owned().await);
            let read = move || {
                store.read_again();
                drop(turn);
            };
            // It cannot panic; otherwise the previous credentials stay.
            let _ = spawn_blocking(read).await;
        };
        if timeout(self.time_out, reading).await.is_err() {
            let text = format!("their files were not read in {} ms", self.time_out.as_millis());
            Self::note(&mut self.lock(), Some(BackendError::new(Fault::Misconfigured, text)));
        }
        self.current()
    }

    /// Replaces the sources. Returns whether anything has changed.
    pub(super) fn replace(&self, sources: Sources) -> Result<bool> {
        let contents = Contents::read(&sources)?;
        let mut state = self.lock();
        let is_changed = self.take_up(&sources, contents, state.sources != sources)?;
        *state = SourceState { sources, problem: None };
        Ok(is_changed)
    }

    fn read_again(&self) {
        // Not under the lock: it may hang.
        let sources = self.lock().sources.clone();
        let contents = Contents::read(&sources);
        let mut state = self.lock();
        if state.sources == sources {
            let taken_up = contents.and_then(|read| self.take_up(&sources, read, false));
            Self::note(&mut state, taken_up.err());
        }
    }

    /// Notes the error of the files, if any, and logs changes.
    fn note(state: &mut SourceState, problem: Option<BackendError>) {
        match &problem {
            Some(error) if state.problem != problem => {
                warn!(%error, "cannot read the Redis credentials; keeping the previous ones");
            }
            None if state.problem.is_some() => info!("the Redis credentials can be read again"),
            _ => {}
        }
        state.problem = problem;
    }

    fn take_up(&self, sources: &Sources, contents: Contents, are_other: bool) -> Result<bool> {
        if !are_other && self.current.load().contents == contents {
            return Ok(false);
        }
        self.current.store(Arc::new(Credentials::new(sources, contents)?));
        self.renewed.send_replace(());
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, SourceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Credentials {
    fn new(sources: &Sources, contents: Contents) -> Result<Self> {
        let Sources { is_tls, login, sentinel_login, authorities, client_certificate } = sources;
        if client_certificate.is_some() && !is_tls {
            let text = "a client certificate is for TLS: begin the URL with rediss://";
            return Err(BackendError::new(Fault::Misconfigured, text));
        }
        let with = |login: &Login, password: &Option<Password>| Login {
            password: password.clone().or_else(|| login.password.clone()),
            ..login.clone()
        };
        let (login, sentinel_login) =
            (with(login, &contents.password), with(sentinel_login, &contents.sentinel_password));
        let authorities = authorities.as_deref().zip(contents.authorities.as_deref());
        let authorities = authorities.map(|(file, bytes)| Pem { file, bytes });
        let certificate = client_certificate.as_ref().zip(contents.certificate.as_ref());
        let certificate = certificate.map(|((chain, key), (chain_bytes, key_bytes))| {
            (Pem { file: chain, bytes: chain_bytes }, Pem { file: key, bytes: key_bytes })
        });
        let tls = is_tls.then(|| TlsClient::new(authorities, certificate)).transpose()?;
        Ok(Self { login, sentinel_login, tls, contents })
    }

    /// For Redis servers.
    pub(super) fn of_server(&self) -> Access<'_> {
        Access { login: &self.login, tls: self.tls.as_ref() }
    }

    pub(super) fn of_sentinel(&self) -> Access<'_> {
        Access { login: &self.sentinel_login, tls: self.tls.as_ref() }
    }
}

impl Contents {
    fn read(sources: &Sources) -> Result<Self> {
        let certificate = match &sources.client_certificate {
            Some((chain, key)) => Some((
                read("client certificate", chain)?,
                read("key of the client certificate", key)?,
            )),
            None => None,
        };
        let authorities = sources.authorities.as_deref();
        Ok(Self {
            password: password(&sources.login)?,
            sentinel_password: password(&sources.sentinel_login)?,
            authorities: authorities.map(|file| read("file of authorities", file)).transpose()?,
            certificate,
        })
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

fn password(login: &Login) -> Result<Option<Password>> {
    let Some(file) = &login.password_file else { return Ok(None) };
    let wrong = |why| {
        let text = format!("the password file {} {why}", file.display());
        BackendError::new(Fault::Misconfigured, text)
    };
    let text = String::from_utf8(read("password file", file)?);
    let text = text.map_err(|_| wrong("is not a text"))?;
    match text.trim_end() {
        // As while it is being written.
        "" => Err(wrong("is empty")),
        password => Ok(Some(Password(password.to_owned()))),
    }
}

fn read(what: &str, file: &Path) -> Result<Vec<u8>> {
    read_small(file).map_err(|why| {
        let text = format!("the {what} {} cannot be read: {why}", file.display());
        BackendError::new(Fault::Misconfigured, text)
    })
}

fn read_small(file: &Path) -> io::Result<Vec<u8>> {
    // Before opening: opening a FIFO would block.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST {
        true => Err(io::Error::other("it has more than 1 MiB")),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::client::options::Options;

    #[tokio::test(start_paused = true)]
    async fn files_that_are_not_read_in_time_leave_the_credentials_as_they_were() {
        const TIME_OUT: Duration = Duration::from_millis(250);
        let options = Options::new("redis://user:password@host").unwrap();
        let store = Arc::new(CredentialStore::new(options.sources, TIME_OUT).unwrap());
        let before = store.current();
        // As a read does that hangs.
        let hanging = Arc::clone(&store.reading).lock_owned().await;
        for _ in 0..3 {
            let begin = Instant::now();
            assert!(Arc::ptr_eq(&store.refresh().await, &before));
            assert!(begin.elapsed() < TIME_OUT * 2);
        }
        let problem = store.lock().problem.clone().unwrap();
        assert_eq!(problem.to_string(), "their files were not read in 250 ms");
        drop(hanging);
        tokio::time::resume();
        assert!(Arc::ptr_eq(&store.refresh().await, &before));
        assert_eq!(store.lock().problem, None);
    }
}
