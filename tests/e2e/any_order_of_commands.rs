//! Commands in any order, with crashes and stops between them, against a model of what has to be there.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use hqueue_protocol::generated::{TErrorCode, THQueueAdminServiceSyncClient};
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::{Admin, Broker, Consumer, Gateway, Id, PATIENCE, long_form, refusal, seed, wait};

const NAMES: [&str; 3] = ["a", "b", "c"];
const SUBSCRIBERS: [&str; 2] = ["one", "two"];

/// A queue as it has to be.
#[derive(Debug, Default)]
struct Model {
    disabled: bool,
    /// Of each partition.
    messages: Vec<Vec<(Id, String)>>,
    /// The last id that was ever assigned in each partition.
    last: Vec<Option<Id>>,
    subscribers: BTreeSet<&'static str>,
}

struct World {
    random: Rng,
    broker: Broker,
    admin: Admin,
    gateway: Gateway,
    queues: BTreeMap<&'static str, Model>,
    number: usize,
}

impl World {
    fn step(&mut self) -> String {
        let name = NAMES[self.random.usize(0..NAMES.len())];
        match self.random.usize(0..20) {
            0 | 1 => self.create(name),
            2 => self.drop_queue(name),
            3 => self.truncate(name),
            4 => self.set_state(name, true),
            5 | 6 => self.set_state(name, false),
            7 => self.add_subscriber(name),
            8 => self.delete_subscriber(name),
            9 => self.restart(),
            _ => self.put(name),
        }
    }

    fn create(&mut self, name: &'static str) -> String {
        let partitions = self.random.usize(1..4);
        let spec = hqueue_tests::queue_spec(name, partitions as i32, 3600);
        let result = self.admin.create_queue(spec);
        if self.queues.contains_key(name) {
            assert_eq!(refusal(result).code, TErrorCode::EXISTS);
        } else {
            result.unwrap();
            let model = Model { messages: vec![Vec::new(); partitions], last: vec![None; partitions], ..Model::default() };
            self.queues.insert(name, model);
        }
        format!("create {name} with {partitions}")
    }

    fn drop_queue(&mut self, name: &'static str) -> String {
        let result = self.admin.drop_queue(name.into());
        match self.queues.get(name) {
            None => assert_eq!(refusal(result).code, TErrorCode::NOT_FOUND),
            Some(model) if !model.disabled => assert_eq!(refusal(result).code, TErrorCode::WRONG_STATE),
            Some(_) => {
                result.unwrap();
                self.queues.remove(name);
            }
        }
        format!("drop {name}")
    }

    fn truncate(&mut self, name: &'static str) -> String {
        let result = self.admin.truncate_queue(name.into());
        match self.queues.get_mut(name) {
            None => assert_eq!(refusal(result).code, TErrorCode::NOT_FOUND),
            Some(model) => {
                result.unwrap();
                model.messages.iter_mut().for_each(Vec::clear);
            }
        }
        format!("truncate {name}")
    }

    fn set_state(&mut self, name: &'static str, disabled: bool) -> String {
        let result = if disabled { self.admin.disable_queue(name.into()) } else { self.admin.enable_queue(name.into()) };
        match self.queues.get_mut(name) {
            None => assert_eq!(refusal(result).code, TErrorCode::NOT_FOUND),
            Some(model) => {
                result.unwrap();
                model.disabled = disabled;
            }
        }
        format!("disabled = {disabled} for {name}")
    }

    fn add_subscriber(&mut self, name: &'static str) -> String {
        let subscriber = SUBSCRIBERS[self.random.usize(0..2)];
        let spec = hqueue_protocol::generated::TSubscriberSpec {
            name: Some(subscriber.into()),
            start_position: Some("earliest".to_owned()),
            ..Default::default()
        };
        let result = self.admin.add_subscriber(name.into(), spec);
        match self.queues.get_mut(name) {
            None => assert_eq!(refusal(result).code, TErrorCode::NOT_FOUND),
            Some(model) => {
                if model.subscribers.insert(subscriber) {
                    result.unwrap();
                } else {
                    assert_eq!(refusal(result).code, TErrorCode::EXISTS);
                }
            }
        }
        format!("add {subscriber} to {name}")
    }

    fn delete_subscriber(&mut self, name: &'static str) -> String {
        let subscriber = SUBSCRIBERS[self.random.usize(0..2)];
        let result = self.admin.delete_subscriber(name.into(), subscriber.into());
        if self.queues.get_mut(name).is_some_and(|model| model.subscribers.remove(subscriber)) {
            result.unwrap();
        } else {
            assert_eq!(refusal(result).code, TErrorCode::NOT_FOUND);
        }
        format!("delete {subscriber} of {name}")
    }

    fn put(&mut self, name: &'static str) -> String {
        let values: Vec<String> = (0..self.random.usize(1..20)).map(|n| format!("{} {n}", self.number)).collect();
        self.number += 1;
        let partitions = self.queues.get(name).map_or(1, |m| m.messages.len());
        let partition = self.random.usize(0..partitions);
        let messages = values.iter().map(|v| to_put("t", v.as_str())).collect();
        let result = put_for_ids(&mut self.gateway, name, partition as i16, messages);
        match self.queues.get_mut(name) {
            None => assert_eq!(refusal(result).code, TErrorCode::NOT_FOUND),
            Some(model) if model.disabled => assert_eq!(refusal(result).code, TErrorCode::WRONG_STATE),
            Some(model) => {
                let (_, ids) = result.unwrap();
                assert!(Some(ids[0]) > model.last[partition], "ids go on rising");
                model.last[partition] = ids.last().copied();
                model.messages[partition].extend(ids.into_iter().zip(values));
            }
        }
        format!("put into {name}")
    }

    fn restart(&mut self) -> String {
        let how = self.random.bool();
        if how {
            self.broker.kill();
        } else {
            self.broker.stop();
        }
        self.broker.restart();
        self.admin = self.broker.admin();
        self.gateway = self.broker.gateway();
        self.check();
        format!("{} and start", if how { "kill" } else { "stop" })
    }

    fn check(&self) {
        let listed = self.broker.admin().list_queues().unwrap();
        let names: BTreeSet<Vec<u8>> = listed.into_iter().filter_map(|q| q.name).collect();
        assert_eq!(names, self.queues.keys().map(|n| n.as_bytes().to_vec()).collect());
        for (name, model) in &self.queues {
            for (partition, messages) in model.messages.iter().enumerate() {
                let stored = self.broker.scan(name, partition as i16);
                let stored: Vec<(Id, String)> = stored.into_iter().map(|m| (m.id, m.text().to_owned())).collect();
                assert!(stored == *messages, "{name}, partition {partition}: {} of {}", stored.len(), messages.len());
            }
            let status = self.broker.status(name);
            assert_eq!(status.state.as_deref(), Some(if model.disabled { "disabled" } else { "enabled" }));
            let waiting: usize = model.messages.iter().map(Vec::len).sum();
            for subscription in status.subscriptions.iter().flatten() {
                assert_eq!(subscription.lag_messages, Some(waiting as i64), "nobody consumes, all of {name} waits");
            }
            let names: BTreeSet<Vec<u8>> = status.subscriptions.into_iter().flatten().filter_map(|s| s.name).collect();
            assert_eq!(names, model.subscribers.iter().map(|n| n.as_bytes().to_vec()).collect());
        }
    }
}

/// Long form: `HQUEUE_LONG_COMMANDS=20000`.
#[test]
fn what_was_commanded_is_what_is_there() {
    let commands = long_form("HQUEUE_LONG_COMMANDS").unwrap_or(250);
    let random = seed("what_was_commanded_is_what_is_there");
    let broker = Broker::start();
    let (admin, gateway) = (broker.admin(), broker.gateway());
    let mut world = World { random, broker, admin, gateway, queues: BTreeMap::new(), number: 0 };
    for n in 0..commands {
        let did = world.step();
        println!("{n}: {did}");
    }
    world.check();
    for (name, model) in &world.queues {
        if model.disabled {
            world.admin.enable_queue((*name).into()).unwrap();
        }
        let consumer = Consumer::start();
        world.broker.subscribe(name, "last", &consumer.address(), &[]);
        let all: usize = model.messages.iter().map(Vec::len).sum();
        wait("everything is pushed", PATIENCE, || consumer.count() >= all);
        world.broker.wait_for_no_lag(name, "last");
        assert_eq!(consumer.count(), all);
        hqueue_tests::order::check_order(&consumer.accepted());
    }
}
