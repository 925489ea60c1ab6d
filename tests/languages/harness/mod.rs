//! Running the programs of a language.

mod output;
mod programs;
mod scripted;

use std::time::Duration;

use hqueue_tests::long_form;
use hqueue_tests::matrix::{self, Case, Cell, Place};

pub(crate) use output::unhex;
pub(crate) use programs::{Program, example, test_program};
pub(crate) use scripted::Scripted;

pub(crate) const BUFFERED: &str = "buffered";
pub(crate) const FRAMED: &str = "framed";
pub(crate) const BINARY: &str = "binary";
pub(crate) const COMPACT: &str = "compact";

/// A language with its library.
#[derive(Clone, Debug)]
pub(crate) struct Language {
    /// The folder in `clients` and in `tests/languages`.
    pub(crate) name: &'static str,
    /// The library's servers in the dialects that they speak; the first is what the example in `clients` uses.
    pub(crate) servers: Vec<Server>,
    /// What its server does when the handler throws.
    pub(crate) on_throw: OnThrow,
    /// What servers of other kinds do then, where it is something else.
    pub(crate) others_throw: Vec<(&'static str, OnThrow)>,
    /// A connection that was idle for so long is over the limit of the library, if it has one.
    pub(crate) idle: Duration,
    /// Kinds of servers that leave an idle connection and do not close it.
    pub(crate) leaves_idle: Vec<&'static str>,
    /// The dialects of its client.
    pub(crate) clients: Vec<Server>,
}

impl Language {
    pub(crate) fn usual(&self) -> Server {
        self.servers[0]
    }

    /// The usual kind of server, in the usual dialect; in the long form (`HQUEUE_LONG_DIALECTS`) in each.
    pub(crate) fn dialects(&self) -> impl Iterator<Item = Server> {
        let of_that_kind = self.servers.iter().filter(|server| server.kind == self.usual().kind).copied();
        of_that_kind.take(long_form("HQUEUE_LONG_DIALECTS").map_or(1, |_| usize::MAX))
    }

    /// Begins a case of the matrix.
    pub(crate) fn cell(&self, server: Server, case: Case) -> Cell {
        Cell::begin(self.place(server), case)
    }

    /// Says which dialects its library does not speak.
    pub(crate) fn tell_absent(&self) {
        for (transport, protocol) in [(BUFFERED, BINARY), (FRAMED, BINARY), (BUFFERED, COMPACT), (FRAMED, COMPACT)] {
            let speaks = |server: &Server| (server.transport, server.protocol) == (transport, protocol);
            if !self.servers.iter().chain(&self.clients).any(speaks) {
                matrix::absent(self.place(Server { kind: "-", transport, protocol }));
            }
        }
    }

    fn place(&self, server: Server) -> Place {
        let Server { kind, transport, protocol } = server;
        Place { language: self.name, kind, transport, protocol }
    }
}

/// A server of a library in one dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// What the language's `scripted` calls it.
    pub(crate) kind: &'static str,
    pub(crate) transport: &'static str,
    pub(crate) protocol: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnThrow {
    /// With an exception of this text.
    Answers(&'static str),
    /// Closes the connection without an answer.
    Closes,
    /// Keeps the connection and says nothing.
    SaysNothing,
    /// The process ends.
    Dies,
}
