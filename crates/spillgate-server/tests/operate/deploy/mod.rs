//! What is there to deploy is right, as far as that can be seen here.

mod manifests;
mod unit;
