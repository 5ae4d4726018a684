//! The Redis that servers share.

use std::error::Error;
use std::sync::Arc;

use spillgate_redis::backend::BackendError;
use spillgate_redis::client::Client;
use tracing::{info, warn};

use crate::SharedStore;
use crate::settings::StoreSettings;

/// Connects to Redis. Fails if it cannot be used, unless the server may start in an outage.
pub(crate) async fn connect(settings: &StoreSettings) -> Result<Arc<SharedStore>, Box<dyn Error>> {
    let sharing = settings.sharing()?;
    let options = settings.options().map_err(|error| unusable(&error))?;
    let backend = match Client::connect(options.clone()).await {
        Ok(backend) => backend,
        Err(error) if settings.start_in_outage => {
            warn!(
                "starting without the store: {error}; limits follow their outage setting until it \
                 can be reached"
            );
            Client::connect_later(options).map_err(|error| unusable(&error))?
        }
        Err(error) => return Err(unusable(&error)),
    };
    if settings.secret.is_none() {
        info!(
            "the store has no secret: anyone who can read Redis can test whether a guessed caller \
             is in it; set the same SPILLGATE_STORE_SECRET on every server"
        );
    }
    Ok(Arc::new(SharedStore::new(backend, &sharing)?))
}

/// Compares policy and secret with the other servers. Fails if `on-mismatch` refuses a difference.
pub(crate) async fn join(store: &SharedStore) -> Result<(), Box<dyn Error>> {
    let Err(error) = store.join().await else { return Ok(()) };
    let differs = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let text = format!(
        "refused to join the servers that use the store: {differs}; give all servers the same secret \
         and limits, or set on-mismatch = \"warn\" in [store] during a rollout"
    );
    Err(text.into())
}

fn unusable(error: &BackendError) -> Box<dyn Error> {
    format!("the store cannot be used: {error}").into()
}
