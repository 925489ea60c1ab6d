//! `hqueue set_subscriber`

use clap::Args;

use super::subscription_options::Options;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::values;

/// Change options of a subscriber while it is served; those that are not named keep their values.
///
/// All are checked before anything is changed. Calls under way end by the old options, the next ones go by the new ones; where it stands, and
/// how often it has tried, stays. The defaults below are those of add_subscriber.
#[derive(Args, Debug)]
pub(crate) struct SetSubscriber {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::subscriber)]
    subscriber: String,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    connection: Connection,
}

impl SetSubscriber {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let options = self.options.given();
        if options.is_empty() {
            return Err(Failure::usage("nothing is to be changed: name at least one option, such as --batch-messages 10"));
        }
        Ok(self.connection.open().await?.admin().set_subscriber(&self.queue, &self.subscriber, &options).await?)
    }
}
