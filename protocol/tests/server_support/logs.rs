//! Collects what the server logs.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());
static BEGIN: Once = Once::new();
static TURN: Mutex<()> = Mutex::new(());

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("hqueue_protocol")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                write!(self.0, "{}={value:?} ", field.name()).unwrap();
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().unwrap().push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// To be called before the server starts, and kept: tests that look at lines take turns, for a peer's port may be another's soon.
pub fn collect() -> MutexGuard<'static, ()> {
    BEGIN.call_once(|| tracing::subscriber::set_global_default(Collector).unwrap());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    LINES.lock().unwrap().clear();
    turn
}

/// What was logged at this level or above with `part` in it.
pub fn lines(level: Level, part: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    lines.iter().filter(|(l, line)| *l <= level && line.contains(part)).map(|(_, line)| line.clone()).collect()
}
