//! Jobs that cannot be are refused before they begin, with the reason.

use hqueue_protocol::generated::THQueueAdminServiceSyncClient;
use hqueue_tests::{Broker, free_port};

use crate::program::Program;
use crate::queues::fill;

#[test]
fn what_cannot_be_is_refused_at_once() {
    let broker = Broker::start();
    fill(&broker, 1);
    broker.create("closed", 1);
    broker.admin().disable_queue("closed".into()).unwrap();
    let address = broker.address();
    let nobody = format!("127.0.0.1:{}", free_port());
    let count = |queue: &'static str| vec!["wordcount", queue, "{}/out"];
    let copy = |queue: &'static str| vec!["copy", "q", queue];
    let cases: Vec<(&str, Vec<&str>, Vec<&str>, &str)> = vec![
        (&address, vec![], count("nothing"), "splits of queue nothing: refused by 127.0.0.1:"),
        (&address, vec![], count("a/b"), "refused by"),
        (&address, vec!["hqueue.input.start=yesterday"], count("q"), "hqueue.input.start is \"yesterday\", which is no position"),
        (&address, vec!["hqueue.input.stop=14:05"], count("q"), "hqueue.input.stop is \"14:05\", which is no position"),
        (
            &address,
            vec!["hqueue.input.start=2026-03-29T02:30:00Z", "hqueue.input.stop=2026-03-29T02:30:00Z"],
            count("q"),
            "hqueue.input.start (2026-03-29T02:30:00Z) is not below hqueue.input.stop (2026-03-29T02:30:00Z)",
        ),
        (&address, vec!["hqueue.input.topics=a,,b"], count("q"), "the topic \"\" has 0 bytes, a topic has 1 to 255"),
        (&address, vec!["hqueue.input.batch.messages=0"], count("q"), "a number from 1 to 1000000 is wanted"),
        (&address, vec!["hqueue.input.on.missing=stop"], count("q"), "count or fail is wanted"),
        ("nowhere", vec![], count("q"), "\"nowhere\" is no host:port of a broker"),
        (&nobody, vec!["hqueue.patience=1s"], count("q"), "not done within 1000 ms (hqueue.patience) by 127.0.0.1:"),
        (&address, vec![], copy("nothing"), "output into queue nothing: refused by"),
        (&address, vec![], copy("closed"), "output into queue closed: it is disabled"),
        (&address, vec!["hqueue.output.partition=some"], copy("q"), "random or same is wanted"),
    ];
    for (broker, settings, words, text) in cases {
        let done = Program::job(broker, &settings, &words).end();
        let refused = done.lines_of("refused");
        assert!(
            !done.is_good && refused.len() == 1 && refused[0].contains(text),
            "{settings:?} {words:?}: {text:?}, not {done:?}"
        );
    }
}
