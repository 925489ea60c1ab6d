//! What became of a message.

use hqueue_protocol::generated::{TErrorCode, TExplanation, TKeptLetter};
use hqueue_protocol::rpc::{ExplainMessage, ExplainMessageArgs, FindDeadLettersArgs};

use super::scanners::read_id;
use super::service::Gateway;
use crate::catalog::{Route, of_peer};
use crate::refusal::Refusal;

impl Gateway {
    pub(super) async fn explain(&self, args: ExplainMessageArgs) -> Result<TExplanation, Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        queue.check_partition(args.partition)?;
        let id = read_id(&args.id)?;
        match self.catalog.route(&queue, args.partition) {
            Route::Here => {
                let subscriber = String::from_utf8_lossy(&args.subscriber);
                let subscriber = Some(&*subscriber).filter(|name| !name.is_empty());
                self.catalog.explain_here(&queue, args.partition, id, subscriber).await
            }
            Route::At(address) if !self.own => {
                let peer = self.catalog.peer(&address)?;
                peer.call_owner::<ExplainMessage>(&args).await.map_err(|error| of_peer(&address, error))
            }
            Route::At(_) => {
                let message = format!("partition {} of queue {} is not at this broker", args.partition, queue.name);
                Err(Refusal::new(TErrorCode::OFFLINE, message))
            }
            Route::Offline(reason) => Err(Refusal::new(TErrorCode::OFFLINE, reason)),
        }
    }

    pub(super) async fn find_letters(&self, args: FindDeadLettersArgs) -> Result<Vec<TKeptLetter>, Refusal> {
        let letters = self.catalog.find(&args.queue_name).await?;
        let id = read_id(&args.id)?;
        self.catalog.letters_of_message_here(&letters, args.partition, id).await
    }
}
