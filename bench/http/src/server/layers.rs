use axum::Router;
use tollgate_policy::{Gate, Limit, Policy};
use tollgate_tower::{Headers, Metrics, TollgateLayer};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_layer::Identity;

use super::Allowance;
use crate::Result;
use crate::kind::Kind;

/// Every limiter counts by the peer's address, and is set up as its documentation says.
pub fn add(router: Router, kind: Kind, allowance: Allowance) -> Result<Router> {
    const REFUSED: &str = "tower_governor does not take the quota";
    Ok(match kind {
        Kind::Plain => router,
        Kind::NoopLayer => router.layer(Identity::new()),
        Kind::Tollgate => router.layer(tollgate(allowance)?),
        Kind::TollgateXHeaders => {
            router.layer(tollgate(allowance)?.headers(Headers::none().x_rate_limit(true)))
        }
        Kind::TollgateNoHeaders => router.layer(tollgate(allowance)?.headers(Headers::none())),
        Kind::TollgateMetrics => router.layer(tollgate(allowance)?.metrics(Metrics::new())),
        Kind::TowerGovernor => {
            let config = GovernorConfigBuilder::default()
                .period(allowance.interval())
                .burst_size(allowance.burst())
                .use_headers()
                .finish();
            router.layer(GovernorLayer::new(config.ok_or(REFUSED)?))
        }
        Kind::TowerGovernorNoHeaders => {
            let config = GovernorConfigBuilder::default()
                .period(allowance.interval())
                .burst_size(allowance.burst())
                .finish();
            router.layer(GovernorLayer::new(config.ok_or(REFUSED)?))
        }
    })
}

fn tollgate(allowance: Allowance) -> Result<TollgateLayer> {
    let (interval, burst) = (allowance.interval().as_nanos(), allowance.burst());
    let limit = Limit::new("all", format!("1 per {interval} ns burst {burst}"));
    let policy = Policy::builder().limit(limit).build()?;
    Ok(TollgateLayer::new(Gate::new(policy)?))
}
