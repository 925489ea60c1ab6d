//! A consumer that answers as it is told: scripted PORT SERVER TRANSPORT PROTOCOL ANSWERS (see harness/scripted.rs).

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use hqueue_rust_client::hqueue::{HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor, TMessage};
use thrift::protocol::{
    TBinaryInputProtocolFactory, TBinaryOutputProtocolFactory, TCompactInputProtocolFactory, TCompactOutputProtocolFactory,
    TInputProtocolFactory, TOutputProtocolFactory,
};
use thrift::server::TServer;
use thrift::transport::{
    TBufferedReadTransportFactory, TBufferedWriteTransportFactory, TFramedReadTransportFactory, TFramedWriteTransportFactory,
    TReadTransportFactory, TWriteTransportFactory,
};

struct Scripted {
    /// Of the kind `panic` it panics where it is to throw.
    panics: bool,
    answers: Mutex<VecDeque<String>>,
}

fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(out, "{byte:02x}").unwrap();
    }
}

impl HQueueSubscriberServiceSyncHandler for Scripted {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        if messages.is_empty() {
            return Ok(0);
        }
        let mut answers = self.answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut out = format!("call {}\n", messages.len());
        for m in messages {
            let id = m.id.unwrap();
            write!(out, "{} {}:{} ", m.partition_i_d.unwrap(), id.timestamp.unwrap(), id.sequence_i_d.unwrap()).unwrap();
            hex(&mut out, &m.topic.unwrap());
            out.push(' ');
            hex(&mut out, &m.value.unwrap());
            out.push('\n');
        }
        let answer = answers.pop_front().unwrap_or_else(|| "0".to_owned());
        let mut stdout = std::io::stdout().lock();
        write!(stdout, "{out}answer {answer}\n")?;
        stdout.flush()?;
        drop(stdout);
        match answer.as_str() {
            "throw" if self.panics => panic!("the handler panics"),
            "throw" => Err("the handler fails".into()),
            "die" => std::process::exit(1),
            _ => match answer.strip_prefix("sleep:") {
                Some(ms) => {
                    std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
                    Ok(0)
                }
                None => Ok(answer.parse().unwrap()),
            },
        }
    }
}

fn main() -> thrift::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let (read, write): (Box<dyn TReadTransportFactory>, Box<dyn TWriteTransportFactory>) = if words[3] == "framed" {
        (Box::new(TFramedReadTransportFactory::new()), Box::new(TFramedWriteTransportFactory::new()))
    } else {
        (Box::new(TBufferedReadTransportFactory::new()), Box::new(TBufferedWriteTransportFactory::new()))
    };
    let (input, output): (Box<dyn TInputProtocolFactory>, Box<dyn TOutputProtocolFactory>) = if words[4] == "compact" {
        (Box::new(TCompactInputProtocolFactory::new()), Box::new(TCompactOutputProtocolFactory::new()))
    } else {
        (Box::new(TBinaryInputProtocolFactory::new()), Box::new(TBinaryOutputProtocolFactory::new()))
    };
    let answers = words[5].split(',').filter(|answer| *answer != "-").map(str::to_owned).collect();
    let handler = Scripted { panics: words[2] == "panic", answers: Mutex::new(answers) };
    let processor = HQueueSubscriberServiceSyncProcessor::new(handler);
    TServer::new(read, input, write, output, processor, 8).listen(format!("127.0.0.1:{}", words[1]))
}
