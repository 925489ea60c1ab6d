//! What producers put into the floor reaches the receiver, all of it and in order, with either durability.

use std::sync::Arc;
use std::time::Duration;

use hqueue_bench::driver::{Clock, Dialect, FloorDialect, Load, Producers, Receiver, Until};
use hqueue_bench::failure::{Doing, Outcome};
use hqueue_bench::floor::{self, FloorOptions};
use hqueue_bench::messages::{Ledger, PutShape};
use hqueue_bench::setting::Durability;
use hqueue_bench::sides::free_port;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(10);

async fn flows(durability: Durability) -> Outcome<()> {
    let folder = tempfile::tempdir().doing(|| "making a folder".to_owned())?;
    let (clock, dialect) = (Clock::start(), Arc::new(FloorDialect) as Arc<dyn Dialect>);
    let load = Load { queues: 1, partitions: 3, producers: 2, in_flight: 4, shape: PutShape { messages: 7, value_bytes: 3000 } };
    let receiver = Receiver::listen(1, Arc::clone(&dialect), Ledger::new(2, 3), clock).await?;
    let listen = free_port()?;
    let options = FloorOptions {
        listen,
        data: folder.path().to_owned(),
        receiver: receiver.addresses().first().copied().unwrap_or(listen),
        durability,
        partitions: 3,
        // Smaller than what is put, so that the file is used more than once.
        file_mib: 1,
    };
    let floor = tokio::spawn(floor::run(options));
    while TcpStream::connect(listen).await.is_err() {
        tokio::task::yield_now().await;
    }
    let mut producers = Producers::connect(listen, &dialect, &load, clock).await?;
    let mut messages = 0;
    for _ in 0..2 {
        let puts = producers.run(Until::Puts(50)).await?;
        assert_eq!((puts.messages, puts.latencies.len()), (700, 100));
        messages += puts.messages;
        receiver.wait_taken(messages, PATIENCE).await?;
    }
    assert_eq!((receiver.taken(), receiver.repeated()), (1400, 0));
    assert!(!receiver.ages().is_empty());
    floor.abort();
    Ok(())
}

#[tokio::test]
async fn synced() {
    flows(Durability::Sync).await.unwrap();
}

#[tokio::test]
async fn written() {
    flows(Durability::Async).await.unwrap();
}
