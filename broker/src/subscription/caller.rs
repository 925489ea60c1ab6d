//! What carries a call to an endpoint.

use std::sync::Arc;

use hqueue_protocol::endpoint::{CallError, EndpointCaller, EndpointMemory, EndpointOptions};
use hqueue_protocol::stored::StoredSlice;

/// A connection to an endpoint; in simulations a consumer that is made up.
#[derive(Debug)]
pub(super) enum Caller {
    Real(EndpointCaller),
    #[cfg(test)]
    Simulated(super::simulation::SimulatedCaller),
}

impl Caller {
    pub(super) fn new(options: EndpointOptions, memory: Arc<EndpointMemory>) -> Self {
        #[cfg(test)]
        if let Some(simulated) = super::simulation::caller_at(&options.address) {
            return Self::Simulated(simulated);
        }
        Self::Real(EndpointCaller::new(options, memory))
    }

    pub(super) async fn consume(&mut self, batch: &[StoredSlice]) -> Result<i32, CallError> {
        match self {
            Self::Real(caller) => caller.consume(batch).await,
            #[cfg(test)]
            Self::Simulated(caller) => caller.consume(batch).await,
        }
    }
}
