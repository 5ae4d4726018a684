//! A thousand tasks in simulated time.

mod quotas;
mod storm;
