//! `hqueue delete_subscriber`

use clap::Args;
use hqueue::{Admin, ErrorCode};

use crate::confirm::Confirm;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::shell::Session;
use crate::values;

/// Remove a subscriber, and with it how far it came.
#[derive(Args, Debug)]
pub(crate) struct DeleteSubscriber {
    #[arg(value_parser = values::queue)]
    queue: String,
    #[arg(value_parser = values::subscriber)]
    subscriber: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    connection: Connection,
}

impl DeleteSubscriber {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self { queue, subscriber, .. } = &self;
        self.confirm.ask(&format!("removes subscriber {subscriber} of queue {queue}, and with it how far it came"))?;
        let admin = self.connection.open().await?.admin();
        let Err(error) = admin.delete_subscriber(queue, subscriber).await else { return Ok(()) };
        if error.code() == Some(ErrorCode::NotFound) && has(&admin, subscriber, queue).await {
            return Err(Failure::failed(format!(
                "{error}; the words are swapped, the queue comes first: {}",
                right(subscriber, queue)
            )));
        }
        Err(error.into())
    }
}

/// Some pages of the original have the words the other way round.
async fn has(admin: &Admin, queue: &str, subscriber: &str) -> bool {
    admin.list_subscribers(queue).await.is_ok_and(|there| there.iter().any(|s| s.name == subscriber))
}

/// The line that was meant, as it is written where we are.
fn right(queue: &str, subscriber: &str) -> String {
    match Session::current() {
        Some(_) => format!("delete_subscriber '{queue}', '{subscriber}'"),
        None => format!("hqueue delete_subscriber {queue} {subscriber} --yes"),
    }
}
