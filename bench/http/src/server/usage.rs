use axum::http::StatusCode;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// The CPU time of this process, user and system: µs.
pub async fn tell() -> Result<String, StatusCode> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds().to_string())
}
