//! A node under load whose server goes away, stops, is slow or becomes another.

mod calls;
mod failover;
mod fleet;
mod load;
mod node;
mod outages;
mod scene;
mod shares;
mod stalls;
