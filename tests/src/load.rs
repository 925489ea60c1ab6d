//! Clients that put all the time while something is done to the brokers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::HQueueError;

use crate::acknowledged::Acknowledged;
use crate::gateway::{self, Dialect, Gateway, put_for_ids};
use crate::message::to_put;
use crate::wait::{PATIENCE, wait};

/// What a client puts and where.
#[derive(Clone, Copy, Debug)]
pub struct Puts {
    pub queue: &'static str,
    /// -1: any.
    pub partition: i16,
    /// Between two puts.
    pub pause: Duration,
}

/// A client that puts one message after the other. It knows these brokers: when one cannot be reached, it goes to the next.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    acknowledged: Arc<Acknowledged>,
    count: AtomicUsize,
    outcomes: std::sync::Mutex<Outcomes>,
}

/// How the puts went.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// Puts that a broker refused, with the reason and the moment.
    pub refused: Vec<(Instant, String)>,
    /// Puts whose connection broke: they may be stored or not.
    pub unknown: usize,
    /// The longest that a put took, over all brokers that were tried.
    pub slowest: Duration,
    /// The longest time between two acknowledgements.
    pub longest_gap: Duration,
    /// Of every acknowledgement.
    pub times: Vec<Instant>,
}

impl Load {
    /// Starts a client with a name that its values begin with.
    #[must_use]
    pub fn start(name: &str, ports: &[u16], puts: Puts, acknowledged: &Arc<Acknowledged>) -> Self {
        let shared = Arc::new(Shared { acknowledged: Arc::clone(acknowledged), ..Shared::default() });
        let (of_thread, name, ports) = (Arc::clone(&shared), name.to_owned(), ports.to_vec());
        let thread = std::thread::spawn(move || of_thread.run(&name, &ports, puts));
        Self { shared, thread }
    }

    /// Acknowledged so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::Relaxed)
    }

    /// Waits for so many more acknowledgements.
    ///
    /// # Panics
    /// If they do not come.
    #[track_caller]
    pub fn wait_for(&self, more: usize) {
        let enough = self.count() + more;
        wait("puts are acknowledged", PATIENCE, || self.count() >= enough || self.thread.is_finished());
        assert!(!self.thread.is_finished(), "the client has ended");
    }

    /// How it goes so far.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        self.shared.outcomes.lock().expect("the client does not panic").clone()
    }

    /// Ends the client.
    ///
    /// # Panics
    /// If it has panicked.
    #[track_caller]
    pub fn finish(self) -> Outcomes {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the client does not panic");
        self.shared.outcomes.lock().expect("the client does not panic").clone()
    }
}

impl Shared {
    fn run(&self, name: &str, ports: &[u16], puts: Puts) {
        let mut connection: Option<(usize, Gateway)> = None;
        let mut next = 0;
        let mut last = Instant::now();
        for number in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let value = format!("{name}-{number}").into_bytes();
            let began = Instant::now();
            // A value whose fate is unknown is put again: it may be there twice.
            while !self.stop.load(Ordering::Relaxed) {
                let Some((broker, mut gateway)) = connection.take().or_else(|| connect(ports, &mut next)) else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                match put_for_ids(&mut gateway, puts.queue, puts.partition, vec![to_put("t", value.clone())]) {
                    Ok((partition, ids)) => {
                        self.acknowledged.note(partition, &ids, &[value]);
                        self.count.fetch_add(1, Ordering::Relaxed);
                        connection = Some((broker, gateway));
                        let mut outcomes = self.outcomes.lock().expect("the test does not panic");
                        outcomes.slowest = outcomes.slowest.max(began.elapsed());
                        outcomes.longest_gap = outcomes.longest_gap.max(last.elapsed());
                        last = Instant::now();
                        outcomes.times.push(last);
                        break;
                    }
                    Err(thrift::Error::User(error)) => {
                        let text =
                            error.downcast::<HQueueError>().map_or_else(|e| e.to_string(), |e| e.message.unwrap_or_default());
                        self.outcomes.lock().expect("the test does not panic").refused.push((Instant::now(), text));
                        connection = Some((broker, gateway));
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    Err(_) => self.outcomes.lock().expect("the test does not panic").unknown += 1,
                }
            }
            std::thread::sleep(puts.pause);
        }
    }
}

/// The next broker that takes a connection.
fn connect(ports: &[u16], next: &mut usize) -> Option<(usize, Gateway)> {
    for _ in ports {
        let broker = *next % ports.len();
        *next += 1;
        if let Ok(gateway) = gateway::gateway(ports[broker], Dialect::USUAL) {
            return Some((broker, gateway));
        }
    }
    None
}
