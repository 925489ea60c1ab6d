//! What `/metrics` says, and the plain http that asks for it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// All samples: the name with its labels, as it stands in the text, to its value.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub samples: BTreeMap<String, f64>,
    /// The name of each family to its type.
    pub types: BTreeMap<String, String>,
}

impl Metrics {
    /// Reads the text format.
    ///
    /// # Panics
    /// At a line that is none of it.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut metrics = Self::default();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let words: Vec<&str> = comment.splitn(3, ' ').collect();
                if let ["TYPE", name, kind] = words[..] {
                    metrics.types.insert(name.to_owned(), kind.to_owned());
                }
            } else if !line.is_empty() {
                let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line:?}"));
                let value = value.parse().unwrap_or_else(|_| panic!("no number in {line:?}"));
                let before = metrics.samples.insert(name.to_owned(), value);
                assert!(before.is_none(), "{name} stands there twice");
            }
        }
        metrics
    }

    /// The sum of the samples of this name whose labels hold all of `labels` (`queue="q"`).
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let of_name = |key: &str| key == name || key.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'));
        let wanted = |key: &&String| of_name(key) && labels.iter().all(|label| key.contains(label));
        self.samples.iter().filter(|(key, _)| wanted(key)).map(|(_, value)| value).sum()
    }
}

/// The status code and the body of a GET.
///
/// # Panics
/// If there is no answer.
#[must_use]
pub fn get(port: u16, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the http port is open");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
    (code, body.to_owned())
}
