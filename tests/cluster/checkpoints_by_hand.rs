//! A person edits checkpoints in ZooKeeper: the subscription goes on from there, or says why it cannot, and nobody else notices.

use std::time::{SystemTime, UNIX_EPOCH};

use hqueue_tests::hand::checkpoint;
use hqueue_tests::{Answer, Cluster, Consumer, Id, PATIENCE, wait};

/// Two partitions, one at each broker, with six messages each; `s` is edited, `other` goes on beside it.
struct Scene {
    cluster: Cluster,
    consumer: Consumer,
    other: Consumer,
    /// Of each partition.
    ids: [Vec<Id>; 2],
}

fn scene() -> Scene {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    let (consumer, other) = (Consumer::start(), Consumer::start());
    cluster.register("q", 2, "s", &consumer.address());
    cluster.register("q", 2, "other", &other.address());
    let ids = [0, 1].map(|p| cluster.brokers[0].put("q", p, &(0..6).map(|n| format!("{p}-{n}")).collect::<Vec<_>>()));
    wait("all is pushed", PATIENCE, || consumer.count() == 12 && other.count() == 12);
    let scene = Scene { cluster, consumer, other, ids };
    scene.wait_for_checkpoint(0, scene.ids[0][5]);
    scene.wait_for_checkpoint(1, scene.ids[1][5]);
    scene.consumer.forget();
    scene
}

impl Scene {
    fn wait_for_checkpoint(&self, partition: i16, id: Id) {
        let hand = &self.cluster.hand;
        wait("the checkpoint is written", PATIENCE, || hand.checkpoint("q", partition, "s") == Some(id));
    }

    fn edit(&self, partition: i16, payload: &str) {
        self.cluster.hand.set(&format!("/queues/q/{partition}/s"), payload);
    }

    /// The subscription is broken for this reason, the other one has what is put now, and so has the other partition.
    fn check_broken(&self, partition: i16, why: &[&str]) {
        let broker = &self.cluster.brokers[0];
        wait("it is broken and says why", PATIENCE, || {
            let status = broker.subscription("q", "s");
            status.state() == "broken" && why.iter().all(|why| status.last_error().contains(why))
        });
        assert!(broker.subscription("q", "s").last_error().contains(&format!("/queues/q/{partition}/s")));
        let values: Vec<String> = (0..2).map(|p| format!("{p}-meanwhile")).collect();
        for p in 0..2 {
            broker.put("q", p, &[&values[p as usize]]);
        }
        wait("the other subscription goes on", PATIENCE, || values.iter().all(|v| self.other.has(v)));
        wait("the other partition goes on", PATIENCE, || self.consumer.has(&values[1 - partition as usize]));
        assert!(!self.consumer.has(&values[partition as usize]), "nothing is pushed from a checkpoint that nobody can read");
    }
}

#[test]
fn moved_back_and_forward() {
    let scene = scene();
    for p in 0..2 {
        scene.edit(p, &checkpoint(scene.ids[p as usize][1]));
    }
    wait("what lies behind comes again", PATIENCE, || scene.consumer.count() >= 8);
    scene.wait_for_checkpoint(0, scene.ids[0][5]);
    scene.wait_for_checkpoint(1, scene.ids[1][5]);
    for p in 0..2 {
        let of_this: Vec<Id> = scene.consumer.accepted().iter().filter(|m| m.partition == p).map(|m| m.id).collect();
        assert_eq!(of_this, scene.ids[p as usize][2..], "each once, in order");
    }
    // Forward, over messages that were refused until now.
    scene.consumer.answer_with(|_| Answer::Value(-2));
    let more = [0, 1].map(|p| scene.cluster.brokers[0].put("q", p, &["6", "7", "8", "9"]));
    wait("they were tried", PATIENCE, || scene.consumer.call_count() > 4);
    scene.consumer.forget();
    for p in 0..2 {
        scene.edit(p, &checkpoint(more[p as usize][2]));
    }
    wait("the brokers have seen it", PATIENCE, || {
        let status = scene.cluster.brokers[0].subscription("q", "s");
        (0..2).all(|p| status.checkpoint(p) == Some(more[p as usize][2]))
    });
    scene.consumer.answer_all();
    wait("the rest comes", PATIENCE, || scene.consumer.count() >= 2);
    scene.cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!(scene.consumer.values(), ["9", "9"]);
}

/// Within a day ahead of the clock ids rise above it; further ahead it is a mistake.
#[test]
fn moved_into_the_future() {
    let scene = scene();
    let broker = &scene.cluster.brokers[0];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    scene.edit(0, &checkpoint(Id { timestamp: now + 2 * 86_400_000, sequence: 0 }));
    scene.check_broken(0, &["future"]);
    let id = broker.put("q", 0, &["now"])[0];
    assert!(id.timestamp < now + 3_600_000, "ids did not follow it: {id}");
    scene.edit(0, &checkpoint(scene.ids[0][5]));
    wait("repaired, it goes on", PATIENCE, || scene.consumer.has("0-meanwhile") && scene.consumer.has("now"));
    wait("and is not broken", PATIENCE, || broker.subscription("q", "s").state() == "active");
    let soon = Id { timestamp: now + 60_000, sequence: 7 };
    scene.edit(0, &checkpoint(soon));
    wait("a minute ahead is taken", PATIENCE, || broker.subscription("q", "s").checkpoint(0) == Some(soon));
    let id = broker.put("q", 0, &["above"])[0];
    assert!(id > soon, "{id} would count as consumed");
    wait("what is put now comes", PATIENCE, || scene.consumer.has("above"));
}

#[test]
fn emptied_and_deleted() {
    let scene = scene();
    let broker = &scene.cluster.brokers[0];
    scene.consumer.answer_with(|_| Answer::Value(-2));
    let skipped = broker.put("q", 0, &["skipped"])[0];
    wait("it was tried", PATIENCE, || scene.consumer.call_count() > 0);
    scene.edit(0, "");
    scene.wait_for_checkpoint(0, skipped);
    scene.consumer.answer_all();
    broker.put("q", 0, &["then"]);
    wait("what comes afterwards is pushed", PATIENCE, || scene.consumer.has("then"));
    assert!(!scene.consumer.has("skipped"), "empty means latest");
    // One with options and a fixed endpoint keeps being a subscriber without its checkpoint.
    let fixed = Consumer::start();
    broker.subscribe("q", "fixed", &fixed.address(), &[]);
    wait("it has all", PATIENCE, || fixed.count() == 14);
    broker.wait_for_no_lag("q", "fixed");
    let path = "/queues/q/0/fixed";
    scene.cluster.hand.delete(path);
    wait("it begins at latest", PATIENCE, || scene.cluster.hand.get(path).is_some());
    fixed.forget();
    broker.put("q", 0, &["last"]);
    wait("it goes on", PATIENCE, || fixed.has("last"));
    broker.wait_for_no_lag("q", "fixed");
    // What is put while it begins anew may come twice; nothing older comes.
    assert!(fixed.values().iter().all(|value| value == "last"), "{:?}", fixed.values());
}

/// Deleted and made anew in one breath: the brokers see one change, from one node to another of a lower version.
#[test]
fn replaced() {
    let cluster = Cluster::start(1);
    let broker = &cluster.brokers[0];
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let ids: Vec<Id> = (0..3)
        .map(|n| {
            let id = broker.put("q", 0, &[format!("{n}")])[0];
            wait("the checkpoint follows", PATIENCE, || cluster.hand.checkpoint("q", 0, "s") == Some(id));
            id
        })
        .collect();
    let path = "/queues/q/0/s";
    assert!(cluster.hand.get(path).unwrap().version > 1);
    // A broker that stands still sees only the outcome.
    broker.freeze();
    cluster.hand.delete(path);
    cluster.hand.create(path, checkpoint(ids[0]));
    broker.thaw();
    broker.put("q", 0, &["3"]);
    wait("it goes on behind the new one", PATIENCE, || consumer.count() >= 6);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.values()[3..].iter().filter(|v| *v == "1" || *v == "2").count(), 2, "{:?}", consumer.values());
    let last = broker.subscription("q", "s").checkpoint(0).unwrap();
    wait("and writes there", PATIENCE, || cluster.hand.checkpoint("q", 0, "s") == Some(last));
}

#[test]
fn unreadable_and_repaired() {
    let scene = scene();
    for damage in ["{broken", "17", r#"{"timestamp": -4, "sequence": 0}"#, r#"{"timestamp": 5}"#] {
        scene.edit(1, damage);
        scene.check_broken(1, &["checkpoint"]);
        let before = scene.consumer.count();
        scene.edit(1, &checkpoint(scene.ids[1][4]));
        wait("repaired, it goes on", PATIENCE, || scene.consumer.has("1-5") && scene.consumer.has("1-meanwhile"));
        wait("and is not broken", PATIENCE, || scene.cluster.brokers[1].subscription("q", "s").state() == "active");
        scene.cluster.brokers[0].wait_for_no_lag("q", "s");
        assert!(scene.consumer.count() > before);
        scene.consumer.forget();
        scene.other.forget();
    }
}
