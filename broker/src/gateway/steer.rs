//! Steering subscriptions, and their dead letters.

use std::sync::Arc;

use hqueue_protocol::generated::{TErrorCode, TRedriven};
use hqueue_protocol::position::Position;
use hqueue_protocol::rpc::{
    AddDeadLetterArgs, DropDeadLetters, DropDeadLettersArgs, RedeliverArgs, RedriveDeadLetters, RedriveDeadLettersArgs,
    SeekSubscriberArgs, SetSubscriberArgs,
};

use super::service::Gateway;
use crate::catalog::{Queue, Route, of_peer};
use crate::dead_letters::dead_letter_queue;
use crate::refusal::Refusal;

/// Where a queue's dead letters are.
enum Letters {
    /// There have never been any.
    None,
    Here(Arc<Queue>),
    At(String),
}

impl Gateway {
    pub(super) async fn set_paused(&self, queue: Vec<u8>, subscriber: Vec<u8>, paused: bool) -> Result<(), Refusal> {
        let queue = self.catalog.find(&queue).await?;
        let subscriber = String::from_utf8_lossy(&subscriber).into_owned();
        if self.own {
            self.catalog.resume_here(&queue, &subscriber);
            return Ok(());
        }
        self.catalog.set_paused(&queue, &subscriber, paused).await
    }

    pub(super) async fn set_subscriber(&self, args: SetSubscriberArgs) -> Result<(), Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        let subscriber = String::from_utf8_lossy(&args.subscriber).into_owned();
        self.catalog.set_options(&queue, &subscriber, &args.options).await
    }

    pub(super) async fn seek(&self, args: SeekSubscriberArgs) -> Result<(), Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        let subscriber = String::from_utf8_lossy(&args.subscriber).into_owned();
        if self.own {
            let position: Position = args.position.parse().map_err(|error| Refusal::invalid(format!("{error}")))?;
            return self.catalog.seek_here(&queue, &subscriber, &position, &args.partitions).await;
        }
        self.catalog.seek(&queue, &subscriber, &args.position, &args.partitions).await
    }

    pub(super) async fn redrive(&self, args: RedriveDeadLettersArgs) -> Result<TRedriven, Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        let subscriber = String::from_utf8_lossy(&args.subscriber).into_owned();
        self.catalog.check_subscriber(&queue, &subscriber).await?;
        match self.letters(&queue).await? {
            Letters::None => Ok(TRedriven { accepted: Some(0), more: Some(false), error: None }),
            Letters::Here(letters) => self.catalog.redrive(&letters, queue.name.as_str(), &subscriber, &args.ids).await,
            Letters::At(address) => {
                let peer = self.catalog.peer(&address)?;
                peer.call_owner::<RedriveDeadLetters>(&args).await.map_err(|error| of_peer(&address, error))
            }
        }
    }

    pub(super) async fn drop_letters(&self, args: DropDeadLettersArgs) -> Result<i32, Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        let subscriber = String::from_utf8_lossy(&args.subscriber).into_owned();
        let dropped = match self.letters(&queue).await? {
            Letters::None => 0,
            Letters::Here(letters) => self.catalog.drop_letters(&letters, &subscriber, &args.ids).await?,
            Letters::At(address) => {
                let peer = self.catalog.peer(&address)?;
                peer.call_owner::<DropDeadLetters>(&args).await.map_err(|error| of_peer(&address, error))?
            }
        };
        if dropped > 0 && !self.own {
            tracing::info!(queue = %queue.name, subscriber, dropped, "dead letters dropped by command");
        }
        if dropped == 0 {
            // Letters may be left of one that was deleted. Whoever has neither letters nor a subscription is a slip of the pen.
            self.catalog.check_subscriber(&queue, &subscriber).await?;
        }
        Ok(dropped)
    }

    async fn letters(&self, queue: &Queue) -> Result<Letters, Refusal> {
        let name = dead_letter_queue(queue.name.as_str());
        let letters = match self.catalog.find(name.as_bytes()).await {
            Ok(letters) => letters,
            Err(refusal) if refusal.code == TErrorCode::NOT_FOUND => return Ok(Letters::None),
            Err(refusal) => return Err(refusal),
        };
        match self.catalog.route(&letters, 0) {
            Route::Here => Ok(Letters::Here(letters)),
            Route::At(address) if !self.own => Ok(Letters::At(address)),
            Route::At(_) => Err(Refusal::new(TErrorCode::OFFLINE, format!("queue {name} is not held by this broker"))),
            Route::Offline(reason) => Err(Refusal::new(TErrorCode::OFFLINE, reason)),
        }
    }

    pub(super) async fn add_letter(&self, args: AddDeadLetterArgs) -> Result<(), Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        self.catalog.keep_letter_here(&queue, args.letter).await
    }

    pub(super) async fn redeliver(&self, args: RedeliverArgs) -> Result<i32, Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        let subscriber = String::from_utf8_lossy(&args.subscriber).into_owned();
        self.catalog.redeliver_here(&queue, &subscriber, args.partition, &args.messages).await
    }
}
