//! What a broker without others writes of itself.

use hqueue_coordination::{CoordinationError, Coordinator, NodeKind, create_all};

use crate::paths;
use crate::time::Moment;

/// The broker's own node: who is there, and where.
pub async fn register(coordinator: &dyn Coordinator, name: &str, address: &str) -> Result<(), CoordinationError> {
    create_all(coordinator, paths::BROKERS).await?;
    let payload = serde_json::json!({
        "address": address,
        "started": Moment::now().0,
        "version": env!("CARGO_PKG_VERSION"),
    });
    coordinator.create(&paths::broker(name), payload.to_string().as_bytes(), NodeKind::Ephemeral).await?;
    Ok(())
}
