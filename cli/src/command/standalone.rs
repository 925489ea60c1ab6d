//! `hqueue standalone`

use clap::Args;
use hqueue_broker::Coordination;

use super::serving::Serving;
use crate::failure::Failure;

/// Run a broker that keeps everything in one folder and needs nobody else.
///
/// SIGTERM and SIGINT stop it in order; a second one ends it at once.
#[derive(Args, Debug)]
pub(crate) struct Standalone {
    #[command(flatten)]
    serving: Serving,
}

impl Standalone {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.serving.run(Coordination::Embedded, None).await
    }
}
