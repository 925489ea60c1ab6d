//! Reading a journal from its beginning, and telling a torn tail from damage.
//!
//! An append begins only once the one before is synced. So a power cut can leave one block that is not whole, and only at the very end:
//! that one was never acknowledged, and is cut. A block that is not whole while something comes behind it was whole once: that is
//! damage, and what it held is not guessed.

use std::path::Path;

use super::JournalError;
use super::format::{BLOCK_HEADER_LEN, BlockHeader, FILE_HEADER_LEN, decode_file_header, find_block};
use crate::disk::{DiskFile, read_exact_at};

/// Takes the records one after the other; an error says why a record cannot be.
pub type Replay<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), String>;

/// What is in a journal.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) epoch: u64,
    /// Where the next block goes; behind it lies the torn tail.
    pub(super) end: u64,
    /// The number of the next block.
    pub(super) next_number: u64,
    /// The bytes of the last block.
    pub(super) last_block: Vec<u8>,
    /// Why what lies behind `end`, if anything does, is no block.
    pub(super) torn: Option<&'static str>,
}

/// Reads the whole file and hands every record to `replay`.
pub(super) fn recover(file: &dyn DiskFile, path: &Path, replay: Replay<'_>) -> Result<Recovered, JournalError> {
    let len = file.len().map_err(|error| JournalError::io("measuring", path, &error))?;
    let mut reader = Reader { file, path, len, at: 0 };
    let header = reader.take(FILE_HEADER_LEN.min(usize::try_from(len).unwrap_or(usize::MAX)))?;
    let epoch = decode_file_header(&header).map_err(|reason| reader.damaged(0, reason))?;
    let mut found = Recovered { epoch, end: reader.at, next_number: 0, last_block: Vec::new(), torn: None };
    while found.end < len {
        match reader.block(epoch)? {
            Ok((header, block)) => {
                let records = header.records(block.get(BLOCK_HEADER_LEN..).unwrap_or_default());
                let Some(records) = records else {
                    // The header says where the block ends: is there more?
                    if reader.at < len {
                        return Err(reader.damaged(found.end, "the checksum of a block is wrong"));
                    }
                    found.torn = Some("the checksum of the last block is wrong");
                    return Ok(found);
                };
                if header.number != found.next_number {
                    let reason = format!("block {} is missing, block {} is there", found.next_number, header.number);
                    return Err(reader.damaged(found.end, reason));
                }
                for record in records {
                    replay(record).map_err(|reason| reader.damaged(found.end, reason))?;
                }
                found.end = reader.at;
                found.next_number += 1;
                found.last_block = block;
            }
            Err(why) => {
                reader.at = found.end;
                let rest = reader.take(usize::try_from(len - found.end).unwrap_or(usize::MAX))?;
                // Not at 0: a good header there, with the rest of its block missing, is the torn one itself.
                if let Some(at) = rest.get(1..).and_then(|behind| find_block(behind, epoch)) {
                    let reason = format!("{why}, but a good one follows at byte {}", found.end + at as u64 + 1);
                    return Err(reader.damaged(found.end, reason));
                }
                found.torn = Some(why);
                return Ok(found);
            }
        }
    }
    Ok(found)
}

struct Reader<'a> {
    file: &'a dyn DiskFile,
    path: &'a Path,
    len: u64,
    at: u64,
}

impl Reader<'_> {
    fn take(&mut self, len: usize) -> Result<Vec<u8>, JournalError> {
        let mut bytes = vec![0; len];
        read_exact_at(self.file, &mut bytes, self.at).map_err(|error| JournalError::io("reading", self.path, &error))?;
        self.at += len as u64;
        Ok(bytes)
    }

    /// The next block, its header decoded, its body unchecked; the inner error says why there is none.
    fn block(&mut self, epoch: u64) -> Result<Result<(BlockHeader, Vec<u8>), &'static str>, JournalError> {
        let left = self.len - self.at;
        if left < BLOCK_HEADER_LEN as u64 {
            return Ok(Err("there are too few bytes for a block"));
        }
        let mut block = self.take(BLOCK_HEADER_LEN)?;
        let Some(header) = BlockHeader::decode(&block, epoch) else {
            return Ok(Err("there is no header of a block"));
        };
        if left < (BLOCK_HEADER_LEN + header.body_len) as u64 {
            return Ok(Err("the file ends within a block"));
        }
        block.append(&mut self.take(header.body_len)?);
        Ok(Ok((header, block)))
    }

    fn damaged(&self, offset: u64, reason: impl Into<String>) -> JournalError {
        JournalError::Damaged { path: self.path.to_owned(), offset, reason: reason.into() }
    }
}
