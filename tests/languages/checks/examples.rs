//! The examples in `clients`, as a user copies them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use hqueue_tests::matrix::Case;
use hqueue_tests::{Broker, PATIENCE, free_port, wait};

use super::QUICK;
use super::messages::put;
use crate::harness::{Language, Program, example};

/// A program that prints lines.
pub(super) struct Printing {
    program: Program,
    lines: Receiver<Vec<u8>>,
}

impl Printing {
    fn start(language: &Language, words: &[&str]) -> Self {
        Self::begin(example(language.name, words))
    }

    pub(super) fn begin(command: Command) -> Self {
        let (program, stdout) = Program::start(command);
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || read_lines(stdout, &line));
        Self { program, lines }
    }

    /// A consumer that listens.
    fn consumer(language: &Language, words: &[&str], port: u16) -> Self {
        let mut printing = Self::start(language, words);
        printing.wait_until_it_listens(port, PATIENCE);
        printing
    }

    #[track_caller]
    pub(super) fn wait_until_it_listens(&mut self, port: u16, limit: Duration) {
        wait("the example listens", limit, || {
            let ended = self.program.ended();
            assert!(ended.is_none(), "it ended: {ended:?}: {}", self.program.errors());
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
    }

    #[track_caller]
    fn line(&self) -> Vec<u8> {
        self.lines.recv_timeout(PATIENCE).expect("the example prints another line")
    }

    /// The next lines are those of the stored messages.
    #[track_caller]
    pub(super) fn prints(&self, broker: &Broker, queue: &str) {
        for stored in broker.scan(queue, 0) {
            let wanted = [format!("{}\t{}", stored.partition, stored.id).into_bytes(), stored.topic, stored.value].join(&b'\t');
            let came = self.line();
            assert!(came == wanted, "{:?} in place of {:?}", String::from_utf8_lossy(&came), String::from_utf8_lossy(&wanted));
        }
    }
}

fn read_lines(stdout: ChildStdout, line: &mpsc::Sender<Vec<u8>>) {
    for text in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
        if line.send(text).is_err() {
            return;
        }
    }
}

/// The producer puts, the consumer prints; texts of other languages, spaces and quotes included.
pub(crate) fn examples(language: &Language) {
    let cell = language.cell(language.usual(), Case::Example);
    shape(language);
    let broker = Broker::start();
    broker.create("q1", 1);
    let address = format!("127.0.0.1:{}", broker.port());
    let values = ["hello", "with space", "d\u{e9}j\u{e0} vu", "'quotes' \u{201c}\u{201d}", "-1", ""];
    let words = [&["producer", &address, "q1", "greet\u{fc}ng"], &values[..]].concat();
    let producer = Printing::start(language, &words);
    let printed: Vec<String> = values.iter().map(|_| String::from_utf8(producer.line()).expect("ids are text")).collect();
    let stored = broker.scan("q1", 0);
    let texts: Vec<&str> = stored.iter().map(|m| m.text()).collect();
    assert_eq!(texts, values);
    assert!(stored.iter().all(|m| m.topic == "greet\u{fc}ng".as_bytes()));
    let ids: Vec<String> = stored.iter().map(|m| format!("0 {}", m.id)).collect();
    assert_eq!(printed, ids, "the producer prints where they went");
    put(&broker, "q1", 0, super::messages::odd().into_iter().filter(has_no_line_end).collect());

    let port = free_port();
    let consumer = Printing::consumer(language, &["consumer", &port.to_string()], port);
    broker.subscribe("q1", "printer", &format!("127.0.0.1:{port}"), &QUICK);
    consumer.prints(&broker, "q1");
    broker.wait_for_no_lag("q1", "printer");
    refusal(language, &address);
    if language.name == "python" {
        announces_itself(language, &broker, &address);
    }
    cell.passed();
}

fn has_no_line_end(message: &hqueue_protocol::generated::TMessage) -> bool {
    message.value.as_ref().is_none_or(|value| !value.contains(&b'\n'))
        && message.topic.as_ref().is_none_or(|topic| !topic.contains(&b'\n'))
}

/// A refusal is a line that says what and why, not a stack trace.
fn refusal(language: &Language, address: &str) {
    let mut producer = Printing::start(language, &["producer", address, "no-such-queue", "t", "v"]);
    wait("the producer ends", PATIENCE, || producer.program.ended().is_some());
    let errors = producer.program.errors();
    assert_ne!(producer.program.ended().and_then(|status| status.code()), Some(0), "{errors}");
    assert!(errors.contains("there is no queue \"no-such-queue\""), "{errors}");
    assert!(errors.trim().lines().count() <= 2, "a line, no stack trace: {errors}");
}

/// The Python example that registers by `subscribe`, renews, and leaves.
fn announces_itself(language: &Language, broker: &Broker, address: &str) {
    let port = free_port();
    let mut subscriber = Printing::consumer(language, &["subscriber", address, "q1", "announced", &port.to_string()], port);
    subscriber.prints(broker, "q1");
    // Longer than a registration lives when it is not renewed.
    std::thread::sleep(Duration::from_secs(11));
    broker.put("q1", 0, &["later"]);
    assert!(subscriber.line().ends_with(b"\tlater"));
    subscriber.program.terminate();
    wait("it leaves", PATIENCE, || subscriber.program.ended().is_some());
    assert_eq!(subscriber.program.ended().and_then(|status| status.code()), Some(0), "{}", subscriber.program.errors());
    assert!(broker.subscription("q1", "announced").endpoints().is_empty(), "it has taken its registration back");
}

/// Short, and nothing in it that a copy would break.
fn shape(language: &Language) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("clients").join(language.name);
    let readme = fs::read_to_string(folder.join("README.md")).expect("a README");
    assert!(readme.lines().count() < 40, "the README is short");
    assert!(!readme.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}', '\u{2013}', '\u{a0}']), "no typographer's signs");
    let mut names = Vec::new();
    list(&folder, &mut names);
    for what in ["consumer", "producer", "run"] {
        let named = |path: &&PathBuf| path.strip_prefix(&folder).unwrap().to_string_lossy().to_lowercase().contains(what);
        let path = names.iter().find(named).unwrap_or_else(|| panic!("no {what} in {}", folder.display()));
        let lines = fs::read_to_string(path).expect("a text").lines().count();
        assert!(lines < 60, "{} has {lines} lines", path.display());
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of the client") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}
