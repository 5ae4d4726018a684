//! The state that a server starts with: its policy, and counters restored from a snapshot.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use spillgate::{Clock, KeyedState, Seed, SystemClock};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};
use tracing::{error, info};

use crate::settings::{Config, Settings, Token};
use crate::snapshot::{self, Moment, SnapshotFile};
use crate::{Access, AnyStore, App, SharedStore};

pub(super) fn app(
    config: &Config,
    policy: Policy,
    token: &Token,
    snapshot: Option<&SnapshotFile>,
    shared: Option<Arc<SharedStore>>,
) -> Result<App, Box<dyn Error>> {
    let settings = &config.settings;
    let origin = Origin { config, shared };
    let gate = match snapshot {
        None => origin.empty(policy, None)?,
        Some(file) => origin.restored(policy, file)?,
    };
    let app = App::new(Arc::new(gate), config.file.text())
        .with_folder(config.file.path().and_then(Path::parent).unwrap_or(Path::new("")))
        .with_additions(config.additions.clone());
    admit(&app, settings, token);
    Ok(app)
}

pub(super) fn admit(app: &App, settings: &Settings, token: &Token) {
    let secret = token.secret();
    let is_required = settings.resp.is_public();
    let password = match is_required {
        // Also if the token is gone from the settings: the listener is as public as before.
        true => secret.clone(),
        // A generated token is for operators; clients do not have it.
        false => settings.token.as_ref().and_then(Token::secret),
    };
    let access = match secret {
        Some(secret) if settings.http_is_public() => Access::network(secret),
        secret => Access::loopback(secret),
    };
    let access = access
        .hosts(settings.allowed_hosts.clone())
        .grpc_from(settings.grpc_allow.iter().flatten().copied())
        .open_metrics(settings.public_metrics)
        .resp_password(password, is_required);
    app.set_access(match &settings.auth_allow {
        Some(ranges) => access.auth_from(ranges.iter().copied()),
        None => access,
    });
}

struct Origin<'c> {
    config: &'c Config,
    shared: Option<Arc<SharedStore>>,
}

impl Origin<'_> {
    /// No counters, as far as this server knows.
    fn empty(&self, policy: Policy, seed: Option<Seed>) -> Result<Gate<AnyStore>, Box<dyn Error>> {
        let seed = seed.unwrap_or_else(|| KeyedState::new().seed());
        let store = match &self.shared {
            Some(store) => AnyStore::Shared(Arc::clone(store)),
            None => AnyStore::Memory(Memory::new(SystemClock).with_seed(seed)),
        };
        Ok(Gate::with_store(policy, store)?)
    }

    /// The counters of a snapshot. One that cannot be decoded is set aside.
    fn restored(
        &self,
        policy: Policy,
        file: &SnapshotFile,
    ) -> Result<Gate<AnyStore>, Box<dyn Error>> {
        let path = file.path().display();
        let why = match self.read(policy, file).map_err(<dyn Error>::downcast::<snapshot::Error>) {
            Ok(state) => return Ok(state),
            Err(Err(other)) => return Err(other),
            Err(Ok(why)) if why.is_io() => {
                return Err(format!("cannot read snapshot {path}: {why}").into());
            }
            Err(Ok(why)) => why,
        };
        let aside = file.set_aside(&why);
        let aside = aside.map_err(|error| format!("{path}: {why}; cannot rename it: {error}"))?;
        let aside = aside.display();
        error!(
            "cannot use snapshot {path}: {why}; renamed it to {aside}, and started with empty \
             counters"
        );
        self.empty(self.config.compile_again()?, None)
    }

    fn read(&self, policy: Policy, file: &SnapshotFile) -> Result<Gate<AnyStore>, Box<dyn Error>> {
        let begin = SystemClock.now();
        let Some(mut reader) = file.open()? else { return self.empty(policy, None) };
        let gate = self.empty(policy, Some(reader.seed()))?;
        let now = || Moment::now(&SystemClock);
        let age = reader.moment().until(&now());
        let refused = snapshot::restore(&mut reader, &gate, now)?;
        let (path, took) = (file.path().display(), SystemClock.now().since(begin));
        for why in refused {
            error!(%path, "cannot restore a change made at run time: {why}; all else is restored");
        }
        info!(%path, ?age, ?took, "restored snapshot");
        Ok(gate)
    }
}
