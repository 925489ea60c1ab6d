//! What a broker serves to clients on its port: puts, scanners, fetches, registrations, administration.

mod admin;
mod explain;
mod fetch;
mod forward;
mod put;
mod scanners;
mod service;
mod steer;

pub use service::{Gateway, GatewayOptions};
