//! The languages: which servers their libraries have, and how these behave. What stands here is what the tests see, and what the
//! README of each client says.

use std::time::Duration;

use crate::harness::{BINARY, BUFFERED, COMPACT, FRAMED, Language, OnThrow, Server};

const fn server(kind: &'static str, transport: &'static str, protocol: &'static str) -> Server {
    Server { kind, transport, protocol }
}

/// A server of this kind in every dialect.
fn all(kind: &'static str) -> Vec<Server> {
    [(BUFFERED, BINARY), (FRAMED, BINARY), (BUFFERED, COMPACT), (FRAMED, COMPACT)].map(|(t, p)| server(kind, t, p)).to_vec()
}

/// Framed only, as nonblocking servers are.
fn framed(kind: &'static str) -> Vec<Server> {
    [BINARY, COMPACT].map(|p| server(kind, FRAMED, p)).to_vec()
}

pub(crate) fn languages() -> Vec<Language> {
    vec![python(), thriftpy2(), java(), go(), node(), cpp(), php(), ruby(), perl(), rust()]
}

pub(crate) fn python() -> Language {
    Language {
        name: "python",
        servers: [all("threaded"), framed("nonblocking"), all("pool")].concat(),
        on_throw: OnThrow::Answers("Internal error"),
        others_throw: vec![("none", OnThrow::Answers("the result has no number"))],
        idle: Duration::from_secs(4),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}

/// It closes connections that were idle for 3 s.
pub(crate) fn thriftpy2() -> Language {
    Language {
        name: "thriftpy2",
        servers: [all("threaded"), all("plain")].concat(),
        on_throw: OnThrow::Closes,
        others_throw: Vec::new(),
        idle: Duration::from_millis(3500),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}

pub(crate) fn java() -> Language {
    Language {
        name: "java",
        servers: [all("pool"), framed("selector"), framed("hsha"), framed("nonblocking")].concat(),
        on_throw: OnThrow::Answers("Internal error"),
        others_throw: Vec::new(),
        idle: Duration::from_secs(4),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}

pub(crate) fn go() -> Language {
    Language {
        name: "go",
        servers: all("simple"),
        on_throw: OnThrow::Answers("the handler fails"),
        others_throw: vec![("panic", OnThrow::Dies)],
        idle: Duration::from_secs(4),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}

pub(crate) fn node() -> Language {
    Language {
        name: "node",
        servers: all("callback"),
        on_throw: OnThrow::Answers("the handler fails"),
        others_throw: vec![("thrown", OnThrow::Closes)],
        idle: Duration::from_secs(4),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}

pub(crate) fn cpp() -> Language {
    Language {
        name: "cpp",
        servers: [all("threaded"), all("simple"), all("pool"), framed("nonblocking")].concat(),
        on_throw: OnThrow::Answers("the handler fails"),
        others_throw: vec![("number", OnThrow::Dies)],
        idle: Duration::from_secs(4),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}

/// One process serves one connection at a time. With the library's own timeouts (`stock`, `forking`) it leaves an idle connection after
/// 0.75 s and does not close it.
pub(crate) fn php() -> Language {
    Language {
        name: "php",
        servers: all("simple"),
        on_throw: OnThrow::Dies,
        others_throw: vec![("forking", OnThrow::SaysNothing)],
        idle: Duration::from_secs(3),
        leaves_idle: vec!["stock", "forking"],
        clients: all("client"),
    }
}

pub(crate) fn ruby() -> Language {
    Language {
        name: "ruby",
        servers: [all("threaded"), framed("nonblocking"), all("pool"), all("simple")].concat(),
        on_throw: OnThrow::Answers("Internal error"),
        others_throw: Vec::new(),
        idle: Duration::from_secs(4),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}

/// Binary only. It closes connections that were idle for 10 s.
pub(crate) fn perl() -> Language {
    let servers = |kind| vec![server(kind, BUFFERED, BINARY), server(kind, FRAMED, BINARY)];
    Language {
        name: "perl",
        servers: [servers("simple"), servers("forking")].concat(),
        on_throw: OnThrow::Closes,
        others_throw: vec![("plain", OnThrow::Dies), ("forking", OnThrow::Closes)],
        idle: Duration::from_millis(10_500),
        leaves_idle: Vec::new(),
        clients: servers("client"),
    }
}

pub(crate) fn rust() -> Language {
    Language {
        name: "rust",
        servers: all("pool"),
        on_throw: OnThrow::Answers("the handler fails"),
        others_throw: vec![("panic", OnThrow::Closes)],
        idle: Duration::from_secs(4),
        leaves_idle: Vec::new(),
        clients: all("client"),
    }
}
