//! Rows through the Thrift2 gateway, without HQueue: `putMultiple` in the binary protocol, encoded once and given other keys for every call.
//!
//! ```text
//! row   key: partition u16 | timestamp u64 | sequence u16   message:t = value   timestamp of the cell = that of the key
//! ```

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hqueue_hbase::schema::MESSAGE;
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encode, Kind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::Writing;
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::PutShape;

const METHOD: &[u8] = b"putMultiple";
/// Version and type of a message of the protocol.
const CALL: u32 = 0x8001_0001;
const REPLY: u32 = 0x8001_0002;
const KEY_BYTES: usize = 12;

/// What was written, and how long it took.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub rows: u64,
    pub took: Duration,
}

/// One connection's call.
struct Call {
    bytes: Vec<u8>,
    /// Where the key of each row stands, and the timestamp of its cell.
    places: Vec<(usize, usize)>,
}

impl Call {
    fn new(table: &str, shape: PutShape) -> Self {
        let mut bytes = CALL.to_be_bytes().to_vec();
        Binary::write_string(&mut bytes, METHOD);
        bytes.extend([0; 4]);
        Binary::write_field(&mut bytes, Kind::String, 1, 0);
        Binary::write_string(&mut bytes, table.as_bytes());
        Binary::write_field(&mut bytes, Kind::List, 2, 1);
        Binary::write_list(&mut bytes, Kind::Struct, u32::try_from(shape.messages).unwrap_or(u32::MAX));
        let mut places = Vec::new();
        for _ in 0..shape.messages {
            Binary::write_field(&mut bytes, Kind::String, 1, 0);
            Binary::write_string(&mut bytes, &[0; KEY_BYTES]);
            let key = bytes.len() - KEY_BYTES;
            Binary::write_field(&mut bytes, Kind::List, 2, 1);
            Binary::write_list(&mut bytes, Kind::Struct, 1);
            let value: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(shape.value_bytes).collect();
            for (id, cell) in [(1, MESSAGE), (2, b"t"), (3, &value)] {
                Binary::write_field(&mut bytes, Kind::String, id, 0);
                Binary::write_string(&mut bytes, cell);
            }
            Binary::write_end(&mut bytes);
            Binary::write_field(&mut bytes, Kind::I64, 3, 2);
            Binary::write_number(&mut bytes, Kind::I64, 0);
            places.push((key, bytes.len() - 8));
            Binary::write_end(&mut bytes);
        }
        Binary::write_end(&mut bytes);
        Self { bytes, places }
    }

    fn set_keys(&mut self, partition: u16, timestamp: u64) {
        for (sequence, &(key, time)) in (0u16..).zip(&self.places) {
            let mut row = [0; KEY_BYTES];
            let (head, rest) = row.split_at_mut(2);
            head.copy_from_slice(&partition.to_be_bytes());
            let (middle, tail) = rest.split_at_mut(8);
            middle.copy_from_slice(&timestamp.to_be_bytes());
            tail.copy_from_slice(&sequence.to_be_bytes());
            for (at, new) in [(key, row.as_slice()), (time, timestamp.to_be_bytes().as_slice())] {
                if let Some(place) = self.bytes.get_mut(at..at + new.len()) {
                    place.copy_from_slice(new);
                }
            }
        }
    }
}

/// Writes for the time of the plan, after its warm-up.
pub async fn write(gateway: &str, table: &str, plan: &Writing) -> Outcome<Written> {
    let mut connections = Vec::new();
    for _ in 0..plan.connections {
        let socket = TcpStream::connect(gateway).await.doing(|| format!("connecting to {gateway}"))?;
        socket.set_nodelay(true).doing(|| "setting up a connection".to_owned())?;
        connections.push((socket, Call::new(table, plan.shape)));
    }
    let first = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let first = u64::try_from(first).unwrap_or(0);
    let begin = Instant::now() + plan.warm_up;
    let mut running = JoinSet::new();
    for (number, (socket, call)) in (0..).zip(connections) {
        // Each connection has timestamps of its own, a day from the next one's.
        let ids = Ids { partitions: plan.partitions, next: first + number * 100_000_000, number };
        running.spawn(write_one(socket, call, ids, begin, begin + plan.time));
    }
    let mut written = Written { rows: 0, took: Duration::ZERO };
    while let Some(ended) = running.join_next().await {
        let rows = ended.map_err(|error| Failure::Side(format!("a connection ended badly: {error}")))??;
        written.rows += rows;
    }
    written.took = begin.elapsed();
    Ok(written)
}

/// The keys of a connection.
struct Ids {
    partitions: u16,
    next: u64,
    number: u64,
}

impl Ids {
    fn next(&mut self) -> (u16, u64) {
        self.next += 1;
        let partition = (self.next + self.number) % u64::from(self.partitions.max(1));
        (u16::try_from(partition).unwrap_or(0), self.next)
    }
}

/// Returns the rows of the calls that were answered behind `begin`.
async fn write_one(mut socket: TcpStream, mut call: Call, mut ids: Ids, begin: Instant, end: Instant) -> Outcome<u64> {
    let mut rows = 0;
    let mut answer = [0; 4 + 4 + METHOD.len() + 4 + 1];
    while Instant::now() < end {
        let (partition, timestamp) = ids.next();
        call.set_keys(partition, timestamp);
        socket.write_all(&call.bytes).await.doing(|| "writing rows".to_owned())?;
        socket.read_exact(&mut answer).await.doing(|| "reading an answer of the gateway".to_owned())?;
        // Behind the head, the end of an empty struct: no error.
        if !answer.starts_with(&REPLY.to_be_bytes()) || answer.last() != Some(&0) {
            return Err(Failure::Side("HBase refused rows".to_owned()));
        }
        if Instant::now() > begin {
            rows += call.places.len() as u64;
        }
    }
    Ok(rows)
}
