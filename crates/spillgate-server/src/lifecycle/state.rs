//! What a server begins with: what its policy says, and what was spent before.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use spillgate::{Clock, KeyedState, Seed, SystemClock, WhenFull};
use spillgate_policy::Gate;
use spillgate_policy::store::Memory;
use tracing::{error, info};

use crate::protocol::resp::{Endpoint, Throttle};
use crate::settings::{Config, Listen, Settings, Token};
use crate::snapshot::{self, Moment, SnapshotFile};
use crate::{Access, AnyStore, App, SharedStore};

type State = (Gate<AnyStore>, Throttle);

/// A server that has everything but clients.
pub(super) fn app(
    config: &Config,
    token: &Token,
    snapshot: Option<&SnapshotFile>,
    shared: Option<Arc<SharedStore>>,
) -> Result<App, Box<dyn Error>> {
    let settings = &config.settings;
    let origin = Origin { config, shared };
    let (gate, throttle) = match snapshot {
        None => origin.empty(None)?,
        Some(file) => origin.restored(file)?,
    };
    let gate = Arc::new(gate);
    let endpoint = Endpoint::new(throttle, Arc::clone(&gate))
        .timeouts(settings.timeouts)
        .buffers(settings.resp_buffers);
    let app = App::new(gate, config.file.text(), endpoint)
        .with_folder(config.file.path().and_then(Path::parent).unwrap_or(Path::new("")))
        .with_additions(config.additions.clone())
        .with_bounds(settings.bounds)
        .with_tls(settings.tls.is_some())
        .with_reservations(settings.reservations);
    admit(&app, settings, token);
    Ok(app)
}

/// Lets those in who may, from now on.
pub(super) fn admit(app: &App, settings: &Settings, token: &Token) {
    let secret = token.secret();
    match settings.resp.is_public() {
        // Also if the token has gone from the settings: the socket is as public as before.
        true => app.resp().set_password(secret.clone()),
        // One that was made for this run is for operators; nobody gave it to clients.
        false => {
            let password = settings.token.as_ref().and_then(Token::secret);
            app.resp().set_optional_password(password);
        }
    }
    let access = match secret {
        Some(secret) if settings.http_is_public() => Access::network(secret),
        secret => Access::loopback(secret),
    };
    let access = access
        .hosts(settings.hosts.clone())
        .grpc_from(settings.grpc_from.iter().copied())
        .open_metrics(settings.metrics_open);
    app.set_access(match &settings.auth_from {
        Some(ranges) => access.auth_from(ranges.iter().copied()),
        None => access,
    });
}

/// What the state is made from.
struct Origin<'c> {
    config: &'c Config,
    shared: Option<Arc<SharedStore>>,
}

impl Origin<'_> {
    /// Nobody has spent anything, as far as this server knows.
    fn empty(&self, seed: Option<Seed>) -> Result<State, Box<dyn Error>> {
        let seed = seed.unwrap_or_else(|| KeyedState::new().seed());
        let store = match &self.shared {
            Some(store) => AnyStore::Shared(Arc::clone(store)),
            None => AnyStore::from(Memory::new(SystemClock).with_seed(seed)),
        };
        let gate = Gate::with_store(self.config.policy()?, store)?;
        let hasher = KeyedState::with_seed(seed);
        let Settings { resp, throttle_capacity, .. } = self.config.settings;
        let throttle = match resp {
            Listen::Off => Throttle::off(hasher, SystemClock),
            Listen::At(_) => {
                Throttle::with(throttle_capacity, WhenFull::Evict, hasher, SystemClock)
                    .map_err(|error| format!("throttle-capacity: {error}"))?
            }
        };
        Ok((gate, throttle))
    }

    /// What was spent according to the snapshot. One that cannot be understood is set aside.
    fn restored(&self, file: &SnapshotFile) -> Result<State, Box<dyn Error>> {
        let path = file.path().display();
        let why = match self.read(file).map_err(<dyn Error>::downcast::<snapshot::Error>) {
            Ok(state) => return Ok(state),
            Err(Err(other)) => return Err(other),
            Err(Ok(why)) if why.is_io() => {
                return Err(format!("the snapshot {path} cannot be read: {why}").into());
            }
            Err(Ok(why)) => why,
        };
        let aside = file.set_aside(&why);
        let aside =
            aside.map_err(|error| format!("{path}: {why}; it cannot be renamed: {error}"))?;
        let aside = aside.display();
        error!(
            "the snapshot {path} cannot be used: {why}. It was set aside as {aside}; nobody has spent \
             anything"
        );
        self.empty(None)
    }

    fn read(&self, file: &SnapshotFile) -> Result<State, Box<dyn Error>> {
        let begin = SystemClock.now();
        let Some(mut reader) = file.open()? else { return self.empty(None) };
        let (gate, throttle) = self.empty(Some(reader.seed()))?;
        let now = || Moment::now(&SystemClock);
        let age = reader.moment().until(&now());
        snapshot::restore(&mut reader, &gate, &throttle, now)?;
        let (path, took) = (file.path().display(), SystemClock.now().since(begin));
        info!(%path, ?age, ?took, "put back what was spent");
        Ok((gate, throttle))
    }
}
