//! A consumer that answers as it is told: `run scripted PORT SERVER TRANSPORT PROTOCOL ANSWERS`.
//!
//! ANSWERS is `-` or a list with commas, used up call by call (calls without messages are answered with 0 and use nothing up), then 0:
//! a number is returned, `throw` throws an exception that says "the handler fails", `die` ends the process, `sleep:MS` waits and
//! returns 0.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hqueue_tests::{Message, free_port, wait};

use super::output::{Call, read_calls};
use super::{Language, OnThrow, Program, Server, test_program};

/// A runtime that starts on a busy machine.
const START: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Scripted {
    language: &'static str,
    pub(crate) server: Server,
    port: u16,
    answers: Vec<String>,
    calls: Arc<Mutex<Vec<Call>>>,
    program: Option<Program>,
    reading: Option<JoinHandle<()>>,
    revived: bool,
    lives: usize,
}

impl Scripted {
    /// Starts it and waits until it listens.
    pub(crate) fn start(language: &Language, server: Server, answers: &str) -> Self {
        Self::start_on(free_port(), language, server, answers)
    }

    pub(crate) fn start_on(port: u16, language: &Language, server: Server, answers: &str) -> Self {
        let answers = answers.split(',').filter(|a| !a.is_empty()).map(str::to_owned).collect();
        let mut scripted = Self {
            language: language.name,
            server,
            port,
            answers,
            calls: Arc::default(),
            program: None,
            reading: None,
            revived: language.on_throw == OnThrow::Dies,
            lives: 0,
        };
        scripted.restart();
        scripted
    }

    /// Starts it again on its port, with the answers that are left.
    pub(crate) fn restart(&mut self) {
        self.lives += 1;
        self.stop();
        let left = self.answers.get(self.calls().len()..).unwrap_or_default().join(",");
        let left = if left.is_empty() { "-" } else { &left };
        let words = ["scripted", &self.port.to_string(), self.server.kind, self.server.transport, self.server.protocol, left];
        // The port may be taken for a moment longer by what served it before: not every library reuses addresses.
        wait("the consumer listens", START, || {
            let (mut program, stdout) = Program::start(test_program(self.language, &words));
            let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
            wait("the consumer listens or ends", START, || program.ended().is_some() || listens());
            if program.ended().is_some() {
                println!("{program:?} ended at once: {}", program.errors());
                return false;
            }
            let calls = Arc::clone(&self.calls);
            self.reading = Some(std::thread::spawn(move || {
                read_calls(stdout, |call| calls.lock().unwrap_or_else(PoisonError::into_inner).push(call));
            }));
            self.program = Some(program);
            true
        });
    }

    /// `kill -9`; what it printed is read.
    pub(crate) fn stop(&mut self) {
        drop(self.program.take());
        if let Some(reading) = self.reading.take() {
            reading.join().expect("the output is that of a test consumer");
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn ended(&mut self) -> bool {
        self.program.as_mut().is_none_or(|program| program.ended().is_some())
    }

    /// How many descriptors its process has open.
    pub(crate) fn descriptors(&self) -> u64 {
        self.program.as_ref().map_or(0, |program| program.figures().descriptors)
    }

    /// Starts it again if it is one of those that end by themselves, as a supervisor does.
    pub(crate) fn supervise(&mut self) {
        if self.revived && self.ended() {
            self.restart();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().clone()
    }

    pub(crate) fn accepted(&self) -> Vec<Message> {
        self.lock().iter().flat_map(|call| call.accepted().to_vec()).collect()
    }

    /// How many messages were accepted, in all its lives.
    pub(crate) fn count(&self) -> usize {
        self.lock().iter().map(|call| call.accepted().len()).sum()
    }

    /// How often it was started.
    pub(crate) fn lives(&self) -> usize {
        self.lives
    }

    /// Waits until so many messages were accepted, in all its lives.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, count: usize, limit: Duration) {
        let server = self.server;
        wait(&format!("{} {server:?} accepts {count} messages", self.language), limit, || {
            self.supervise();
            self.count() >= count
        });
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        drop(self.program.take());
    }
}
