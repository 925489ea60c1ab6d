//! The way of rows to HBase: what is put in the partitions of a region while calls are under way goes with the next one.
//!
//! A lane has a few calls under way, each in a task that ends when nothing waits. While the queue is emptied it holds back what comes.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hqueue_storage::store::StoreError;

use super::ids::{reserve_below, reserve_to};
use super::partition::Partition;
use super::pending::Chunk;
use super::queue::{HBaseQueue, damaged};
use super::rows::put_call;
use super::shared::failed;
use crate::gateway::PutCall;

#[derive(Debug, Default)]
pub(super) struct Lane {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Chunk>,
    /// What came while the lane was held.
    held: VecDeque<Chunk>,
    is_held: bool,
    calls: usize,
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.calls == 0 && state.waiting.is_empty()
    }

    /// Sends nothing more than what is on its way, until [`let_go`](Self::let_go).
    pub(super) fn hold_back(&self) {
        self.lock().is_held = true;
    }

    /// Which partitions have something that was held back.
    fn let_go(&self) -> Vec<(i16, hqueue_protocol::id::MessageId)> {
        let mut state = self.lock();
        state.is_held = false;
        let held = std::mem::take(&mut state.held);
        let sent = held.iter().map(|chunk| (chunk.of.partition, chunk.slice.last)).collect();
        state.waiting.extend(held);
        sent
    }
}

impl HBaseQueue {
    pub(super) fn lane_of(&self, partition: i16) -> usize {
        usize::try_from(partition / self.partitions_per_region).unwrap_or(0)
    }

    /// Hands chunks to the lane of their partition, whose lock is held. True: a task has to be started for it.
    pub(super) fn send(&self, held: &mut Partition, partition: i16, chunks: Vec<Chunk>) -> bool {
        let Some(lane) = self.lanes.get(self.lane_of(partition)) else { return false };
        let mut state = lane.lock();
        if state.is_held {
            state.held.extend(chunks);
            return false;
        }
        held.sent(&chunks);
        state.waiting.extend(chunks);
        let starts = state.calls < self.shared.options.calls_per_region.max(1);
        state.calls += usize::from(starts);
        starts
    }

    /// Sends what waits; the lane counts the call already.
    pub(super) fn start_lane(self: &Arc<Self>, lane: usize) {
        let queue = Arc::clone(self);
        self.shared.runtime.spawn(async move {
            while let Some(chunks) = queue.take(lane) {
                queue.carry(chunks).await;
            }
            queue.idle.notify_waiters();
        });
    }

    /// What goes in the next call; without any, the call is over.
    fn take(&self, lane: usize) -> Option<Vec<Chunk>> {
        let options = &self.shared.options;
        let mut state = self.lanes.get(lane)?.lock();
        let (mut chunks, mut rows, mut bytes) = (Vec::new(), 0u32, 0usize);
        while let Some(next) = state.waiting.front() {
            rows = rows.saturating_add(next.slice.count);
            bytes = bytes.saturating_add(next.slice.bytes.len());
            if !chunks.is_empty() && (rows > options.rows_per_call || bytes > options.bytes_per_call) {
                break;
            }
            chunks.extend(state.waiting.pop_front());
        }
        if chunks.is_empty() {
            state.calls -= 1;
            return None;
        }
        Some(chunks)
    }

    /// Writes all of them. One that HBase refuses keeps none of the others from it, and each fails when its own time is over.
    async fn carry(self: &Arc<Self>, mut chunks: Vec<Chunk>) {
        while let Some(deadline) = chunks.iter().map(|chunk| chunk.deadline).min() {
            let result = self.write(&chunks, deadline).await;
            let is_settled = |chunk: &Chunk| match &result {
                Ok(()) => true,
                Err(error) if error.is_retryable() => chunk.deadline <= deadline,
                Err(_) => false,
            };
            let (settled, rest): (Vec<_>, Vec<_>) = chunks.into_iter().partition(is_settled);
            if settled.is_empty() {
                return self.carry_each(rest, result).await;
            }
            self.written(settled, result);
            chunks = rest;
        }
    }

    /// HBase does not take them together.
    async fn carry_each(self: &Arc<Self>, chunks: Vec<Chunk>, refused: Result<(), StoreError>) {
        let is_alone = chunks.len() == 1;
        for chunk in chunks {
            let result = if is_alone { refused.clone() } else { self.write(std::slice::from_ref(&chunk), chunk.deadline).await };
            self.written(vec![chunk], result);
        }
    }

    async fn write(self: &Arc<Self>, chunks: &[Chunk], deadline: tokio::time::Instant) -> Result<(), StoreError> {
        let marked = self.mark_partitions(chunks.iter().map(|chunk| chunk.of.partition));
        tokio::time::timeout_at(deadline, marked).await.unwrap_or_else(|_| Err(too_late()))?;
        let call = put_call(&self.rows_table, chunks).map_err(|error| damaged(&error))?;
        let begin = Instant::now();
        let shared = &self.shared;
        let result = shared.gateways.repeat(PutCall::METHOD, call, deadline).await;
        shared.count(|c| &c.write_micros, u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX));
        result.map(|_| ()).map_err(failed("writing to HBase"))
    }

    fn written(self: &Arc<Self>, chunks: Vec<Chunk>, result: Result<(), StoreError>) {
        match &result {
            Ok(()) => {}
            Err(error) if error.is_retryable() => {
                tracing::warn!(queue = self.spec.name, %error, "messages could not be written; they may appear later");
            }
            Err(error) => tracing::warn!(queue = self.spec.name, %error, "messages were refused by HBase"),
        }
        let mut due: Vec<i16> = Vec::new();
        for chunk in chunks {
            if chunk.of.settle(result.clone()) && !due.contains(&chunk.of.partition) {
                due.push(chunk.of.partition);
            }
        }
        due.into_iter().for_each(|partition| self.settle(partition));
    }

    /// Waits until nothing is on its way to HBase but what is held back.
    pub(super) async fn wait_until_idle(&self) {
        loop {
            let told = self.idle.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if self.lanes.iter().all(Lane::is_idle) {
                return;
            }
            told.await;
        }
    }

    /// Sends what was held back.
    pub(super) fn let_lanes_go(self: &Arc<Self>) {
        for (n, lane) in self.lanes.iter().enumerate() {
            let sent = lane.let_go();
            for (partition, last) in &sent {
                let _ = self.with(*partition, |held| held.sent_up_to(*last));
            }
            if !sent.is_empty() {
                lane.lock().calls += 1;
                self.start_lane(n);
            }
        }
    }

    /// Reserves further ids in good time, so that nobody has to wait for it.
    pub(super) fn reserve_ahead(self: &Arc<Self>, reach_ms: i64, below_ms: i64) {
        let shared = &self.shared;
        let now_ms = shared.clock.now_ms();
        if below_ms.saturating_sub(reach_ms) > reserve_below(reach_ms, now_ms) || shared.reserving.swap(true, Relaxed) {
            return;
        }
        let shared = Arc::clone(shared);
        self.shared.runtime.spawn(async move {
            if let Err(error) = shared.marks.reserve(reserve_to(reach_ms, now_ms)).await {
                tracing::debug!(%error, "the next put reserves ids");
            }
            shared.reserving.store(false, Relaxed);
        });
    }
}

fn too_late() -> StoreError {
    let reason = "no answer in time".to_owned();
    StoreError::Remote { what: "writing what is known of partitions to HBase", reason, retryable: true }
}
