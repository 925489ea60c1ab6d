//! How much may be on its way at a time: of a subscription, over all of its partitions and endpoints, and at each endpoint, where it begins
//! with one batch (slow start): several connections to a consumer that has just started, or is ill, do not all call it at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Messages and bytes in flight, and the most that may be.
#[derive(Debug)]
pub struct Window {
    least: Amount,
    most: Amount,
    now: Mutex<Now>,
    freed: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Now {
    used: Amount,
    /// From `least` to `most`.
    limit: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Amount {
    messages: u32,
    bytes: usize,
}

/// A part of the window; it is given back with this value.
#[derive(Debug)]
pub struct Room {
    window: Arc<Window>,
    has: Amount,
    ended: Option<Ended>,
}

/// How the call ended that took a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Well,
    Ill,
}

impl Amount {
    const fn new(messages: u32, bytes: usize) -> Self {
        Self { messages: if messages == 0 { u32::MAX } else { messages }, bytes }
    }

    fn min(self, other: Self) -> Self {
        Self { messages: self.messages.min(other.messages), bytes: self.bytes.min(other.bytes) }
    }

    fn max(self, other: Self) -> Self {
        Self { messages: self.messages.max(other.messages), bytes: self.bytes.max(other.bytes) }
    }

    const fn doubled(self) -> Self {
        Self { messages: self.messages.saturating_mul(2), bytes: self.bytes.saturating_mul(2) }
    }

    const fn halved(self) -> Self {
        Self { messages: self.messages / 2, bytes: self.bytes / 2 }
    }
}

impl Window {
    /// `messages` 0: as many as come.
    #[must_use]
    pub fn new(messages: u32, bytes: usize) -> Arc<Self> {
        let most = Amount::new(messages, bytes);
        Self::between(most, most)
    }

    /// Begins with one batch, doubles with each call that ends well and is halved by each that ends ill. Each is messages and bytes.
    #[must_use]
    pub fn slowly(batch: (u32, usize), most: (u32, usize)) -> Arc<Self> {
        let most = Amount::new(most.0, most.1);
        Self::between(Amount::new(batch.0, batch.1).min(most), most)
    }

    fn between(least: Amount, most: Amount) -> Arc<Self> {
        let now = Now { used: Amount { messages: 0, bytes: 0 }, limit: least };
        Arc::new(Self { least, most, now: Mutex::new(now), freed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At most so much of the window; waits while nothing is left of it.
    pub async fn room(self: &Arc<Self>, messages: u32, bytes: usize) -> Room {
        loop {
            let freed = self.freed.notified();
            if let Some(room) = self.take(messages, bytes) {
                return room;
            }
            freed.await;
        }
    }

    /// Nothing is left of it.
    pub fn is_full(&self) -> bool {
        let Now { used, limit } = *self.lock();
        used.messages >= limit.messages || used.bytes >= limit.bytes
    }

    fn take(self: &Arc<Self>, messages: u32, bytes: usize) -> Option<Room> {
        let mut now = self.lock();
        let left = Amount {
            messages: now.limit.messages.saturating_sub(now.used.messages),
            bytes: now.limit.bytes.saturating_sub(now.used.bytes),
        };
        if left.messages == 0 || left.bytes == 0 {
            return None;
        }
        let has = Amount { messages: messages.min(left.messages), bytes: bytes.min(left.bytes) };
        now.used.messages += has.messages;
        now.used.bytes += has.bytes;
        drop(now);
        if has.messages < left.messages && has.bytes < left.bytes {
            // Another may want the rest.
            self.freed.notify_one();
        }
        Some(Room { window: Arc::clone(self), has, ended: None })
    }
}

impl Room {
    #[must_use]
    pub const fn messages(&self) -> u32 {
        self.has.messages
    }

    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.has.bytes
    }

    /// This is what is sent: what is left of the room is given back. A single message may be larger than the room.
    pub fn fit(&mut self, messages: u32, bytes: usize) {
        let mut now = self.window.lock();
        now.used.messages = now.used.messages - self.has.messages + messages;
        now.used.bytes = now.used.bytes - self.has.bytes + bytes;
        drop(now);
        self.has = Amount { messages, bytes };
        self.window.freed.notify_one();
    }

    /// How the call ended that it was for: what may be in flight follows.
    pub const fn ended(&mut self, well: bool) {
        self.ended = Some(if well { Ended::Well } else { Ended::Ill });
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Window { least, most, .. } = *self.window;
        let mut now = self.window.lock();
        now.used.messages -= self.has.messages;
        now.used.bytes -= self.has.bytes;
        match self.ended {
            Some(Ended::Well) => now.limit = now.limit.doubled().min(most),
            Some(Ended::Ill) => now.limit = now.limit.halved().max(least),
            None => {}
        }
        drop(now);
        self.window.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn no_more_than_the_window() {
        let window = Window::new(10, 1000);
        let room = |messages, bytes| window.room(messages, bytes).now_or_never();
        let mut first = room(8, 500).unwrap();
        assert_eq!((first.messages(), first.bytes()), (8, 500));
        let second = room(8, 5000).unwrap();
        assert_eq!((second.messages(), second.bytes()), (2, 500));
        assert!(room(1, 1).is_none(), "nothing is left");
        drop(second);
        first.fit(1, 2000);
        assert!(room(1, 1).is_none(), "a single message may be larger, and then nothing goes beside it");
        drop(first);
        assert_eq!(room(100, 100).unwrap().messages(), 10);
    }

    #[test]
    fn it_begins_with_a_batch_doubles_and_is_halved() {
        let window = Window::slowly((10, 1000), (35, 1 << 20));
        let end = |well: Option<bool>| {
            let mut room = window.room(100, 1 << 20).now_or_never().unwrap();
            assert!(window.room(1, 1).now_or_never().is_none(), "nothing beside it");
            if let Some(well) = well {
                room.ended(well);
            }
            room.messages()
        };
        assert_eq!([Some(true), None, Some(true), Some(true), Some(true)].map(end), [10, 20, 20, 35, 35]);
        assert_eq!([Some(false), Some(false), Some(false), Some(true)].map(end), [35, 17, 10, 10]);
        let larger_batch = Window::slowly((1000, 1 << 20), (7, 500));
        let room = larger_batch.room(100, 1000).now_or_never().unwrap();
        assert_eq!((room.messages(), room.bytes()), (7, 500), "the window counts");
    }

    #[tokio::test]
    async fn everybody_has_a_turn() {
        let window = Window::new(3, 1 << 20);
        let most = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let tasks: Vec<_> = (0..50)
            .map(|n| {
                let (window, most) = (Arc::clone(&window), Arc::clone(&most));
                tokio::spawn(async move {
                    for _ in 0..20 {
                        let mut room = window.room(1 + n % 4, 1000).await;
                        room.fit(1, 10);
                        most.fetch_max(window.lock().used.messages, std::sync::atomic::Ordering::SeqCst);
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(window.lock().used, Amount { messages: 0, bytes: 0 });
        assert!((1..=3).contains(&most.load(std::sync::atomic::Ordering::SeqCst)));
    }
}
