//! Fetching from many partitions: each gets its share, and the first message of any ends the wait.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{self, FuturesUnordered, StreamExt};
use hqueue_protocol::rpc::{Fetch, Method};
use tokio::time::Instant;

use super::Fetched;
use super::connections::Taken;
use super::consumer::{AT_ONCE, PullConsumer};
use super::request::{self, ANSWER, MAX_WAIT, Request};
use crate::error::{Error, ErrorCode};
use crate::message::Message;

/// So many fetches wait on one connection: a broker takes 64 calls at once. The first reply ends the waits before it.
const WAITS_PER_CONNECTION: usize = 48;

/// What came from some partitions.
#[derive(Clone, Debug, Default)]
pub struct Polled {
    /// One for each partition that answered, with messages or without.
    pub fetched: Vec<Fetched>,
    /// Partitions that could not be asked, and why.
    pub failed: Vec<(i16, Error)>,
}

impl Polled {
    /// The messages, partition by partition.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.fetched.iter().flat_map(|fetched| &fetched.messages)
    }

    /// No messages came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fetched.iter().all(|fetched| fetched.messages.is_empty())
    }
}

impl PullConsumer {
    /// The next messages of some partitions, `max` at most over all (1 to 100,000), beginning behind what was committed. Each partition
    /// gets its share; what one does not use falls to the others. If there are none, waits up to `wait` for the first message of any.
    ///
    /// Partitions that fail are named in the result; if all fail, that is an error.
    pub async fn poll(&self, partitions: &[i16], max: u32, wait: Duration) -> Result<Polled, Error> {
        let deadline = Instant::now().checked_add(wait);
        let requests = partitions.iter().map(|&partition| self.request(partition, None, max)).collect::<Result<Vec<_>, _>>()?;
        let mut gathered = Gathered::default();
        self.take_shares(requests, max, &mut gathered).await;
        loop {
            let left = deadline.map_or(MAX_WAIT, |deadline| deadline.saturating_duration_since(Instant::now()));
            if gathered.fetched.is_empty()
                && let Some(error) = gathered.first_of_all_failures()
            {
                return Err(error);
            }
            if gathered.has_messages() || left.is_zero() || gathered.fetched.is_empty() {
                return Ok(gathered.into_polled());
            }
            self.wait_for_any(&mut gathered, max, left.min(MAX_WAIT)).await;
        }
    }

    /// Asks all without waiting, in rounds, until there are enough messages or there is nothing more.
    async fn take_shares(&self, mut active: Vec<Request>, max: u32, gathered: &mut Gathered) {
        // Where there are fewer messages wanted than partitions, chance says which come first.
        let first = chance(active.len());
        active.rotate_left(first);
        let mut left = max;
        while left > 0 && !active.is_empty() {
            let share = share_of(left, active.len());
            let mut allotted = 0;
            let (mut now, mut later) = (Vec::new(), Vec::new());
            for mut request in active {
                request.messages = share.min(left - allotted);
                if request.messages > 0 {
                    allotted += request.messages;
                    now.push(request);
                } else {
                    later.push(request);
                }
            }
            let asked = now.into_iter().map(|request| async move { (self.ask(&request).await, request) });
            let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
            // Those that were not asked come before those that were.
            for (answer, mut request) in answers {
                match answer {
                    Ok(fetched) => {
                        left = left.saturating_sub(u32::try_from(fetched.messages.len()).unwrap_or(u32::MAX));
                        request.position = Some(fetched.next.to_string());
                        if !fetched.messages.is_empty() {
                            later.push(request.clone());
                        }
                        gathered.add(request, fetched);
                    }
                    Err(error) => gathered.fail(request.partition, error),
                }
            }
            active = later;
        }
    }

    /// Waits at all partitions that answered for the first message.
    async fn wait_for_any(&self, gathered: &mut Gathered, max: u32, wait: Duration) {
        let requests: Vec<_> = gathered.requests(max, wait);
        let mut connections = Vec::new();
        let mut replies = FuturesUnordered::new();
        for group in requests.chunks(WAITS_PER_CONNECTION) {
            let taken: Taken = self.connections().take();
            let client = taken.client.with_call_timeout(wait + ANSWER);
            connections.push(taken);
            for request in group {
                match client.start(Fetch::NAME, request.encode()).await {
                    Ok(call) => replies.push(async move { (call.reply().await, request.clone()) }),
                    Err(error) => gathered.fail(request.partition, error.into()),
                }
            }
        }
        while let Some((reply, mut request)) = replies.next().await {
            match reply.map_err(Error::from).and_then(|body| request::read(&body, request.partition)) {
                Ok(fetched) => {
                    request.position = Some(fetched.next.to_string());
                    let came = !fetched.messages.is_empty();
                    gathered.add(request, fetched);
                    if came {
                        // The other waits end with their connections.
                        return;
                    }
                }
                Err(error) => gathered.fail(request.partition, error),
            }
        }
        connections.into_iter().for_each(Taken::give_back);
    }
}

/// What has come so far.
#[derive(Debug, Default)]
struct Gathered {
    /// By partition, with the request that goes on behind it.
    fetched: BTreeMap<i16, (Request, Fetched)>,
    failed: BTreeMap<i16, Error>,
}

impl Gathered {
    fn add(&mut self, request: Request, fetched: Fetched) {
        match self.fetched.get_mut(&fetched.partition) {
            Some((known, before)) => {
                *known = request;
                before.messages.extend(fetched.messages);
                before.next = fetched.next;
            }
            None => drop(self.fetched.insert(fetched.partition, (request, fetched))),
        }
    }

    /// What came before that is kept.
    fn fail(&mut self, partition: i16, error: Error) {
        if self.fetched.get(&partition).is_some_and(|(_, fetched)| fetched.messages.is_empty()) {
            self.fetched.remove(&partition);
        }
        self.failed.insert(partition, error);
    }

    /// Where all have failed: why the first did, and that it is not the only one.
    fn first_of_all_failures(&mut self) -> Option<Error> {
        let count = self.failed.len();
        let (_, error) = self.failed.pop_first()?;
        Some(match error {
            Error::Refused { code: ErrorCode::Offline, message } if count > 1 => Error::Refused {
                code: ErrorCode::Offline,
                message: format!("{message}; nothing could be read of all {count} partitions"),
            },
            other => other,
        })
    }

    fn has_messages(&self) -> bool {
        self.fetched.values().any(|(_, fetched)| !fetched.messages.is_empty())
    }

    fn requests(&self, max: u32, wait: Duration) -> Vec<Request> {
        self.fetched.values().map(|(request, _)| Request { messages: max, wait, ..request.clone() }).collect()
    }

    fn into_polled(self) -> Polled {
        Polled {
            fetched: self.fetched.into_values().map(|(_, fetched)| fetched).collect(),
            failed: self.failed.into_iter().collect(),
        }
    }
}

/// How many of `left` messages each of so many partitions may give.
fn share_of(left: u32, partitions: usize) -> u32 {
    let partitions = u32::try_from(partitions).unwrap_or(u32::MAX);
    left.checked_div(partitions).unwrap_or(left).max(1)
}

/// A number below `end`, or 0.
fn chance(end: usize) -> usize {
    use std::hash::{BuildHasher, RandomState};
    let random = usize::try_from(RandomState::new().hash_one(end) >> 1).unwrap_or_default();
    random.checked_rem(end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_never_nothing() {
        assert_eq!((share_of(1000, 3), share_of(1, 1), share_of(5, 8), share_of(7, 0)), (333, 1, 1, 7));
    }

    #[test]
    fn chance_reaches_all_and_nothing_else() {
        let seen: std::collections::BTreeSet<usize> = (0..1000).map(|_| chance(4)).collect();
        assert_eq!(seen, (0..4).collect());
        assert_eq!((chance(0), chance(1)), (0, 0));
    }
}
