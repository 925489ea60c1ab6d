//! What was truncated or has expired does not come back, whatever happens to the index and the power.

use hqueue_storage::disk::PowerCut;

use crate::support::{Lab, Ledger, run};

/// Puts enough for some segments.
async fn fill(lab: &Lab, ledger: &mut Ledger, opened: &crate::support::Opened) {
    for n in 0..60 {
        ledger.put(&opened.queue, n % 3, 2, 2000).await.unwrap();
        lab.clock.advance(1);
    }
}

#[test]
fn truncated_messages_stay_gone_without_an_index() {
    run(async {
        for then in [PowerCut::KeepAll, PowerCut::LoseUnsynced, PowerCut::Random(1), PowerCut::Random(2)] {
            let lab = Lab::new(3);
            let mut disk = lab.disk();
            let mut ledger = Ledger::new(&lab);
            for round in 0..3 {
                let opened = lab.open(disk.clone()).await;
                ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("round {round}, {then:?}: {what}"));
                fill(&lab, &mut ledger, &opened).await;
                opened.queue.store.truncate().await.unwrap();
                ledger.all_gone();
                // Behind the truncation, in the same segment.
                ledger.put(&opened.queue, 1, 3, 10).await.unwrap();
                disk = disk.power_cut(then);
                opened.store.close().await;
                lab.drop_index();
            }
            let opened = lab.open(disk).await;
            ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{then:?}: {what}"));
            opened.store.close().await;
        }
    });
}

#[test]
fn expired_messages_stay_gone_without_an_index() {
    run(async {
        let lab = Lab::with_ttl(3, 10_000);
        let mut disk = lab.disk();
        let mut ledger = Ledger::new(&lab);
        for round in 0..4 {
            let opened = lab.open(disk.clone()).await;
            ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("round {round}: {what}"));
            fill(&lab, &mut ledger, &opened).await;
            lab.clock.advance(10_001);
            ledger.all_gone();
            ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("round {round}, expired: {what}"));
            ledger.put(&opened.queue, round % 3, 2, 10).await.unwrap();
            disk = disk.power_cut(PowerCut::LoseUnsynced);
            opened.store.close().await;
            lab.drop_index();
        }
        let opened = lab.open(disk).await;
        ledger.check(&opened.queue).await.unwrap();
        assert_eq!(opened.queue.committed(0).next_number, 2 * (4 * 20 + 2), "numbers go on over everything that is gone");
        opened.store.close().await;
    });
}
