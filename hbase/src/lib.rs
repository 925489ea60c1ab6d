//! The cluster store: messages in HBase, reached through its Thrift2 gateway.
//!
//! [`gateway`] calls the gateway: pooled connections, a deadline for every call, several gateways. [`schema`] is what a queue is in
//! HBase, and [`table`] makes, describes and removes its table. [`store`] is the store behind
//! [`MessageStore`](hqueue_storage::store::MessageStore).

pub mod gateway;
mod generated;
pub mod schema;
pub mod store;
pub mod table;
