//! The server of a language, which counts: `run rate serve PORT`. It is as the example in `clients` has it, and prints:
//!
//! ```text
//! run                          message 0 came: somebody begins
//! at MICROSECONDS NEXT CALLS   behind a call, at most ten times a second: the number that is due next, and how many calls there were
//! fault TEXT                   a message came that was not due, or was of another size
//! ```
//!
//! `run rate call PORT` calls it in a loop of the library's own client, with messages whose values begin with their number in ten digits.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use hqueue_tests::{PATIENCE, free_port, wait};

use crate::harness::{Language, Program, test_program};

/// How long it is measured, and what passes before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) warm_up: Duration,
    pub(super) length: Duration,
}

pub(super) const TIME: Window = Window { warm_up: Duration::from_millis(1500), length: Duration::from_secs(3) };

impl Window {
    pub(super) const SHORT: Self = Self { warm_up: Duration::from_secs(2), length: Duration::from_secs(1) };
}

/// If so much less than the window was measured when everything that was stored had come, there is no figure.
const LEAST: Duration = Duration::from_secs(1);
/// A server is silent no longer than this while it is called.
const SILENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) per_second: f64,
    /// Messages.
    pub(super) per_call: f64,
}

enum Line {
    Run,
    At(Count),
    Fault(String),
}

#[derive(Clone, Copy)]
struct Count {
    at: Duration,
    messages: f64,
    calls: f64,
}

pub(super) struct Counting {
    lines: Receiver<Line>,
    port: u16,
    _program: Program,
}

impl Counting {
    pub(super) fn start(language: &Language) -> Self {
        let port = free_port();
        let (program, stdout) = Program::start(test_program(language.name, &["rate", "serve", &port.to_string()]));
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let texts = BufReader::new(stdout).lines().map_while(Result::ok);
            texts.map(|text| parse(&text)).try_for_each(|parsed| line.send(parsed))
        });
        wait("the server listens", PATIENCE, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        Self { lines, port, _program: program }
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// What it has printed so far.
    pub(super) fn forget(&self) {
        while self.lines.try_recv().is_ok() {}
    }

    /// Looks at those who begin now. `is_over` says whether everything has come, if nothing more comes.
    pub(super) fn measure(&self, time: Window, is_over: impl Fn() -> bool) -> Result<Rate, String> {
        let (mut has_begun, mut counts) = (false, Vec::<Count>::new());
        loop {
            match self.lines.recv_timeout(SILENCE) {
                Ok(Line::Run) if has_begun => return Err("message 0 came twice".to_owned()),
                Ok(Line::Run) => has_begun = true,
                Ok(Line::Fault(fault)) if has_begun => return Err(fault),
                Ok(Line::At(count)) if has_begun => counts.push(count),
                // Of those who were before.
                Ok(Line::Fault(_) | Line::At(_)) => {}
                Err(RecvTimeoutError::Timeout) if is_over() => break,
                Err(error) => return Err(format!("nothing was counted ({error})")),
            }
            if rate(&counts, time, time.length).is_some() {
                break;
            }
        }
        rate(&counts, time, LEAST).ok_or_else(|| "it was over too soon for a figure".to_owned())
    }
}

/// From the end of the warm-up on, once `least` has passed since.
fn rate(counts: &[Count], time: Window, least: Duration) -> Option<Rate> {
    let (first, last) = (counts.first()?, counts.last()?);
    let begin = counts.iter().find(|count| count.at - first.at >= time.warm_up)?;
    let length = last.at - begin.at;
    let messages = last.messages - begin.messages;
    (length >= least)
        .then(|| Rate { per_second: messages / length.as_secs_f64(), per_call: messages / (last.calls - begin.calls) })
}

fn parse(line: &str) -> Line {
    if line == "run" {
        return Line::Run;
    }
    let words: Vec<&str> = line.split(' ').collect();
    let ["at", at, messages, calls] = words[..] else { return Line::Fault(line.to_owned()) };
    let number = |word: &str| word.parse::<u64>().expect("a number");
    Line::At(Count { at: Duration::from_micros(number(at)), messages: number(messages) as f64, calls: number(calls) as f64 })
}
