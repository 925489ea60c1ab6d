//! Who gets the messages of a subscription.

use std::fmt::{self, Display};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::message::Message;

/// Consumes messages. Written with an `async fn`, or as a closure `|message: &Message| -> Result<(), E>`.
///
/// ```
/// use hqueue::{Message, MessageListener};
///
/// struct Counter(std::sync::atomic::AtomicU64);
///
/// impl MessageListener for Counter {
///     type Error = std::convert::Infallible;
///
///     async fn consume(&self, _: &Message) -> Result<(), Self::Error> {
///         self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         Ok(())
///     }
/// }
/// ```
///
/// A message is consumed when every listener has returned `Ok`. An error, or a panic, is a failure from this message on: the broker sends
/// it and what follows again later, to all listeners. Deliveries may come twice; a listener has to bear that.
///
/// Calls of different partitions may run at the same time, those of one partition never do. Code that blocks holds up other
/// subscriptions of the runtime: use `tokio::task::spawn_blocking` for it.
pub trait MessageListener: Send + Sync + 'static {
    type Error: Display;

    fn consume(&self, message: &Message) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

impl<F, E> MessageListener for F
where
    F: Fn(&Message) -> Result<(), E> + Send + Sync + 'static,
    E: Display + Send,
{
    type Error = E;

    fn consume(&self, message: &Message) -> impl Future<Output = Result<(), E>> + Send {
        std::future::ready(self(message))
    }
}

type Consumed<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// A listener of any kind.
trait AnyListener: Send + Sync {
    fn consume_any<'a>(&'a self, message: &'a Message) -> Consumed<'a>;
}

impl<L: MessageListener> AnyListener for L {
    fn consume_any<'a>(&'a self, message: &'a Message) -> Consumed<'a> {
        Box::pin(async move { self.consume(message).await.map_err(|error| error.to_string()) })
    }
}

/// The listeners of a subscription. Each message goes to all of them, in the order in which they were added.
#[derive(Clone, Default)]
pub struct Listeners(Vec<Arc<dyn AnyListener>>);

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listeners({})", self.0.len())
    }
}

/// The first message that was not consumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// How many before it were.
    pub(crate) consumed: usize,
    pub(crate) reason: String,
}

impl Listeners {
    /// One listener.
    pub fn one(listener: impl MessageListener) -> Self {
        Self::default().and(listener)
    }

    /// One more, called behind those that are there.
    #[must_use]
    pub fn and(mut self, listener: impl MessageListener) -> Self {
        self.0.push(Arc::new(listener));
        self
    }

    /// Hands messages over, one after the other, until one fails.
    pub(crate) async fn consume(&self, messages: &[Message]) -> Result<(), Failure> {
        for (consumed, message) in messages.iter().enumerate() {
            for listener in &self.0 {
                // The call itself may panic, too, before there is a future.
                let call = AssertUnwindSafe(async { listener.consume_any(message).await });
                let result = call.catch_unwind().await.unwrap_or_else(|panic| Err(panic_text(&*panic)));
                result.map_err(|reason| Failure { consumed, reason })?;
            }
        }
        Ok(())
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the listener panicked: {}", text.unwrap_or("without a text"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use hqueue_protocol::id::MessageId;

    use super::*;

    fn messages(values: &[&'static str]) -> Vec<Message> {
        let message = |value: &&'static str| Message {
            partition: 0,
            id: MessageId::MIN,
            topic: Bytes::from_static(b"t"),
            value: Bytes::from_static(value.as_bytes()),
            headers: Vec::new(),
        };
        values.iter().map(message).collect()
    }

    fn failure(consumed: usize, reason: &str) -> Result<(), Failure> {
        Err(Failure { consumed, reason: reason.to_owned() })
    }

    /// Notes what it is given under a name.
    struct Noting(&'static str, Arc<Mutex<Vec<String>>>);

    impl MessageListener for Noting {
        type Error = String;

        async fn consume(&self, message: &Message) -> Result<(), String> {
            tokio::task::yield_now().await;
            self.1.lock().unwrap().push(format!("{}{}", self.0, String::from_utf8_lossy(&message.value)));
            if message.value == "bad" { Err("no".to_owned()) } else { Ok(()) }
        }
    }

    #[tokio::test]
    async fn listeners_run_in_order_message_by_message_until_one_fails() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let listeners = Listeners::one(Noting("a:", Arc::clone(&seen))).and(Noting("b:", Arc::clone(&seen)));
        assert_eq!(listeners.consume(&messages(&["1", "2", "bad", "4"])).await, failure(2, "no"));
        assert_eq!(*seen.lock().unwrap(), ["a:1", "b:1", "a:2", "b:2", "a:bad"]);
        assert_eq!(listeners.consume(&[]).await, Ok(()));
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_from_this_message_on() {
        let listeners = Listeners::one(|m: &Message| -> Result<(), String> {
            assert!(m.value != "bad", "a bad one");
            Ok(())
        });
        assert_eq!(listeners.consume(&messages(&["1", "bad"])).await, failure(1, "the listener panicked: a bad one"));
    }
}
