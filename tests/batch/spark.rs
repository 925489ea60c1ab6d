//! The same input format, read by Spark.

use hqueue_tests::Broker;

use crate::program::{Program, counts};
use crate::queues::{count, fill};

#[test]
#[ignore = "the long suite: fetches Spark"]
fn spark_counts_the_same() {
    let broker = Broker::start();
    let lines = fill(&broker, 40);
    let done = Program::start("spark", "SparkWords", &[&broker.address(), "q"]).end().succeeded();
    let found: Vec<&str> = done.lines.iter().filter(|line| line.contains('\t')).map(String::as_str).collect();
    assert!(counts(&found.join("\n")) == count(&lines));
    assert_eq!(
        done.lines_of("partition"),
        ["0 127.0.0.1", "1 127.0.0.1", "2 127.0.0.1", "3 127.0.0.1"],
        "it knows where they lie"
    );
    println!("Spark {}", done.lines_of("spark")[0]);
}
