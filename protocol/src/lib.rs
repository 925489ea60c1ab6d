//! HQueue's contract on the wire.

pub mod client;
pub mod duration;
pub mod endpoint;
pub mod generated;
pub mod id;
pub mod limits;
pub mod names;
mod pieces;
pub mod position;
pub mod rpc;
pub mod server;
pub mod stored;
pub mod wire;
