//! What the documents say is true: `cargo test -p hqueue-tests --test docs`.
//!
//! Their commands are run ([`blocks`] says how they are marked), the examples of `--help` are run, and their tables of options, metrics and error codes are those
//! of the program.

mod blocks;
mod commands;
mod document;
mod errors;
mod help;
mod links;
mod log_lines;
mod metrics;
mod options;
mod session;
