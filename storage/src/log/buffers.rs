//! Memory that was read into and is free again. A megabyte of new memory costs several times what copying a megabyte into it does,
//! since the kernel hands it out page by page, so what a reader has let go of is kept for the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smaller buffers are left to the allocator, which keeps their memory anyway. Bytes.
const SMALLEST: usize = 64 << 10;
/// Larger ones are rare. Bytes.
const LARGEST: usize = 2 << 20;
/// So much is kept at most. Bytes.
const KEPT: usize = 8 << 20;

/// Free buffers, each of a power of two of bytes.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Mutex<Vec<Box<[u8]>>>,
}

/// Some memory of a known length with anything in it, until it is dropped: then it goes back.
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Box<[u8]>,
    len: usize,
    home: Option<Arc<Buffers>>,
}

impl Buffers {
    pub(super) fn take(buffers: &Arc<Self>, len: usize) -> Buffer {
        if !(SMALLEST..=LARGEST).contains(&len) {
            return Buffer::new(len);
        }
        let size = len.next_power_of_two();
        let memory = buffers.find(size).unwrap_or_else(|| vec![0; size].into());
        Buffer { memory, len, home: Some(Arc::clone(buffers)) }
    }

    fn find(&self, size: usize) -> Option<Box<[u8]>> {
        let mut free = self.lock();
        let place = free.iter().rposition(|memory| memory.len() == size)?;
        Some(free.swap_remove(place))
    }

    fn give_back(&self, memory: Box<[u8]>) {
        let mut free = self.lock();
        let kept: usize = free.iter().map(|memory| memory.len()).sum();
        if kept + memory.len() <= KEPT {
            free.push(memory);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Of the allocator.
    pub(super) fn new(len: usize) -> Self {
        Self { memory: vec![0; len].into(), len, home: None }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.memory.get(..self.len).unwrap_or_default()
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(..self.len).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            home.give_back(std::mem::take(&mut self.memory));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(buffer: &Buffer) -> *const u8 {
        buffer.as_ref().as_ptr()
    }

    #[test]
    fn memory_that_is_free_again_is_used_again() {
        let buffers = Arc::new(Buffers::default());
        let first = Buffers::take(&buffers, 100_000);
        let (at, other) = (address(&first), Buffers::take(&buffers, 100_000));
        assert_ne!(at, address(&other), "both are in use");
        drop(first);
        let again = Buffers::take(&buffers, 131_072);
        assert_eq!((address(&again), again.as_ref().len()), (at, 131_072));
        assert_ne!(at, address(&Buffers::take(&buffers, 300_000)), "of another size");
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let buffers = Arc::new(Buffers::default());
        let many: Vec<_> = (0..20).map(|_| Buffers::take(&buffers, 1 << 20)).collect();
        drop(many);
        assert_eq!(buffers.lock().len(), KEPT >> 20);
        drop([Buffers::take(&buffers, SMALLEST - 1), Buffers::take(&buffers, LARGEST + 1)]);
        assert_eq!(buffers.lock().len(), KEPT >> 20, "neither small nor large ones");
    }
}
