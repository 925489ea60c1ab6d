//! Lines that nobody types: given with `-e`, or on standard input. The first that fails ends them.

use std::fmt::Display;
use std::io;

use super::error::LineError;
use super::runner::{Ended, Runner};
use crate::failure::Failure;
use crate::input::read_lines;

/// The largest value of a message, with every byte escaped, and room for the rest of the line.
const MAX_LINE: usize = 20 * 1024 * 1024;

/// Those of `-e`.
pub(super) async fn given(mut runner: Runner, lines: &[String]) -> Result<(), Failure> {
    for (n, line) in lines.iter().enumerate() {
        let ended = runner.run(line).await;
        if !goes_on(ended, format_args!("-e {}", n + 1))? {
            break;
        }
    }
    Ok(())
}

pub(super) async fn standard_input(mut runner: Runner) -> Result<(), Failure> {
    let (mut lines, reading) = read_lines(io::stdin(), MAX_LINE);
    let mut number = 0_usize;
    'read: loop {
        let some = tokio::select! {
            some = lines.recv() => some,
            name = runner.signal() => return Err(Failure::failed(format_args!("{name} before line {}", number + 1))),
        };
        let Some(some) = some else { break };
        for line in some.map_err(|error| Failure::failed(format_args!("line {}: {error}", number + 1)))? {
            number += 1;
            // A mark that some editors put in front of a file, and the other half of line ends from elsewhere.
            let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&line) } else { &line };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let ended = match std::str::from_utf8(line) {
                Ok(line) => runner.run(line).await,
                Err(error) => Ended::Failed(not_text(line, error.valid_up_to())),
            };
            if !goes_on(ended, format_args!("line {number}"))? {
                break 'read;
            }
        }
    }
    // It ends with its channel, or waits for a line that nobody wants any more.
    reading.abort();
    Ok(())
}

fn not_text(line: &[u8], valid: usize) -> Failure {
    let text = String::from_utf8_lossy(line);
    let message = r"this is not UTF-8; bytes are written \xff in double quotes";
    Failure::Failed(LineError::new(valid..valid + '\u{fffd}'.len_utf8(), message).show(&text))
}

/// Whether there is a next line. `place` names this one.
fn goes_on(ended: Ended, place: impl Display) -> Result<bool, Failure> {
    match ended {
        Ended::Done => Ok(true),
        Ended::Exit => Ok(false),
        Ended::Signal(name) => Err(Failure::failed(format_args!("{place}: {name}"))),
        Ended::Failed(Failure::OutputClosed) => Err(Failure::OutputClosed),
        Ended::Failed(Failure::Failed(reason) | Failure::Usage(reason)) => {
            Err(Failure::failed(format_args!("{place}: {reason}")))
        }
    }
}
