//! A real Envoy that asks, with the configuration that the documentation recommends.

mod failure;
mod instance;
mod requests;
mod spelling;
