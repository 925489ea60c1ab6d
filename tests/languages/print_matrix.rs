//! Prints the matrix of a file that the tests have written. Exit code 1: something failed or was not run.

use std::process::ExitCode;

use hqueue_tests::matrix::{Outcomes, print};

fn main() -> ExitCode {
    let file = std::env::args().nth(1).expect("usage: language-matrix FILE");
    // Without a test there is no file.
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let (page, is_whole) = print(&Outcomes::parse(&text));
    println!("{page}");
    if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
