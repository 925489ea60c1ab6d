//! What is printed on standard output.

mod escape;
mod explanation;
mod json;
mod message;
mod ranges;
mod status;
mod table;
mod trouble;

pub(crate) use self::escape::escaped;
pub(crate) use self::explanation::print_explanation;
pub(crate) use self::message::{write_dead_letter, write_message, write_placed};
pub(crate) use self::ranges::partitions;
pub(crate) use self::status::{
    OldestLetter, Subscribers, print_cluster_json, print_cluster_text, print_description, print_queue_status, print_queues,
    print_subscribers,
};
pub(crate) use self::trouble::whose;

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// One JSON object in one line.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// A line for people on standard error. If it cannot be written there is nobody to tell.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
