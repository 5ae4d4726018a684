use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spillgate_net::Tls;
use spillgate_policy::Changes;
use spillgate_proxy::Proxy;
use spillgate_redis::backend::BackendError;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::field::{DisplayValue, display};
use tracing::{info, warn};

use super::state::admit;
use crate::App;
use crate::settings::{Config, SettingChange, Settings, Source, Token, fingerprint};

/// Applies changed files to a running server.
#[derive(Debug)]
pub(super) struct Reloader {
    source: Source,
    begun: Settings,
    token: Token,
    app: Arc<App>,
    tls: Option<Arc<Tls>>,
    proxy: Option<Arc<Proxy>>,
    /// The settings in force. Held during a reload.
    current: Mutex<Settings>,
    /// The fingerprint of the files when they were last loaded, or just before.
    seen: AtomicU64,
}

struct Reloaded {
    policy: Changes,
    settings: Vec<SettingChange>,
    /// Changed since the start, and not applied.
    needs_restart: Vec<SettingChange>,
    has_same_text: bool,
}

/// Reloads on a blocking thread: files are read, and counters may have to move.
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

    pub(super) fn seen(&self) -> u64 {
        // Relaxed: with an older one, the watcher looks again.
        self.seen.load(Ordering::Relaxed)
    }

    /// The files that a reload would read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.files(&self.source)
    }

    /// Applies what the files say now. If anything is wrong with them, nothing changes.
    pub(super) fn reload(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // What is seen before it is read cannot change unseen in between.
        self.seen.store(fingerprint(None, &current.files(&self.source)), Ordering::Relaxed);
        match self.apply(&current) {
            Ok((config, reloaded)) => {
                self.seen.store(config.fingerprint, Ordering::Relaxed);
                self.app.readiness().reloaded();
                reloaded.log();
                *current = config.settings;
            }
            Err(problems) => {
                for problem in &problems {
                    warn!("reload refused: {problem}");
                }
                self.app.readiness().reload_failed(problems.join("\n"));
            }
        }
    }

    fn apply(&self, current: &Settings) -> Result<(Config, Reloaded), Vec<String>> {
        let loaded = self.source.load(Some(&self.begun));
        let (config, policy) = loaded.map_err(|error| error.lines().to_vec())?;
        let one = |error: &dyn ToString| vec![error.to_string()];
        let settings = &config.settings;
        // What can fail comes first.
        let certificate = match (&self.tls, settings.tls()) {
            (Some(_), Some(files)) => Some(files.load().map_err(|error| one(&error))?),
            _ => None,
        };
        let proxy = match (&self.proxy, settings.proxy.clone()) {
            (Some(proxy), Some(settings)) => {
                Some((proxy, proxy.prepare(settings.runtime()).map_err(|error| one(&error))?))
            }
            _ => None,
        };
        let needs_restart = self.begun.changes(settings).into_iter();
        let needs_restart: Vec<_> = needs_restart.filter(|change| change.needs_restart).collect();
        self.renew_credentials(settings, &needs_restart).map_err(|error| one(&error))?;
        let has_same_text = *self.app.policy() == *config.file.text();
        let additions = config.additions.clone();
        let changes = self.app.adopt(policy, config.file.text(), additions);
        let reloaded = Reloaded {
            policy: changes.map_err(|error| one(&error))?,
            settings: current.changes(settings),
            needs_restart,
            has_same_text,
        };
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate) {
            tls.renew(&certificate);
        }
        if let Some((proxy, state)) = proxy {
            proxy.adopt(state);
        }
        // Listeners stay as they are, and so does who can reach them.
        let Settings { http, resp, grpc, admin, .. } = self.begun;
        let in_force = Settings { http, resp, grpc, admin, ..settings.clone() };
        admit(&self.app, &in_force, settings.token.as_ref().unwrap_or(&self.token));
        Ok((config, reloaded))
    }

    /// Has the store try changed credentials. It keeps the old ones until Redis accepts the new.
    fn renew_credentials(
        &self,
        settings: &Settings,
        needs_restart: &[SettingChange],
    ) -> Result<(), BackendError> {
        let is_same = !needs_restart.iter().any(SettingChange::is_of_store);
        match (self.app.gate().store().shared(), &settings.store) {
            (Some(store), Some(new)) if is_same => {
                store.backend().renew_credentials(new.options()?).map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

impl Reloaded {
    fn log(&self) {
        let Changes { added, removed, restarted, changed, lists, others, by_identity, .. } =
            &self.policy;
        let (added, removed, restarted) = (shown(added), shown(removed), shown(restarted));
        let (changed, lists, policy) = (shown(changed), shown(lists), shown(others));
        let settings = shown(self.settings.iter().filter(|change| !change.needs_restart));
        if !self.policy.is_empty() || settings.is_some() {
            info!(changed, added, removed, restarted, lists, policy, settings, "reloaded");
        } else if self.has_same_text {
            info!("reloaded: nothing changed in the configuration file");
        } else {
            info!("reloaded: no limit, list or setting changed");
        }
        if !by_identity.is_empty() {
            let limits = shown(by_identity);
            warn!(limits, "identity changed: callers who have another name now start afresh");
        }
        if !self.needs_restart.is_empty() {
            warn!(settings = shown(&self.needs_restart), "changed settings need a restart");
        }
    }
}

/// As many as anyone will read in a line.
const MOST: usize = 50;

/// `[api: 3/min → 5/min, login: mode enforce → shadow]`; `None` if there are none.
fn shown<T: Display>(changes: impl IntoIterator<Item = T>) -> Option<DisplayValue<String>> {
    let mut texts: Vec<_> = changes.into_iter().map(|change| change.to_string()).collect();
    if let Some(more) = texts.len().checked_sub(MOST).filter(|more| *more > 0) {
        texts.truncate(MOST);
        texts.push(format!("and {more} more"));
    }
    (!texts.is_empty()).then(|| display(format!("[{}]", texts.join(", "))))
}

/// How often files are read. A change is applied once it is this old: the writer may not be done.
const PERIOD: Duration = Duration::from_millis(500);

/// Reloads whenever files differ from the last reload, forever. Contents are compared: behind a
/// symbolic link, as in a ConfigMap, times and inodes are no help.
pub(super) async fn watch(reloader: Arc<Reloader>) {
    let mut last = reloader.seen();
    loop {
        sleep(PERIOD).await;
        let files = reloader.files();
        // Nothing there can panic; nothing new then.
        let Ok(now) = spawn_blocking(move || fingerprint(None, &files)).await else { continue };
        if now != reloader.seen() && now == last {
            in_background(&reloader).await;
        }
        last = now;
    }
}
