//! Producers: every call of the gateway, in every dialect of the library.

use std::collections::BTreeMap;

use hqueue_tests::matrix::Case;
use hqueue_tests::{Broker, Message, PATIENCE, wait};

use crate::harness::{Language, Program, Server, test_program, unhex};

/// The refusals that the programs provoke: the code, and a word that the text has to say.
const REFUSALS: [(&str, &str, &str); 10] = [
    ("no-queue", "2", "no-such-queue"),
    ("slash", "2", "a/b"),
    ("empty-name", "2", "queue"),
    ("bytes-name", "2", "queue"),
    ("partition", "1", "99"),
    ("long-topic", "1", "255"),
    ("empty-topic", "1", "topic"),
    ("large", "5", "4194304"),
    ("closed", "2", "scanner"),
    ("count", "1", "1 or more"),
];

pub(crate) fn gateway(language: &Language) {
    std::thread::scope(|scope| {
        for client in &language.clients {
            scope.spawn(move || in_dialect(language, *client));
        }
    });
}

/// `run gateway PORT TRANSPORT PROTOCOL QUEUE` puts, scans and is refused; it prints a line for each result:
///
/// ```text
/// single|lists|part ID TOPIC VALUE     what three scanners gave, hexadecimal
/// location HOST:PORT
/// refused WHAT CODE TEXT               a declared exception
/// ```
fn in_dialect(language: &Language, client: Server) {
    let [puts, scanners, locations, refusals] = Case::PRODUCER.map(|case| language.cell(client, case));
    let broker = Broker::start();
    broker.create("q", 3);
    let words = ["gateway", &broker.port().to_string(), client.transport, client.protocol, "q"];
    let (mut program, mut stdout) = Program::start(test_program(language.name, &words));
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut printed).expect("the output is text");
    wait("the program ends", PATIENCE, || program.ended().is_some());
    let ended = program.ended().and_then(|status| status.code());
    assert_eq!(ended, Some(0), "{printed:.4000}\n{}", program.errors());
    let mut lines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in printed.lines() {
        let (what, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:.200}"));
        lines.entry(what).or_default().push(rest);
    }
    check_puts(&broker);
    puts.passed();
    check_scans(&broker, &lines);
    scanners.passed();
    assert_eq!(lines["location"], vec![format!("127.0.0.1:{}", broker.port()); 3]);
    locations.passed();
    check_refusals(&lines["refused"]);
    assert!(!lines.contains_key("accepted"), "{:?}", lines["accepted"]);
    refusals.passed();
}

fn check_puts(broker: &Broker) {
    let partitions: Vec<Vec<Message>> = (0..3).map(|partition| broker.scan("q", partition)).collect();
    let find = |topic: &[u8]| -> Vec<&Message> { partitions.iter().flatten().filter(|m| m.topic == topic).collect() };
    let every_byte: Vec<u8> = (0..=255).collect();
    assert_eq!(find(b"one").iter().map(|m| &m.value).collect::<Vec<_>>(), [&every_byte]);
    let own = find(b"\xff\0");
    assert!(own.len() == 1 && own[0].partition == 2 && own[0].value == b"own", "in the partition that the message names");
    let many = find(b"many");
    assert_eq!(many.iter().map(|m| m.value.as_slice()).collect::<Vec<_>>(), [&b""[..], b"x", b"\xc3\x28"]);
    assert!(many.iter().all(|m| m.partition == many[0].partition), "a batch goes into one partition");
    let with = find(b"with");
    assert!(with.len() == 1 && with[0].partition == 1 && with[0].text() == "d\u{e9}j\u{e0} vu");
    let numbers: Vec<&Message> = partitions[0].iter().filter(|m| m.topic == b"odd" || m.topic == b"even").collect();
    assert_eq!(
        numbers.iter().map(|m| m.text().to_owned()).collect::<Vec<_>>(),
        (0..250).map(|n| n.to_string()).collect::<Vec<_>>()
    );
    assert_eq!(partitions.iter().map(Vec::len).sum::<usize>(), 256, "nothing that was refused is stored");
}

fn check_scans(broker: &Broker, lines: &BTreeMap<&str, Vec<&str>>) {
    let stored = broker.scan("q", 0);
    let numbers: Vec<&Message> = stored.iter().filter(|m| m.topic == b"odd" || m.topic == b"even").collect();
    same("single", &lines["single"], &numbers);
    same("lists", &lines["lists"], &numbers);
    let part: Vec<&Message> = numbers[100..200].iter().filter(|m| m.topic == b"odd").copied().collect();
    same("part", &lines["part"], &part);
}

#[track_caller]
fn same(scanner: &str, lines: &[&str], wanted: &[&Message]) {
    assert_eq!(lines.len(), wanted.len(), "{scanner}");
    for (line, wanted) in lines.iter().zip(wanted) {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], wanted.id.to_string(), "{scanner}");
        assert_eq!(unhex(words[1]).as_ref(), Some(&wanted.topic), "{scanner}");
        assert_eq!(unhex(words[2]).as_ref(), Some(&wanted.value), "{scanner}");
    }
}

fn check_refusals(lines: &[&str]) {
    assert_eq!(lines.len(), REFUSALS.len(), "{lines:?}");
    for (line, (what, code, word)) in lines.iter().zip(REFUSALS) {
        let begin = format!("{what} {code} ");
        assert!(line.starts_with(&begin) && line.contains(word), "{line:?} is not {begin}...{word}...");
    }
}
