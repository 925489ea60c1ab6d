//! A person at a terminal.

use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::config::{Behavior, BellStyle};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use tokio::runtime::Handle;

use super::complete::{Names, candidates};
use super::history;
use super::runner::{Ended, Runner};
use super::terminal::Terminal;
use crate::failure::Failure;
use crate::output::say;

const PROMPT: &str = "hqueue> ";
/// Lines that are kept.
const KEPT: usize = 1000;

pub(super) async fn run(mut runner: Runner) -> Result<(), Failure> {
    let terminal = Terminal::remember();
    let mut typing = Typing::new(&runner)?;
    say("HQueue's shell. help lists the commands, TAB completes, ^D leaves.");
    loop {
        let reading = typing.read();
        let read = tokio::select! {
            read = reading => read?,
            // In raw mode ^C is no signal, so somebody means the process.
            name = runner.signal() => {
                terminal.restore();
                say(format_args!("\nhqueue: {name}"));
                return Ok(());
            }
        };
        let (back, line) = read;
        typing = back;
        let line = match line {
            Line::Typed(line) => line,
            Line::Left => continue,
            Line::End => return Ok(()),
        };
        match runner.run(&line).await {
            Ended::Done => {}
            Ended::Exit | Ended::Signal("SIGTERM") => return Ok(()),
            Ended::Signal(_) => say(""),
            Ended::Failed(Failure::OutputClosed) => return Ok(()),
            Ended::Failed(Failure::Failed(reason) | Failure::Usage(reason)) => say(format_args!("hqueue: {reason}")),
        }
    }
}

enum Line {
    Typed(String),
    /// By ^C.
    Left,
    End,
}

/// The editor of lines and its history.
struct Typing {
    editor: Editor<Completion, FileHistory>,
    history: Option<PathBuf>,
}

impl Typing {
    fn new(runner: &Runner) -> Result<Self, Failure> {
        let config = Config::builder().completion_type(CompletionType::List).bell_style(BellStyle::None);
        // The prompt goes to the terminal, also when standard output does not.
        let config = config.behavior(Behavior::PreferTerm).max_history_size(KEPT).map_err(Failure::failed)?;
        let mut editor = Editor::with_config(config.build()).map_err(Failure::failed)?;
        let names = Names::new(runner.session().clone(), Handle::current());
        editor.set_helper(Some(Completion { clap: runner.parser().clap().clone(), names }));
        let mut typing = Self { editor, history: None };
        match history::file() {
            Some(Ok(file)) => {
                // The first time there is none.
                let loaded = if file.exists() { typing.editor.load_history(&file) } else { Ok(()) };
                match loaded {
                    Ok(()) => typing.history = Some(file),
                    Err(error) => say(format_args!("hqueue: no history, {}: {error}", file.display())),
                }
            }
            Some(Err(error)) => say(format_args!("hqueue: no history: {error}")),
            None => {}
        }
        Ok(typing)
    }

    /// Reads a line in a thread of its own.
    async fn read(mut self) -> Result<(Self, Line), Failure> {
        let reading = tokio::task::spawn_blocking(move || {
            let line = match self.editor.readline(PROMPT) {
                Ok(line) => {
                    self.keep(&line);
                    Line::Typed(line)
                }
                Err(ReadlineError::Interrupted) => Line::Left,
                Err(ReadlineError::Eof) => Line::End,
                Err(error) => return Err(Failure::failed(error)),
            };
            Ok((self, line))
        });
        reading.await.map_err(Failure::failed)?
    }

    fn keep(&mut self, line: &str) {
        if !history::is_kept(line) {
            return;
        }
        let added = self.editor.add_history_entry(line);
        let Some(file) = &self.history else { return };
        // At once: the shell may be killed, and others may run.
        if let Err(error) = added.and_then(|_| self.editor.append_history(file)) {
            say(format_args!("hqueue: no more history, {}: {error}", file.display()));
            self.history = None;
        }
    }
}

/// What the editor asks when TAB is pressed.
struct Completion {
    clap: clap::Command,
    names: Names,
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = candidates(&self.clap, line.get(..at).unwrap_or(line), &self.names);
        Ok((start, found.into_iter().map(|(display, replacement)| Pair { display, replacement }).collect()))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}
