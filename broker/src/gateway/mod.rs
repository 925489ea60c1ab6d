//! What a broker serves to clients on its port: puts, scanners, registrations, administration.

mod admin;
mod put;
mod scanners;
mod service;

pub use service::{Gateway, GatewayOptions};
