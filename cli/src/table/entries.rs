//! Every command, in the order of the help.

use super::{Dictionary, Entry, Group, Kind, Original, Scope, Word};

const fn word(name: &'static str, kind: Kind) -> Word {
    Word { name, kind, flag: None, optional: false }
}

impl Word {
    const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

const QUEUE: Word = word("QUEUE", Kind::Queue);
const SUBSCRIBER: Word = word("SUBSCRIBER", Kind::Subscriber);

const fn original(words: &'static [Word], dictionary: Dictionary) -> Option<Original> {
    Some(Original { words, dictionary })
}

/// The most frequent kind: a name of a queue, and nothing else.
const fn of_queue(name: &'static str, group: Group, original_example: &'static str, example: &'static str) -> Entry {
    let form = original(&[QUEUE], Dictionary::None);
    Entry { name, group, scope: Scope::Everywhere, original: form, original_example, example, destroys: false }
}

const fn of_subscriber(name: &'static str, original_example: &'static str, example: &'static str) -> Entry {
    let form = original(&[QUEUE, SUBSCRIBER], Dictionary::None);
    let group = Group::Subscribers;
    Entry { name, group, scope: Scope::Everywhere, original: form, original_example, example, destroys: false }
}

/// Written in one way only.
const fn plain(name: &'static str, group: Group, scope: Scope, example: &'static str) -> Entry {
    Entry { name, group, scope, original: None, original_example: "", example, destroys: false }
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: "create",
        group: Group::Queues,
        scope: Scope::Everywhere,
        original: original(
            &[QUEUE, word("PARTITIONS", Kind::Bare).flag("partitions"), word("TTL", Kind::Bare).flag("ttl")],
            Dictionary::Settings,
        ),
        original_example: "create 'q1', 32, 86400, {'hbase.hqueue.partitionsPerRegion' => '4'}",
        example: "create q1 --partitions 32 --ttl 86400 --set hbase.hqueue.partitionsPerRegion=4",
        destroys: false,
    },
    Entry {
        name: "list",
        group: Group::Queues,
        scope: Scope::Everywhere,
        original: original(&[], Dictionary::None),
        original_example: "list",
        example: "list",
        destroys: false,
    },
    of_queue("describe", Group::Queues, "describe 'q1'", "describe q1"),
    of_queue("disable", Group::Queues, "disable 'q1'", "disable q1"),
    of_queue("enable", Group::Queues, "enable 'q1'", "enable q1"),
    Entry { destroys: true, ..of_queue("drop", Group::Queues, "drop 'q1'", "drop q1") },
    Entry { destroys: true, ..of_queue("truncate_queue", Group::Queues, "truncate_queue 'q1'", "truncate_queue q1") },
    Entry {
        name: "put",
        group: Group::Messages,
        scope: Scope::Everywhere,
        original: original(
            &[QUEUE, word("TOPIC", Kind::Text).flag("topic"), word("VALUE", Kind::Value).optional()],
            Dictionary::Flags,
        ),
        original_example: "put 'q1', 'greeting', 'hello world', {'partition' => '3'}",
        example: "put q1 --topic greeting --partition 3 'hello world'",
        destroys: false,
    },
    Entry {
        name: "scan",
        group: Group::Messages,
        scope: Scope::Everywhere,
        original: original(&[QUEUE], Dictionary::Flags),
        original_example: "scan 'q1', {'start' => '-10m', 'topics' => 'greeting,farewell', 'limit' => '10'}",
        example: "scan q1 --start -10m --topic greeting --topic farewell --limit 10",
        destroys: false,
    },
    plain("poll", Group::Messages, Scope::Everywhere, "poll q1 --name s1 --from earliest --max 100"),
    plain("subscribe", Group::Messages, Scope::Everywhere, "subscribe q1 --name s1 --from earliest"),
    Entry {
        name: "add_subscriber",
        group: Group::Subscribers,
        scope: Scope::Everywhere,
        original: original(&[QUEUE, SUBSCRIBER], Dictionary::Flags),
        original_example: "add_subscriber 'q1', 'mailer', {'address' => '127.0.0.1:9500', 'topics' => 'a,b'}",
        example: "add_subscriber q1 mailer --address 127.0.0.1:9500 --topic a --topic b",
        destroys: false,
    },
    Entry {
        name: "set_subscriber",
        group: Group::Subscribers,
        scope: Scope::Everywhere,
        original: original(&[QUEUE, SUBSCRIBER], Dictionary::Flags),
        original_example: "set_subscriber 'q1', 'mailer', {'batch-messages' => '10', 'call-timeout' => '5s'}",
        example: "set_subscriber q1 mailer --batch-messages 10 --call-timeout 5s",
        destroys: false,
    },
    Entry {
        destroys: true,
        ..of_subscriber("delete_subscriber", "delete_subscriber 'q1', 'mailer'", "delete_subscriber q1 mailer")
    },
    of_queue("list_subscribers", Group::Subscribers, "list_subscribers 'q1'", "list_subscribers q1"),
    plain("check", Group::Subscribers, Scope::Everywhere, "check 127.0.0.1:9500 --idle 70s"),
    of_subscriber("pause", "pause 'q1', 'mailer'", "pause q1 mailer"),
    of_subscriber("resume", "resume 'q1', 'mailer'", "resume q1 mailer"),
    Entry {
        name: "seek",
        group: Group::Subscribers,
        scope: Scope::Everywhere,
        original: original(
            &[QUEUE, SUBSCRIBER, word("POSITION", Kind::Bare), word("PARTITION", Kind::Bare).flag("partition").optional()],
            Dictionary::None,
        ),
        original_example: "seek 'q1', 'mailer', -10m, 3",
        example: "seek q1 mailer -10m --partition 3",
        destroys: false,
    },
    Entry {
        name: "explain",
        group: Group::Subscribers,
        scope: Scope::Everywhere,
        original: original(&[QUEUE, word("PARTITION", Kind::Bare), word("ID", Kind::Bare)], Dictionary::Flags),
        original_example: "explain 'q1', 0, '1700000000000:0', {'name' => 'mailer'}",
        example: "explain q1 0 1700000000000:0 --name mailer",
        destroys: false,
    },
    Entry { destroys: true, ..plain("dlq", Group::Subscribers, Scope::Everywhere, "dlq redrive q1 mailer") },
    Entry {
        name: "status",
        group: Group::Brokers,
        scope: Scope::Everywhere,
        original: original(&[QUEUE.optional()], Dictionary::None),
        original_example: "status 'q1'",
        example: "status q1",
        destroys: false,
    },
    of_queue("locations", Group::Brokers, "locations 'q1'", "locations q1"),
    plain("move", Group::Brokers, Scope::Everywhere, "move q1 3 127.0.0.1:9190"),
    plain("balancer", Group::Brokers, Scope::Everywhere, "balancer status"),
    plain("demo", Group::Brokers, Scope::CommandLine, "demo README.md"),
    plain("standalone", Group::Brokers, Scope::CommandLine, "standalone --data ./hqueue-data"),
    plain("broker", Group::Brokers, Scope::CommandLine, "broker --zookeeper zk1:2181,zk2:2181,zk3:2181/hqueue"),
    plain("shell", Group::Shell, Scope::CommandLine, "shell -e list"),
    plain("completions", Group::Shell, Scope::CommandLine, "completions bash"),
    plain("help", Group::Shell, Scope::Shell("Show the commands, or one of them"), "help create"),
    plain("exit", Group::Shell, Scope::Shell("Leave the shell; so does ^D"), "exit"),
];
