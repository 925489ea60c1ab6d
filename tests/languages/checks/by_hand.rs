//! The steps in the README of a client, in a copy of its folder.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hqueue_tests::matrix::Case;
use hqueue_tests::{Broker, PATIENCE, free_port, wait};

use super::QUICK;
use super::examples::Printing;
use crate::harness::{Language, example};

/// Some fetch and build everything anew.
const LONG: Duration = Duration::from_secs(400);

/// Whoever copies the folder and does what the README says has a consumer.
pub(crate) fn by_hand(language: &Language) {
    let cell = language.cell(language.usual(), Case::ByHand);
    // It installs what the README wants to be there.
    drop(example(language.name, &["setup"]));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copied = Command::new("cp").arg("-r").arg(root.join("clients").join(language.name).join(".")).arg(folder.path()).status();
    assert!(copied.expect("cp can be run").success());
    fs::copy(root.join("idl/hqueue.thrift"), folder.path().join("hqueue.thrift")).expect("the contract is copied");

    let readme = fs::read_to_string(folder.path().join("README.md")).expect("a README");
    let steps = readme.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```")).expect("steps in the README").0;
    let (before, last) = steps.trim_end().rsplit_once('\n').expect("several steps");
    assert!(last.ends_with(" 9500"), "{steps}");
    let port = free_port();
    let mut command = Command::new("bash");
    // What the other steps print is not what the consumer prints.
    let script = format!("{{\n{before}\n}} >&2\n{}", last.replace("9500", &port.to_string()));
    command.args(["-ec", &script]).current_dir(folder.path());
    // Not where this workspace has its own.
    command.env_remove("CARGO_TARGET_DIR");
    let mut consumer = Printing::begin(command);
    consumer.wait_until_it_listens(port, LONG);

    let broker = Broker::start();
    broker.create("q1", 1);
    broker.put("q1", 0, &["hello", "world"]);
    broker.subscribe("q1", "printer", &format!("127.0.0.1:{port}"), &QUICK);
    consumer.prints(&broker, "q1");
    wait("it has answered", PATIENCE, || broker.subscription("q1", "printer").lag() == 0);
    cell.passed();
}
