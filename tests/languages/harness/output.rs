//! What a test consumer prints, for each call with messages:
//!
//! ```text
//! call 2                                        the number of messages
//! 0 1700000000000:12 746f706963 76616c7565      partition, id, topic and value as hexadecimal digits
//! 0 1700000000000:13 746f706963
//! answer -1                                     what it answers now
//! ```

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::ChildStdout;

use hqueue_tests::Message;

/// A call of `consumeMessages`.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) messages: Vec<Message>,
    /// As it stood in the script: a number, `throw`, `die` or `sleep:MS`.
    pub(crate) answer: String,
}

impl Call {
    /// The messages that the answer says are consumed.
    pub(crate) fn accepted(&self) -> &[Message] {
        match self.answer.parse::<usize>() {
            Ok(k) if k == 0 || k == self.messages.len() => &self.messages,
            Ok(k) if k < self.messages.len() => &self.messages[..k],
            Err(_) if self.answer.starts_with("sleep:") => &self.messages,
            _ => &[],
        }
    }
}

/// Hands over each whole call until the program ends. What a killed program did not finish to print was not answered.
pub(crate) fn read_calls(stdout: ChildStdout, mut take: impl FnMut(Call)) {
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let Some(count) = first.strip_prefix("call ") else { panic!("not the beginning of a call: {first:.200}") };
        let count: usize = count.parse().expect("a number of messages");
        let messages: Vec<Message> = lines.by_ref().take(count).map_while(|line| parse(&line)).collect();
        let Some(last) = lines.next().filter(|_| messages.len() == count) else { return };
        let Some(answer) = last.strip_prefix("answer ") else { panic!("not the end of a call: {last:.200}") };
        take(Call { messages, answer: answer.to_owned() });
    }
}

fn parse(line: &str) -> Option<Message> {
    let mut words = line.split(' ');
    Some(Message {
        partition: words.next()?.parse().ok()?,
        id: words.next()?.parse().ok()?,
        topic: unhex(words.next()?)?,
        value: unhex(words.next()?)?,
        headers: BTreeMap::new(),
    })
}

/// Bytes from hexadecimal digits. A plain loop over a table: values have megabytes, and tests are not optimised.
pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut at = 0;
    while at < digits.len() {
        let (high, low) = (VALUES[digits[at] as usize], VALUES[*digits.get(at + 1)? as usize]);
        if high > 15 || low > 15 {
            return None;
        }
        bytes.push(high << 4 | low);
        at += 2;
    }
    Some(bytes)
}

/// The value of each digit, 255 for what is none.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value as usize] as usize] = value;
        value += 1;
    }
    values
};
