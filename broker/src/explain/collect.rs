//! Asking everybody for the facts about one message, at the owner of its partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use hqueue_protocol::generated::{TExplanation, TMessageStanding};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredMessage;
use hqueue_storage::store::StoreError;

use super::facts::{Facts, Held, Letter, Past};
use super::lookup::{Found, look_up};
use super::verdict::{Verdict, explanation};
use super::words;
use crate::catalog::{Catalog, Queue};
use crate::partition::MessageScanner;
use crate::refusal::Refusal;
use crate::subscription::{Event, Subscription, SubscriptionState, SubscriptionWorker, What};

/// With a topic filter at most so many messages are looked at to count those before the message.
const LOOK_AT_MOST: u64 = 100_000;

/// The letters of the message, by subscriber.
type Letters = BTreeMap<Vec<u8>, Letter>;

impl Catalog {
    /// What became of a message of a partition that is ours. `subscriber`: for this one only.
    pub async fn explain_here(
        &self,
        queue: &Arc<Queue>,
        partition: i16,
        id: MessageId,
        subscriber: Option<&str>,
    ) -> Result<TExplanation, Refusal> {
        let subscriptions = match subscriber {
            None => queue.subscriptions(),
            Some(name) => match queue.subscription(name) {
                Ok(subscription) => vec![subscription],
                Err(_) => {
                    // It may be there and have nothing to do with this broker.
                    self.check_subscriber(queue, name).await?;
                    Vec::new()
                }
            },
        };
        let found = look_up(&*queue.store, partition, id).await?;
        let newest = queue.store.committed(partition)?.last;
        let (state, text) = words::of_message(&found, newest);
        let message = match &found {
            Found::Stored(slice) => slice.messages().next().transpose().ok().flatten(),
            Found::Never { .. } | Found::Gone { .. } => None,
        };
        let standings = match found {
            Found::Never { .. } => Vec::new(),
            Found::Stored(_) | Found::Gone { .. } => {
                // Before the letters: a letter is kept before the subscription goes on.
                let asked: Vec<_> = subscriptions.iter().map(|s| (s, now(s, partition, id, message.as_ref()))).collect();
                let letters = self.letters(queue, partition, id).await;
                self.standings(queue, (partition, id), &found, asked, letters, subscriber).await?
            }
        };
        Ok(TExplanation {
            queue_name: Some(queue.name.as_str().as_bytes().to_vec()),
            partition: Some(partition),
            id: Some(words::wire(id)),
            state: Some(state.to_owned()),
            text: Some(text),
            topic: message.map(|message| message.topic.to_vec()),
            subscriptions: Some(standings),
        })
    }

    /// The error says why they cannot be told.
    async fn letters(&self, queue: &Queue, partition: i16, id: MessageId) -> Result<Letters, String> {
        let all = self.letters_of_message(queue, partition, id).await.map_err(|refusal| refusal.message)?;
        let letter = |kept: hqueue_protocol::generated::TKeptLetter| {
            let at = kept.id.and_then(|id| Some(MessageId::new(id.timestamp?, id.sequence_i_d?)))?;
            let attempts = u32::try_from(kept.attempts?).unwrap_or_default();
            Some((kept.subscriber?, Letter { id: at, attempts, error: kept.error.unwrap_or_default() }))
        };
        Ok(all.into_iter().filter_map(letter).collect())
    }

    async fn standings(
        &self,
        queue: &Queue,
        (partition, id): (i16, MessageId),
        found: &Found,
        asked: Vec<(&Arc<Subscription>, Facts)>,
        letters: Result<Letters, String>,
        subscriber: Option<&str>,
    ) -> Result<Vec<TMessageStanding>, Refusal> {
        let gone = match found {
            Found::Gone { why, .. } => Some(*why),
            Found::Stored(_) | Found::Never { .. } => None,
        };
        let (mut letters, letters_away) = letters.map_or_else(|away| (Letters::new(), Some(away)), |letters| (letters, None));
        let mut standings = Vec::new();
        for (subscription, mut facts) in asked {
            let name = subscription.shared().name.as_bytes();
            facts.gone = gone;
            facts.letter = letters.remove(name);
            facts.letters_away.clone_from(&letters_away);
            let mut verdict = explanation(&facts);
            if let (Verdict::Waiting(_), Some(worker)) = (&verdict, subscription.worker(partition)) {
                (facts.first, facts.ahead) = before(queue, &worker, facts.id).await?;
                verdict = explanation(&facts);
            }
            standings.push(words::standing(name, &facts, &verdict));
        }
        // Letters stay when their subscriber is deleted.
        letters.retain(|name, _| subscriber.is_none_or(|wanted| *name == *wanted.as_bytes()));
        let is_known = |name: &str| standings.iter().any(|s| s.subscriber.as_deref() == Some(name.as_bytes()));
        if let Some(name) = subscriber.filter(|name| !is_known(name) && !letters.contains_key(name.as_bytes())) {
            let facts = Facts { letters_away, ..Facts::unread(id) };
            standings.push(words::standing(name.as_bytes(), &facts, &explanation(&facts)));
        }
        for (name, letter) in letters {
            let facts = Facts { letter: Some(letter), ..Facts::unread(id) };
            standings.push(words::standing(&name, &facts, &explanation(&facts)));
        }
        standings.sort_by(|a, b| a.subscriber.cmp(&b.subscriber));
        Ok(standings)
    }
}

/// How things are now with a subscription.
fn now(subscription: &Subscription, partition: i16, id: MessageId, message: Option<&StoredMessage<'_>>) -> Facts {
    let shared = subscription.shared();
    let worker = subscription.worker(partition);
    // Where it is comes before what was noted: a call is noted before it shows in the checkpoint.
    let standing = worker.as_ref().map(|worker| worker.standing(id));
    let filter = shared.filter();
    let topics = Arc::clone(filter.topics());
    let (past, was_unwanted) = carried(shared.calls.of(partition, id), topics, message.map(|message| message.topic));
    let (endpoint, endpoint_is_away) = shared.endpoint_of(partition).unzip();
    Facts {
        id,
        gone: None,
        wanted: message.map(|message| filter.wants(message)),
        was_unwanted,
        held: held(subscription, standing.is_some() && endpoint.is_some()),
        endpoint,
        endpoint_is_away: endpoint_is_away.unwrap_or_default(),
        is_failing: shared.is_failing(),
        window_is_full: shared.is_window_full(partition),
        standing,
        past,
        letter: None,
        letters_away: None,
        first: None,
        ahead: 0,
        last_error: shared.last_error().map(|error| error.text),
    }
}

/// The state alone of a message that is stored and wanted, for simulations. `letter`: there is one.
#[cfg(test)]
pub fn state_of(subscription: &Subscription, partition: i16, id: MessageId, letter: bool) -> &'static str {
    let mut facts = now(subscription, partition, id, None);
    facts.wanted = Some(true);
    facts.letter = letter.then(|| Letter { id: MessageId::MAX, attempts: 1, error: String::new() });
    explanation(&facts).name()
}

/// `is_served`: what cannot be read has to do with other partitions.
fn held(subscription: &Subscription, is_served: bool) -> Option<Held> {
    if subscription.shared().is_disabled() {
        Some(Held::Disabled)
    } else if subscription.shared().is_paused() {
        Some(Held::Paused)
    } else if !is_served && subscription.state() == SubscriptionState::Broken {
        Some(Held::Broken)
    } else {
        subscription.is_retiring().then_some(Held::Changing)
    }
}

/// Which calls carried a message of this topic (`None`: not known, they all may have), given the topics that are wanted now; and whether there
/// was a time when it was not wanted.
fn carried(events: Vec<Event>, now: Arc<[Vec<u8>]>, topic: Option<&[u8]>) -> (Vec<Past>, bool) {
    let is_in = |wanted: &[Vec<u8>]| topic.is_none_or(|topic| wanted.is_empty() || wanted.iter().any(|w| w.as_slice() == topic));
    let (mut carried, mut was_unwanted) = (is_in(&now), false);
    let mut past = Vec::with_capacity(events.len());
    for event in events.into_iter().rev() {
        if let What::Topics { before } = event.what {
            carried = is_in(&before);
            was_unwanted |= !carried;
            continue;
        }
        past.push(Past { event, carried });
    }
    past.reverse();
    (past, was_unwanted)
}

/// The oldest message that the worker has not finished, and how many lie before `id`.
async fn before(queue: &Queue, worker: &SubscriptionWorker, id: MessageId) -> Result<(Option<MessageId>, u64), StoreError> {
    let from = worker.checkpoint().id.successor();
    let filter = worker.shared().filter();
    let store = Arc::clone(&queue.store);
    let mut scanner = MessageScanner::new(store, worker.partition(), filter.clone(), from, id.successor());
    scanner.fill_cold(1, 1).await?;
    let first = scanner.take(1, usize::MAX)?.first().map(|slice| slice.first);
    let count = |from| queue.store.count_from(worker.partition(), from, Arc::clone(filter.topics()), LOOK_AT_MOST);
    let (all, behind) = (count(from).await?, count(id).await?);
    Ok((first, all.messages.saturating_sub(behind.messages)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::{Call, CallResult};
    use crate::time::Moment;

    #[test]
    fn a_call_carried_what_was_wanted_at_its_time() {
        let call = What::Call(Call {
            first: MessageId::new(1, 0),
            last: MessageId::new(9, 0),
            consumed_to: None,
            endpoint: "a:1".into(),
            attempt: 1,
            result: CallResult::Busy,
            is_redelivery: false,
        });
        let topics = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Arc<[_]>>();
        let changed = |before: &[&str]| What::Topics { before: topics(before) };
        let events = [call.clone(), changed(&[]), call.clone(), changed(&["a", "b"]), call];
        let events: Vec<Event> = events.into_iter().map(|what| Event { at: Moment(0), what }).collect();
        let of = |topic: Option<&[u8]>| -> Vec<bool> {
            carried(events.clone(), topics(&["a"]), topic).0.iter().map(|past| past.carried).collect()
        };
        assert_eq!(of(Some(b"a")), [true, true, true]);
        assert_eq!(of(Some(b"b")), [true, true, false]);
        assert_eq!(of(Some(b"c")), [true, false, false]);
        assert_eq!(of(None), [true, true, true]);
        let was_unwanted = |topic: &[u8]| carried(events.clone(), topics(&["a"]), Some(topic)).1;
        assert_eq!((was_unwanted(b"b"), was_unwanted(b"c")), (false, true));
    }
}
