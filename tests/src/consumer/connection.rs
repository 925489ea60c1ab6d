//! One connection: the stock processor in a loop.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hqueue_protocol::generated::{HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor, TMessage};
use thrift::server::TProcessor;

use super::answer::Answer;
use super::record::Call;
use super::server::Shared;
use crate::gateway::speak;
use crate::message::Message;

/// Serves until either side closes, or the consumer stops.
pub(super) fn serve(number: u64, stream: TcpStream, shared: &Arc<Shared>, stopping: &AtomicBool) {
    let _ = stream.set_nodelay(true);
    let (Ok(for_stop), Ok(for_close)) = (stream.try_clone(), stream.try_clone()) else { return };
    shared.streams().insert(number, for_stop);
    // A stop that came before the line above does not know this connection.
    if !stopping.load(Ordering::SeqCst)
        && let Ok((mut input, mut output)) = speak(stream, shared.dialect)
    {
        let processor = HQueueSubscriberServiceSyncProcessor::new(Handler { shared: Arc::clone(shared), stream: for_close });
        // As in the stock server, whatever goes wrong ends the connection.
        while processor.process(&mut *input, &mut *output).is_ok() {}
    }
    shared.streams().remove(&number);
}

struct Handler {
    shared: Arc<Shared>,
    stream: TcpStream,
}

impl HQueueSubscriberServiceSyncHandler for Handler {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        let at = Instant::now();
        self.shared.wait_for_thaw();
        if messages.is_empty() {
            self.shared.record().empty_calls += 1;
            return Ok(0);
        }
        let messages: Vec<Message> = messages.into_iter().map(Message::from).collect();
        let answer = self.shared.answer(&messages);
        self.shared.record().calls.push(Call { at, messages: messages.clone(), answer: answer.clone() });
        if let Answer::Slow(time, _) | Answer::Late(time, _) = answer {
            self.shared.hang(Some(time));
        }
        let consumed = answer.consumed(messages.len());
        self.shared.record().accepted.extend(messages.into_iter().take(consumed));
        self.give(answer)
    }
}

impl Handler {
    fn give(&self, answer: Answer) -> thrift::Result<i32> {
        match answer {
            Answer::Value(value) | Answer::Slow(_, value) | Answer::Late(_, value) => Ok(value),
            Answer::Exception(text) => Err(thrift::Error::from(text.as_str())),
            Answer::Hang => {
                self.shared.hang(None);
                Ok(-1)
            }
            Answer::Close => {
                // The reply that the processor writes then goes nowhere.
                let _ = self.stream.shutdown(Shutdown::Both);
                Ok(-1)
            }
        }
    }
}
