//! HQueue through its own client library, as an application uses it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hqueue::{HQueue, Listeners, Message, NewMessage, Position, Producer, ProducerOptions, Queue, Subscription, Target};
use tokio::task::JoinSet;

use super::queue_name;
use crate::driver::{Flights, Intake, Link, Load, Place};
use crate::failure::{Failure, Outcome};
use crate::messages::{BareValues, Stamp};
use crate::peers::Hearing;

/// A producer with a connection of its own: batches are put as they come, single messages through the library's gathering producer,
/// which keeps their order however many are under way.
#[derive(Debug)]
struct SdkLink {
    queues: Vec<(Queue, Producer)>,
    values: BareValues,
    puts: Flights,
}

fn failed(doing: &'static str) -> impl Fn(hqueue::Error) -> Failure {
    move |error| Failure::Side(format!("{doing}: {error}"))
}

pub(super) async fn connect(broker: SocketAddr, load: &Load) -> Outcome<Box<dyn Link>> {
    let hqueue = HQueue::connect(&format!("hqueue://{broker}")).await.map_err(failed("connecting"))?;
    let queues = (0..load.queues).map(|number| {
        let queue = hqueue.queue(&queue_name(number)).map_err(failed("opening a queue"))?;
        let producer = queue.producer(ProducerOptions::default()).map_err(failed("making a producer"))?;
        Ok((queue, producer))
    });
    Ok(Box::new(SdkLink {
        queues: queues.collect::<Outcome<_>>()?,
        values: BareValues::new(load.shape),
        puts: Flights::default(),
    }))
}

impl Link for SdkLink {
    fn send(&mut self, place: Place, first: Stamp) -> BoxFuture<'_, Outcome<()>> {
        Box::pin(async move {
            let queue = self.queues.get(usize::from(place.queue)).cloned();
            let (queue, producer) = queue.ok_or_else(|| Failure::Side(format!("no queue {}", place.queue)))?;
            let target = Target::Partition(place.partition.cast_signed());
            let topic = Bytes::from_static(b"t");
            let message = |value| NewMessage::new(topic.clone(), Bytes::copy_from_slice(value));
            let mut messages: Vec<_> = self.values.stamped(first).map(message).collect();
            let put: BoxFuture<'static, Outcome<()>> = match (messages.len(), messages.pop()) {
                (1, Some(message)) => {
                    let pending = producer.enqueue(target, message).await.map_err(failed("a put"))?;
                    Box::pin(async move { pending.placed().await.map(drop).map_err(failed("a put")) })
                }
                (_, last) => {
                    messages.extend(last);
                    Box::pin(async move { queue.put_all(target, &messages).await.map(drop).map_err(failed("a put")) })
                }
            };
            self.puts.launch(put).await;
            Ok(())
        })
    }

    fn answered(&mut self) -> BoxFuture<'_, Outcome<usize>> {
        Box::pin(self.puts.landed())
    }
}

/// Subscribes to everything, as the subscriber with this number.
pub(super) async fn consume(broker: SocketAddr, load: &Load, number: usize, intake: &Arc<Intake>) -> Outcome<Hearing> {
    let hqueue = HQueue::connect(&format!("hqueue://{broker}")).await.map_err(failed("connecting"))?;
    let mut tasks = JoinSet::new();
    for queue in 0..load.queues {
        let queue = hqueue.queue(&queue_name(queue)).map_err(failed("opening a queue"))?;
        let intake = Arc::clone(intake);
        let listener = move |message: &Message| {
            let new = intake.take([&*message.value], intake.now_ns());
            intake.acknowledged(new);
            Ok::<_, Infallible>(())
        };
        let wanted = Subscription::new(format!("receiver{number}")).from(Position::Earliest);
        let mut subscriber = queue.create_subscriber(wanted, Listeners::one(listener));
        subscriber.start().await.map_err(failed("subscribing"))?;
        tasks.spawn(async move {
            // It serves as long as it is not dropped.
            let _held = subscriber;
            std::future::pending::<()>().await;
        });
    }
    Ok(Box::new(tasks))
}
