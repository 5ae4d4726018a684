use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use spillgate_net::Tls;
use spillgate_policy::Changes;
use spillgate_proxy::Proxy;
use spillgate_redis::backend::BackendError;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::state::admit;
use super::watch::contents;
use crate::App;
use crate::settings::{Config, Listen, Settings, Source, Token};

/// Takes up what has changed in the files of a running server.
#[derive(Debug)]
pub(super) struct Reloader {
    source: Source,
    /// What the server began with.
    begun: Settings,
    token: Token,
    app: Arc<App>,
    tls: Option<Arc<Tls>>,
    proxy: Option<Arc<Proxy>>,
    /// What it goes by now. Held during a reload.
    current: Mutex<Settings>,
    /// What was in the files when they were read last, or just before.
    seen: AtomicU64,
}

/// Reloads on a thread of its own: files are read, and words may have to move.
pub(super) async fn in_background(reloader: &Arc<Reloader>) {
    let reloader = Arc::clone(reloader);
    // If it has panicked, the old policy stays.
    let _ = spawn_blocking(move || reloader.reload()).await;
}

impl Reloader {
    pub(super) fn new(
        source: Source,
        settings: Settings,
        token: Token,
        app: Arc<App>,
        (tls, proxy): (Option<Arc<Tls>>, Option<Arc<Proxy>>),
        seen: u64,
    ) -> Self {
        let current = Mutex::new(settings.clone());
        let seen = AtomicU64::new(seen);
        Self { source, begun: settings, token, app, tls, proxy, current, seen }
    }

    /// A hash of what was in the files when they were read last.
    pub(super) fn seen(&self) -> u64 {
        // Relaxed: whoever sees an older one looks again.
        self.seen.load(Ordering::Relaxed)
    }

    /// The files that a reload would read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.files(&self.source)
    }

    /// Takes up what the files say now. If anything is wrong with them, nothing changes.
    pub(super) fn reload(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // What is seen before it is read cannot change unseen in between.
        self.seen.store(contents(&current.files(&self.source)), Ordering::Relaxed);
        match self.take_up() {
            Ok((settings, changes)) => {
                self.app.readiness().reloaded();
                let Changes { added, removed, restarted, .. } = changes;
                info!(?added, ?removed, ?restarted, "reloaded");
                for key in self.begun.frozen(&settings) {
                    warn!("{key} in [server] has changed, which needs a restart");
                }
                if frozen_store(&self.begun, &settings) {
                    warn!("[store] has changed, which needs a restart");
                }
                if self.begun.proxy_listen() != settings.proxy_listen() {
                    warn!("listen in [proxy] has changed, which needs a restart");
                }
                *current = settings;
            }
            Err(problems) => {
                for problem in &problems {
                    warn!("reload refused: {problem}");
                }
                self.app.readiness().reload_failed(problems.join("\n"));
            }
        }
    }

    fn take_up(&self) -> Result<(Settings, Changes), Vec<String>> {
        let config = self.source.load().map_err(|error| error.problems().to_vec())?;
        let one = |error: &dyn ToString| vec![error.to_string()];
        let config = match self.begun.grpc {
            Listen::Off => config,
            Listen::At(_) => config.with_call_quotas().map_err(|error| one(&error))?,
        };
        let Config { file, policy, additions, settings } = config;
        // What can fail comes first.
        let certificate = match (&self.tls, &settings.tls) {
            (Some(_), Some(files)) => Some(files.load().map_err(|error| one(&error))?),
            _ => None,
        };
        let proxy = match (&self.proxy, settings.proxy.clone()) {
            (Some(proxy), Some(settings)) => {
                Some((proxy, proxy.prepare(settings.runtime).map_err(|error| one(&error))?))
            }
            _ => None,
        };
        self.renew_store(&settings).map_err(|error| one(&error))?;
        let changes = self.app.adopt_with(policy, file.text(), additions);
        let changes = changes.map_err(|error| one(&error))?;
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate) {
            tls.renew(&certificate);
        }
        if let Some((proxy, state)) = proxy {
            proxy.adopt(state);
        }
        // Addresses stay as they are, and who may reach them.
        let Settings { http, resp, grpc, admin, .. } = self.begun;
        let in_force = Settings { http, resp, grpc, admin, ..settings.clone() };
        admit(&self.app, &in_force, settings.token.as_ref().unwrap_or(&self.token));
        Ok((settings, changes))
    }

    /// Has the store take up credentials that have changed. It goes on with the old ones until
    /// the new ones were accepted.
    fn renew_store(&self, settings: &Settings) -> Result<(), BackendError> {
        let store = self.app.gate().store();
        match (store.shared(), &settings.store) {
            (Some(store), Some(new)) if !frozen_store(&self.begun, settings) => {
                store.backend().renew_credentials(new.options()?).map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

/// True if the store that these name is another, or is used in another way.
fn frozen_store(begun: &Settings, settings: &Settings) -> bool {
    match (&begun.store, &settings.store) {
        (Some(begun), Some(settings)) => begun.is_frozen_out(settings),
        (begun, settings) => begun.is_some() != settings.is_some(),
    }
}
