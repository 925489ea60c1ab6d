//! The commands of every document are run, and do as it says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::blocks::{Step, What, is_as_said, steps};
use crate::document::Document;
use crate::session::Session;

#[test]
fn every_command_of_the_documents_does_as_they_say() {
    let documents: Vec<Document> = Document::all().into_iter().filter(Document::is_run_here).collect();
    let run = |document: &Document| catch_unwind(AssertUnwindSafe(|| follow(document))).is_err();
    let failed: Vec<&str> = std::thread::scope(|scope| {
        // Two at a time: each has a broker, and starts many programs.
        let halves = documents.chunks(documents.len().div_ceil(2).max(1));
        let threads: Vec<_> = halves
            .map(|half| {
                scope.spawn(move || half.iter().filter(|document| run(document)).map(|d| d.name.as_str()).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("failures are caught")).collect()
    });
    assert!(failed.is_empty(), "not as they say: {failed:?}");
}

fn follow(document: &Document) {
    let steps = steps(document);
    if steps.is_empty() {
        return;
    }
    let began = Instant::now();
    let mut session = Session::start();
    if !steps.iter().any(starts_a_broker) {
        session.start_broker();
    }
    for step in &steps {
        let place = format!("{}:{}", document.name, step.line);
        match &step.what {
            What::Script { text, code } => {
                let (ended, printed) = session.run(text);
                assert_eq!(ended, Some(*code), "{place}: {text}\n{printed}\n{}", session.log());
            }
            What::Shell { text, code } => {
                let (ended, printed) = session.shell(text);
                assert_eq!(ended, Some(*code), "{place}: {text}\n{printed}");
            }
            What::Console { commands, code } => {
                for (number, (command, said)) in commands.iter().enumerate() {
                    let (ended, printed) = session.run(command);
                    let code = if number + 1 == commands.len() { *code } else { 0 };
                    assert_eq!(ended, Some(code), "{place}: {command}\n{printed}\n{}", session.log());
                    assert!(is_as_said(said, &printed), "{place}: {command} prints\n{printed}\nand not\n{}", said.join("\n"));
                }
            }
            What::GoesOn { text } => session.go_on(text),
            What::AllEnd => session.all_end(),
        }
    }
    session.all_end();
    println!("{}: {} steps in {:?}", document.name, steps.len(), began.elapsed());
}

fn starts_a_broker(step: &Step) -> bool {
    let (What::Script { text, .. } | What::GoesOn { text }) = &step.what else { return false };
    text.contains("hqueue standalone") || text.contains("hqueue broker")
}
