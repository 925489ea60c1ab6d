//! No test: what the input format costs beside a plain loop over the gateway's scanner.

use std::fmt::Write;

use hqueue_tests::Broker;
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;

use crate::program::Program;

/// 400,000 messages of 100 bytes in four partitions, read eight times each way. Print it with `--nocapture`, by a release build in `HQUEUE_BIN`.
#[test]
#[ignore = "the long suite: a measurement"]
fn rows_per_second() {
    let broker = Broker::start();
    broker.create("q", 4);
    let mut gateway = broker.gateway();
    for n in 0..400_i32 {
        let values = (0..1000_i32).map(|m| format!("{:0>100}", n * 1000 + m));
        put_for_ids(&mut gateway, "q", (n % 4) as i16, values.map(|value| to_put("t", value)).collect()).unwrap();
    }
    let done = Program::start("local", "Measure", &[&broker.address(), "q", "8"]).end().succeeded();
    let mut text = String::new();
    for line in done.lines_of("round") {
        assert_eq!(line.matches(" 400000 rows").count(), 2, "{line}");
        writeln!(text, "round {line}").unwrap();
    }
    println!("{text}");
}
