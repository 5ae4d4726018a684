//! Servers that tests look at.

use serde_json::{Value, json};

use super::state::State;
use super::status::Status;

pub(super) fn status(json: &Value) -> Status {
    serde_json::from_value(json.clone()).unwrap()
}

/// What a server says that has been asked this often before, once per second.
pub(super) fn busy(seconds: u64) -> Value {
    let time = 1_763_431_200 + seconds;
    let allowed_in = |second: u64| 40 + second % 20 * 3;
    let denied_in = |second: u64| if second.is_multiple_of(3) { 7 } else { 2 };
    let (allowed, denied) = (allowed_in(seconds), denied_in(seconds));
    let all_allowed: u64 = 117_000 + (0..=seconds).map(allowed_in).sum::<u64>();
    let all_denied: u64 = 1234 + (0..=seconds).map(denied_in).sum::<u64>();
    let caller = |limit: &str, name: &str, denied: u64, error: u64| {
        json!({
            "limit": limit, "caller": format!("caller={name}"), "denied": denied, "shadow_denied": 0,
            "error": error, "allowed": 400, "ban": name,
            "values": if limit == "everything" { json!([]) } else { json!([name]) },
        })
    };
    json!({
        "time": time as f64 + 0.5, "version": "0.1.0", "uptime": 93_784.0 + seconds as f64,
        "phase": "ready", "reload_failure": null,
        "second": { "allowed": allowed, "denied": denied, "shadow_denied": 1, "shed": 0,
            "unlimited": 3, "blocked": 0, "banned": 0 },
        "decision": { "p50": 1.2e-7, "p99": 9e-7 },
        "limits": [
            { "name": "api", "quota": "10/s burst 20", "algorithm": "token-bucket", "per": "caller",
              "mode": "enforce", "allowed": all_allowed, "denied": all_denied,
              "shadow_denied": 0, "shed": 0,
              "second": { "allowed": allowed, "denied": denied, "shadow_denied": 0, "shed": 0 },
              "callers": 1200, "capacity": 100_000, "evictions": 0,
              "used": [80, 40, 20, 10, 5, 5, 0, 0, 1, 9, 30] },
            { "name": "everything", "quota": "1000/s", "algorithm": "sliding-window",
              "per": "global", "mode": "shadow", "allowed": 900_000, "denied": 0,
              "shadow_denied": 12, "shed": 0,
              "second": { "allowed": 5, "denied": 0, "shadow_denied": 1, "shed": 0 },
              "callers": 1, "capacity": 1, "evictions": 0,
              "used": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
            { "name": "service", "quota": "adaptive", "algorithm": "concurrency", "per": "global",
              "mode": "enforce", "allowed": 77, "denied": 0, "shadow_denied": 0, "shed": 4,
              "second": { "allowed": 1, "denied": 0, "shadow_denied": 0, "shed": 0 },
              "callers": null, "capacity": null, "evictions": null, "held": 31, "expired": 0,
              "used": [],
              "adaptive": { "kind": "concurrency", "controller": "auto", "signal": "latency",
                  "signal-value": 0.0123, "limit": 255.0, "min": 10.0, "max": 500.0,
                  "reason": "latency rose", "changes": 12, "refused": 4 } },
        ],
        "more_limits": 0,
        "top": { "seconds": 312.4, "callers": [
            caller("api", "203.0.113.7", 1000 + 4 * seconds, 3),
            caller("api", "198.51.100.23", 400, 0),
            caller("everything", "2001:db8::1", 20 + seconds, 12),
        ] },
        "bans": { "enforced": 1, "shadow": 0, "evicted": 0 },
        "store": { "kind": "redis", "state": "up", "outage": null, "warning": null, "mismatch": null },
        "upstreams": [
            { "url": "http://127.0.0.1:3000", "healthy": true, "in_flight": 2, "p50": 0.012,
              "p99": 0.2, "limit": 12.0, "reason": "latency rose" },
            { "url": "http://127.0.0.1:3001", "healthy": false, "in_flight": 0, "p50": null,
              "p99": null, "limit": null, "reason": null },
        ],
    })
}

/// After a minute and a half.
pub(super) fn watched() -> State {
    let mut state = State::default();
    (0..90).for_each(|second| state.apply(status(&busy(second))));
    let bans = json!([{ "caller": "203.0.113.99", "reason": "credential stuffing", "count": 2,
        "mode": "enforce", "expires": "2026-01-01T00:00:00Z", "expires_in": 1234.5 }]);
    (state.bans, state.is_revealed) = (Some(serde_json::from_value(bans).unwrap()), true);
    state
}
