//! The store that many servers share.

use std::error::Error;
use std::sync::Arc;

use tollgate_redis::engine::{EngineError, Server};
use tracing::{info, warn};

use crate::SharedStore;
use crate::config::StoreSettings;

/// Connects to the store. One that cannot be used is an error, unless the server may start
/// in an outage.
pub(crate) async fn connect(settings: &StoreSettings) -> Result<Arc<SharedStore>, Box<dyn Error>> {
    let sharing = settings.sharing()?;
    let options = settings.options().map_err(|error| unusable(&error))?;
    let engine = match Server::connect(options.clone()).await {
        Ok(engine) => engine,
        Err(error) if settings.start_in_outage => {
            warn!(
                "starting without the store: {error}; limits do what their outage says until it \
                 is there"
            );
            Server::connect_later(options).map_err(|error| unusable(&error))?
        }
        Err(error) => return Err(unusable(&error)),
    };
    if settings.secret.is_none() {
        info!(
            "the store has no secret: whoever can read it can find out whether a caller they \
             guess is there; give every server the same one with TOLLGATE_STORE_SECRET"
        );
    }
    Ok(Arc::new(SharedStore::new(engine, &sharing)?))
}

fn unusable(error: &EngineError) -> Box<dyn Error> {
    format!("the store cannot be used: {error}").into()
}
