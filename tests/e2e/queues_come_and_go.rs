//! Queues are made, disabled, emptied, dropped and made again; what is gone stays gone.

use hqueue_protocol::generated::{TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TQueueSpec};
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Consumer, PATIENCE, refusal, wait};

fn names(broker: &Broker) -> Vec<String> {
    let queues = broker.admin().list_queues().unwrap();
    queues.into_iter().map(|q| String::from_utf8(q.name.unwrap()).unwrap()).collect()
}

#[test]
fn a_queue_of_an_old_name_is_new() {
    let mut broker = Broker::start();
    broker.create("q", 3);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let old = broker.put("q", 0, &["old"]);
    wait("it is pushed", PATIENCE, || consumer.has("old"));
    let mut admin = broker.admin();
    let refused = refusal(admin.drop_queue("q".into()));
    assert_eq!(refused.code, TErrorCode::WRONG_STATE, "{}", refused.message);
    assert!(refused.message.contains("disable"), "what to do first: {}", refused.message);
    admin.disable_queue("q".into()).unwrap();
    admin.drop_queue("q".into()).unwrap();
    assert!(names(&broker).is_empty());
    assert_eq!(refusal(broker.gateway().put_message("q".into(), to_put("t", "v"))).code, TErrorCode::NOT_FOUND);
    broker.create("q", 1);
    assert!(broker.scan("q", 0).is_empty());
    assert!(broker.status("q").subscriptions.unwrap().is_empty(), "its subscribers went with it");
    let new = broker.put("q", 0, &["new"]);
    assert!(new[0] >= old[0], "time goes on");
    broker.kill();
    broker.restart();
    let values: Vec<_> = broker.scan("q", 0).into_iter().map(|m| m.text().to_owned()).collect();
    assert_eq!(values, ["new"]);
    assert_eq!(refusal(broker.gateway().put_message_with_pid("q".into(), 1, to_put("t", "v"))).code, TErrorCode::INVALID);
    assert_eq!(consumer.count(), 1, "the old subscriber gets nothing of the new queue");
}

#[test]
fn a_dropped_queue_leaves_no_files_behind() {
    let mut broker = Broker::start();
    broker.create("kept", 1);
    broker.put("kept", 0, &["v"]);
    let before = broker.files().len();
    let folder_of =
        |broker: &Broker| broker.files().iter().filter(|(path, _)| path.to_string_lossy().contains("passing")).count();
    for _ in 0..3 {
        broker.create("passing", 4);
        broker.put("passing", 0, &["v"; 100]);
        let mut admin = broker.admin();
        admin.disable_queue("passing".into()).unwrap();
        admin.drop_queue("passing".into()).unwrap();
    }
    wait("its files are gone", PATIENCE, || folder_of(&broker) == 0 && broker.files().len() <= before + 4);
    broker.kill();
    broker.restart();
    assert_eq!(names(&broker), ["kept"]);
}

/// Disabled: no puts and no pushes, but scans. Enabled again, it goes on.
#[test]
fn a_disabled_queue_rests() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let mut consumer = Consumer::start();
    consumer.stop();
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "20ms"), ("retry-max", "50ms")]);
    broker.put("q", 0, &["a"]);
    let mut admin = broker.admin();
    admin.disable_queue("q".into()).unwrap();
    consumer.resume();
    let refused = refusal(broker.gateway().put_message("q".into(), to_put("t", "b")));
    assert_eq!(refused.code, TErrorCode::WRONG_STATE, "{}", refused.message);
    assert!(refused.message.contains("disabled"), "{}", refused.message);
    assert_eq!(admin.describe_queue("q".into()).unwrap().state.as_deref(), Some("disabled"));
    assert_eq!(broker.scan("q", 0).len(), 1, "scans go on");
    broker.kill();
    broker.restart();
    assert_eq!(
        broker.admin().describe_queue("q".into()).unwrap().state.as_deref(),
        Some("disabled"),
        "a restart changes nothing"
    );
    refusal(broker.gateway().put_message("q".into(), to_put("t", "b")));
    // Retries were due many times by now.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(consumer.call_count(), 0, "pushes are held");
    broker.admin().enable_queue("q".into()).unwrap();
    wait("pushes go on", PATIENCE, || consumer.has("a"));
    broker.put("q", 0, &["b"]);
    wait("puts go on", PATIENCE, || consumer.has("b"));
    broker.admin().enable_queue("q".into()).unwrap();
}

/// Emptied: messages go, subscribers stay, ids go on rising.
#[test]
fn an_emptied_queue_goes_on() {
    let mut broker = Broker::start();
    broker.create("q", 2);
    let mut consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "20ms"), ("retry-max", "50ms")]);
    let before = broker.put("q", 0, &["seen"]);
    wait("it is pushed", PATIENCE, || consumer.has("seen"));
    consumer.stop();
    let unseen = broker.put("q", 0, &["unseen"; 50]);
    broker.put("q", 1, &["unseen"; 50]);
    wait("they wait", PATIENCE, || broker.subscription("q", "s").lag() == 100);
    broker.admin().truncate_queue("q".into()).unwrap();
    assert!(broker.scan("q", 0).is_empty() && broker.scan("q", 1).is_empty());
    wait("nothing waits", PATIENCE, || broker.subscription("q", "s").lag() == 0);
    broker.kill();
    broker.restart();
    assert!(broker.scan("q", 0).is_empty(), "a restart brings nothing back");
    let after = broker.put("q", 0, &["after"]);
    assert!(after[0] > *unseen.last().unwrap() && unseen[0] > before[0], "ids go on rising");
    consumer.resume();
    wait("the next comes", PATIENCE, || consumer.has("after"));
    assert_eq!(consumer.values(), ["seen", "after"]);
}

/// Emptied while a call is under way: its answer is about messages that are gone, what comes afterwards is pushed.
#[test]
fn an_answer_about_messages_that_are_gone() {
    let broker = Broker::start();
    broker.create("q", 1);
    let slow = hqueue_tests::Answer::Slow(std::time::Duration::from_millis(500), 0);
    let consumer = Consumer::answering(move |_| slow.clone());
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "10")]);
    broker.put("q", 0, &["gone"; 100]);
    wait("a call is under way", PATIENCE, || consumer.call_count() == 1);
    broker.admin().truncate_queue("q".into()).unwrap();
    broker.put("q", 0, &["new"; 5]);
    consumer.answer_all();
    wait("what came afterwards is pushed", PATIENCE, || consumer.values().iter().filter(|v| *v == "new").count() == 5);
    broker.wait_for_no_lag("q", "s");
    assert!(consumer.values().iter().filter(|v| *v == "gone").count() <= 20, "what is gone is not pushed any more");
}

#[test]
fn what_cannot_be_made_or_changed_says_why() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut admin = broker.admin();
    let mut create = |name: &str, partitions: i32, keys: &[(&str, &str)]| {
        let configuration = keys.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        admin.create_queue(TQueueSpec { configuration: Some(configuration), ..hqueue_tests::queue_spec(name, partitions, 60) })
    };
    let refused = refusal(create("q", 1, &[]));
    assert_eq!(refused.code, TErrorCode::EXISTS);
    assert!(refused.message.contains("exists"), "{}", refused.message);
    for partitions in [0, -1, 32_768, i32::MAX, i32::MIN] {
        let refused = refusal(create("other", partitions, &[]));
        assert_eq!(refused.code, TErrorCode::INVALID);
        assert!(refused.message.contains("32767") && refused.message.contains("partitions"), "{}", refused.message);
    }
    let refused = refusal(create("other", 1, &[("hbaze.hqueue.partitionsPerRegion", "4")]));
    assert_eq!(refused.code, TErrorCode::INVALID);
    assert!(refused.message.contains("hbase.hqueue.partitionsPerRegion"), "the nearest known one: {}", refused.message);
    let notices =
        create("other", 1, &[("hbase.hqueue.partitionsPerRegion", "4"), ("hbase.hstore.compaction.min", "16")]).unwrap();
    assert!(!notices.is_empty(), "what has no effect here is said");
    let described = broker.admin().describe_queue("other".into()).unwrap();
    assert_eq!(described.configuration.unwrap()["hbase.hqueue.partitionsPerRegion"], "4");
    let mut admin = broker.admin();
    for refused in [
        refusal(admin.describe_queue("nowhere".into())),
        refusal(admin.disable_queue("nowhere".into())),
        refusal(admin.enable_queue("nowhere".into())),
        refusal(admin.truncate_queue("nowhere".into())),
        refusal(admin.drop_queue("nowhere".into())),
        refusal(admin.queue_status("nowhere".into())),
        refusal(admin.list_subscribers("nowhere".into())),
        refusal(admin.delete_subscriber("q".into(), "nowhere".into())),
    ] {
        assert_eq!(refused.code, TErrorCode::NOT_FOUND);
        assert!(refused.message.contains("nowhere"), "{}", refused.message);
    }
}

/// The largest queue there can be, and the smallest.
#[test]
fn as_many_partitions_as_can_be() {
    let mut broker = Broker::start();
    broker.create("wide", 32_767);
    let last = 32_766;
    let mut gateway = broker.gateway();
    gateway.put_message_with_pid("wide".into(), last, to_put("t", "last")).unwrap();
    gateway.put_message_with_pid("wide".into(), 0, to_put("t", "first")).unwrap();
    assert_eq!(gateway.get_queue_locations("wide".into()).unwrap().len(), 32_767);
    broker.kill();
    broker.restart();
    assert_eq!(broker.scan("wide", last)[0].text(), "last");
    assert_eq!(broker.scan("wide", 0)[0].text(), "first");
}

/// Scanners of a queue that goes away end; those of another go on.
#[test]
fn scanners_end_with_their_queue() {
    let broker = Broker::start();
    broker.create("going", 1);
    broker.create("staying", 1);
    broker.put("going", 0, &["a", "b"]);
    broker.put("staying", 0, &["a", "b"]);
    let mut gateway = broker.gateway();
    let everything = hqueue_tests::gateway::everything;
    let going = gateway.message_scanner_open("going".into(), 0, everything()).unwrap();
    let staying = gateway.message_scanner_open("staying".into(), 0, everything()).unwrap();
    assert_eq!(gateway.message_scanner_get(going).unwrap().value.unwrap(), b"a");
    assert_eq!(gateway.message_scanner_get(staying).unwrap().value.unwrap(), b"a");
    let mut admin = broker.admin();
    admin.disable_queue("going".into()).unwrap();
    assert_eq!(gateway.message_scanner_get(going).unwrap().value.unwrap(), b"b", "a disabled queue can be read");
    admin.drop_queue("going".into()).unwrap();
    refusal(gateway.message_scanner_get(going));
    assert_eq!(gateway.message_scanner_get(staying).unwrap().value.unwrap(), b"b");
    assert_eq!(gateway.message_scanner_get(staying).unwrap().id, None, "at the end, a message without an id");
    assert!(gateway.message_scanner_get_list(staying, 10).unwrap().is_empty());
    broker.put("staying", 0, &["c"]);
    assert_eq!(gateway.message_scanner_get_list(staying, 10).unwrap().len(), 1, "later messages may follow");
    for nonsense in [0, -1, i32::MIN] {
        assert_eq!(refusal(gateway.message_scanner_get_list(staying, nonsense)).code, TErrorCode::INVALID);
    }
    gateway.message_scanner_close(staying).unwrap();
    assert_eq!(refusal(gateway.message_scanner_get(staying)).code, TErrorCode::NOT_FOUND);
}
