//! `docs/metrics.md` has what brokers export: the names, the kinds and the labels.

use std::collections::{BTreeMap, BTreeSet};

use hqueue_tests::{Broker, Cluster, Consumer, PATIENCE, wait};

use crate::document::Document;

/// The kind, and the labels.
type Families = BTreeMap<String, (String, BTreeSet<String>)>;

#[test]
fn every_metric_is_in_the_document() {
    let (mut alone, mut several) = (Families::new(), Families::new());
    for row in Document::read("docs/metrics.md").rows() {
        // Those of two say what to alert on.
        let [name, kind, labels, meaning] = &row[..] else { continue };
        let labels: BTreeSet<String> = labels.split(", ").filter(|label| !label.is_empty()).map(str::to_owned).collect();
        let said = (kind.clone(), labels);
        assert!(!meaning.is_empty(), "{name}: what does it mean?");
        assert!(several.insert(name.clone(), said.clone()).is_none(), "{name} stands there twice");
        if !meaning.starts_with("With ZooKeeper:") {
            alone.insert(name.clone(), said);
        }
    }
    assert_eq!(exported(&Broker::start()), alone, "a broker alone exports (left), docs/metrics.md says (right)");
    let cluster = Cluster::start(1);
    assert_eq!(exported(&cluster.brokers[0]), several, "a broker with ZooKeeper exports (left), docs/metrics.md says (right)");
}

/// Of a broker that has had something to do.
fn exported(broker: &Broker) -> Families {
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    broker.put("q", 0, &["hello"]);
    wait("it is pushed", PATIENCE, || consumer.count() == 1);
    let metrics = broker.metrics();
    let mut families = Families::new();
    for (name, kind) in &metrics.types {
        let (name, samples) = match kind.as_str() {
            "counter" => (format!("{name}_total"), format!("{name}_total")),
            "histogram" => (name.clone(), format!("{name}_bucket")),
            _ => (name.clone(), name.clone()),
        };
        let mut labels = BTreeSet::new();
        for key in metrics.samples.keys() {
            if let Some(set) = key.strip_prefix(&samples).and_then(|rest| rest.strip_prefix('{')) {
                labels.extend(
                    set.trim_end_matches('}')
                        .split(',')
                        .filter_map(|pair| pair.split_once('='))
                        .map(|(label, _)| label.to_owned()),
                );
            }
        }
        families.insert(name, (kind.clone(), labels));
    }
    families
}
