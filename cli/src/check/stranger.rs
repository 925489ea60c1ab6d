//! What an endpoint is that is no subscriber.
//!
//! If it answers in none of Thrift's dialects it is asked in the ways of others, a connection each: it may speak first (SSH), answer a
//! call with an error of its own (HTTP, TLS), or greet somebody who begins as its own clients do.

use std::io;
use std::time::Duration;

use hqueue_protocol::endpoint::CallError;
use hqueue_protocol::limits::MAX_REQUEST_BYTES;
use hqueue_protocol::stored::consume_call;
use hqueue_protocol::wire::{Detection, Dialect, Foreign, Protocol, Transport, detect};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For connecting, and for the first bytes of an answer, each.
const PATIENCE: Duration = Duration::from_secs(1);
/// Enough to tell, and to show.
const FIRST_BYTES: usize = 64;

/// No subscriber.
#[derive(Debug, Serialize)]
pub(crate) struct Stranger {
    looks_like: Looks,
    pub(super) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Looks {
    /// No connection.
    Unreachable,
    /// A Thrift server without `consumeMessages`.
    OtherThrift,
    /// `consumeMessages` is there, and does not take an empty list.
    FailingSubscriber,
    Http,
    Tls,
    Ssh,
    Text,
    /// It closes connections.
    Closes,
    /// It says nothing.
    Silent,
    Unknown,
}

impl Stranger {
    fn new(looks_like: Looks, reason: impl Into<String>) -> Self {
        Self { looks_like, reason: reason.into() }
    }

    /// It has not said a word.
    pub(super) const fn is_unheard(&self) -> bool {
        matches!(self.looks_like, Looks::Silent | Looks::Closes)
    }

    /// What answered an empty call so.
    pub(super) async fn of(address: &str, answer: Result<i32, CallError>) -> Self {
        match answer {
            Ok(number) => Self::new(
                Looks::FailingSubscriber,
                format!("it serves consumeMessages, and answered a call without messages with {number}; 0 is right"),
            ),
            Err(CallError::Connect { reason, .. }) => {
                Self::new(Looks::Unreachable, format!("no connection can be made: {reason}"))
            }
            Err(CallError::Exception { text, .. }) if text.ends_with("unknown method") || text.ends_with("(unknown method)") => {
                Self::new(
                    Looks::OtherThrift,
                    format!(
                        "it is a Thrift server without consumeMessages, so of another service than HQueueSubscriberService: {text}"
                    ),
                )
            }
            Err(CallError::Exception { text, .. }) => Self::new(
                Looks::FailingSubscriber,
                format!(
                    "it is a Thrift server, and answered a call without messages with an exception: {text}. The handler has to return 0 \
                     for an empty list"
                ),
            ),
            Err(CallError::Undetected { tried, .. }) => look(address, PATIENCE, &tried).await,
            Err(error) => Self::new(Looks::Unknown, error.to_string()),
        }
    }

    /// It answered one empty call with 0, and another one otherwise.
    pub(super) fn unsteady(error: &str) -> Self {
        Self::new(Looks::FailingSubscriber, format!("it answered a call without messages with 0, and then not: {error}"))
    }

    /// By the first bytes that it sent.
    fn by_bytes(bytes: &[u8]) -> Self {
        let foreign = match detect(bytes, MAX_REQUEST_BYTES) {
            // An alert: what was sent was no greeting of TLS, or not one that it likes.
            _ if bytes.starts_with(&[0x15, 3]) => Foreign::Tls,
            Detection::Foreign(foreign) => foreign,
            Detection::Dialect(_) | Detection::NeedMore => Foreign::Unknown,
        };
        let first = String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned();
        match foreign {
            Foreign::Http => Self::new(
                Looks::Http,
                format!(
                    "it looks like HTTP (\"{first}\"); a subscriber is a Thrift server on a plain socket, without HTTP around it"
                ),
            ),
            Foreign::Tls => Self::new(
                Looks::Tls,
                "it looks like TLS; brokers call subscribers over plain connections, so it needs a port without TLS",
            ),
            Foreign::Ssh => Self::new(Looks::Ssh, format!("it looks like SSH (\"{first}\")")),
            Foreign::Text => Self::new(Looks::Text, format!("it speaks text (\"{first}\") and not Thrift")),
            Foreign::Frame(_) | Foreign::Unknown => {
                let shown: Vec<String> = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
                Self::new(Looks::Unknown, format!("it answers with bytes that are no reply in Thrift: {}", shown.join(" ")))
            }
        }
    }
}

/// Asks in the ways of others. `tried` says how it took the empty calls.
async fn look(address: &str, patience: Duration, tried: &str) -> Stranger {
    let call = consume_call(Dialect { transport: Transport::Buffered, protocol: Protocol::Binary }, 1, &[]);
    let call = call.unwrap_or_default().concat();
    let mut closed = false;
    for question in [&[][..], &call, CLIENT_HELLO, b"HEAD / HTTP/1.0\r\n\r\n"] {
        match ask(address, question, patience).await {
            Ok(Heard::Bytes(bytes)) => return Stranger::by_bytes(&bytes),
            Ok(Heard::End) if question.is_empty() => {
                return Stranger::new(Looks::Closes, "it takes connections and closes them at once, before anything is sent");
            }
            Ok(Heard::End) => closed = true,
            Ok(Heard::Nothing) => {}
            Err(error) => {
                return Stranger::new(
                    Looks::Unreachable,
                    format!("it went away when it was called ({error}); before that: {tried}"),
                );
            }
        }
    }
    if closed {
        return Stranger::new(
            Looks::Closes,
            format!("it closes connections when it is called, in every dialect of Thrift ({tried})"),
        );
    }
    Stranger::new(
        Looks::Silent,
        format!(
            "it takes connections and is silent, whatever it is asked ({tried}). A server that serves one connection at a time and has \
             one, such as that of a broker, looks the same; so does a process that was stopped"
        ),
    )
}

enum Heard {
    Bytes(Vec<u8>),
    End,
    Nothing,
}

/// The first bytes of the answer to `question`, over a connection of its own. The error is that of connecting.
async fn ask(address: &str, question: &[u8], patience: Duration) -> io::Result<Heard> {
    let connected = timeout(patience, TcpStream::connect(address)).await;
    let mut stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    if stream.write_all(question).await.is_err() {
        return Ok(Heard::End);
    }
    let mut bytes = vec![0; FIRST_BYTES];
    let mut have = 0;
    // An answer may come in pieces; what came by its end, or in time, is what there is.
    let reading = async {
        while let Some(room) = bytes.get_mut(have..).filter(|room| !room.is_empty()) {
            match stream.read(room).await {
                Ok(0) | Err(_) => return,
                Ok(more) => have += more,
            }
        }
    };
    let ended = timeout(patience, reading).await.is_ok();
    bytes.truncate(have);
    Ok(match (bytes.is_empty(), ended) {
        (false, _) => Heard::Bytes(bytes),
        (true, true) => Heard::End,
        (true, false) => Heard::Nothing,
    })
}

/// TLS 1.2's first message, with two cipher suites and no extensions. Whatever a server of TLS thinks of it, it answers in TLS.
const CLIENT_HELLO: &[u8] = &[
    0x16, 3, 1, 0, 47, // a handshake of 47 bytes
    1, 0, 0, 43, 3, 3, // ClientHello of 43 bytes, TLS 1.2
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, // random
    0,  // no session
    0, 4, 0xc0, 0x2f, 0, 0x2f, // ECDHE_RSA_WITH_AES_128_GCM_SHA256, RSA_WITH_AES_128_CBC_SHA
    1, 0, // no compression
];

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by them")]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    /// Serves connections with threads of their own until the test program ends.
    fn server(script: fn(TcpStream)) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || script(stream));
            }
        });
        address
    }

    /// What begins with these bytes, nothing else, is answered so.
    fn answers(mut stream: TcpStream, to: &[u8], answer: &[u8]) {
        let mut bytes = vec![0; 256];
        let read = stream.read(&mut bytes).unwrap_or_default();
        if bytes[..read].starts_with(to) {
            stream.write_all(answer).unwrap();
        } else {
            hang(stream);
        }
    }

    /// Until the peer has closed.
    fn hang(mut stream: TcpStream) {
        while !matches!(stream.read(&mut [0; 256]), Ok(0) | Err(_)) {}
    }

    async fn looks(script: fn(TcpStream)) -> (Looks, String) {
        let found = look(&server(script), SHORT, "buffered binary: tried").await;
        (found.looks_like, found.reason)
    }

    #[tokio::test]
    async fn http_is_told_by_an_error_or_by_an_answer_to_its_own() {
        let refuses: fn(TcpStream) = |stream| answers(stream, &[0x80, 1], b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n");
        let waits: fn(TcpStream) = |stream| answers(stream, b"HEAD / HTTP/1.0\r\n", b"HTTP/1.0 200 OK\r\n\r\n");
        for (script, says) in [(refuses, "400 Bad Request"), (waits, "200 OK")] {
            let (looks, reason) = looks(script).await;
            assert_eq!(looks, Looks::Http);
            assert!(reason.contains(says) && reason.contains("HTTP"), "{reason}");
        }
    }

    #[tokio::test]
    async fn tls_is_told_by_an_alert_or_by_a_greeting() {
        let alert: fn(TcpStream) = |stream| answers(stream, &[0x80, 1], &[0x15, 3, 1, 0, 2, 2, 70]);
        let greets: fn(TcpStream) = |stream| answers(stream, &[0x16, 3], &[0x16, 3, 3, 0, 100, 2, 0, 0, 96]);
        for script in [alert, greets] {
            let (looks, reason) = looks(script).await;
            assert_eq!(looks, Looks::Tls, "{reason}");
            assert!(reason.contains("without TLS"), "{reason}");
        }
    }

    #[tokio::test]
    async fn who_speaks_first_is_quoted() {
        let (found, reason) = looks(|mut stream| stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap()).await;
        assert!(found == Looks::Ssh && reason.contains("SSH-2.0-OpenSSH_9.2\""), "{reason}");
        let (found, reason) = looks(|mut stream| stream.write_all(b"220 mail.example ESMTP\r\n").unwrap()).await;
        assert!(found == Looks::Text && reason.contains("220 mail.example ESMTP\""), "{reason}");
        let (found, reason) = looks(|mut stream| stream.write_all(&[0xde, 0xad, 0xbe, 0xef, 0, 1]).unwrap()).await;
        assert!(found == Looks::Unknown && reason.contains("de ad be ef"), "{reason}");
    }

    #[tokio::test]
    async fn silence_is_told_apart_from_closing() {
        let (found, reason) = looks(hang).await;
        assert!(found == Looks::Silent && reason.contains("one connection at a time") && reason.contains("tried"), "{reason}");
        let (found, reason) = looks(drop).await;
        assert!(found == Looks::Closes && reason.contains("at once"), "{reason}");
        let (found, reason) = looks(|stream| answers(stream, &[], &[])).await;
        assert!(found == Looks::Closes && reason.contains("when it is called"), "{reason}");
    }

    #[tokio::test]
    async fn who_is_not_there_is_unreachable() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let refused = CallError::Connect { address: address.clone(), reason: "connection refused".to_owned() };
        let found = Stranger::of(&address, Err(refused)).await;
        assert!(found.looks_like == Looks::Unreachable && found.reason.contains("connection refused"), "{found:?}");
    }

    #[tokio::test]
    async fn answers_that_are_not_right_are_told_apart() {
        let exception = |text: &str| Err(CallError::Exception { address: "a:1".to_owned(), text: text.to_owned() });
        for (answer, looks, says) in [
            (exception("Invalid method name: 'consumeMessages' (unknown method)"), Looks::OtherThrift, "without consumeMessages"),
            (exception("unknown method"), Looks::OtherThrift, "without consumeMessages"),
            (exception("list is empty (internal error)"), Looks::FailingSubscriber, "list is empty"),
            (Ok(-1), Looks::FailingSubscriber, "with -1; 0 is right"),
        ] {
            let found = Stranger::of("a:1", answer).await;
            assert!(found.looks_like == looks && found.reason.contains(says), "{found:?}");
        }
    }

    #[test]
    fn the_lengths_in_the_greeting_are_right() {
        assert_eq!(usize::from(CLIENT_HELLO[4]), CLIENT_HELLO.len() - 5);
        assert_eq!(usize::from(CLIENT_HELLO[8]), CLIENT_HELLO.len() - 9);
    }
}
