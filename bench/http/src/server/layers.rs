use axum::Router;
use spillgate_policy::{Gate, Limit, Policy};
use spillgate_tower::{Headers, Metrics, SpillgateLayer};
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
        Kind::Spillgate => router.layer(spillgate(allowance)?),
        Kind::SpillgateXHeaders => {
            router.layer(spillgate(allowance)?.headers(Headers::none().x_rate_limit(true)))
        }
        Kind::SpillgateNoHeaders => router.layer(spillgate(allowance)?.headers(Headers::none())),
        Kind::SpillgateMetrics => router.layer(spillgate(allowance)?.metrics(Metrics::new())),
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

fn spillgate(allowance: Allowance) -> Result<SpillgateLayer> {
    let (interval, burst) = (allowance.interval().as_nanos(), allowance.burst());
    let limit = Limit::new("all", format!("1 per {interval} ns burst {burst}"));
    let policy = Policy::builder().limit(limit).build()?;
    Ok(SpillgateLayer::new(Gate::new(policy)?))
}
