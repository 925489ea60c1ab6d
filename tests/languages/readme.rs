//! The consumer that stands in the README, as it stands there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;

use hqueue_tests::{Broker, PATIENCE, free_port, wait};

use crate::harness::{Program, example};

/// Written into a fresh folder, with the library and what Thrift generates beside it, it prints what comes as it comes: nobody waits for a
/// buffer to fill.
#[test]
fn the_consumer_of_the_readme_prints_at_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, code) = readme.split_once("```python\n").expect("Python in the README");
    let (code, _) = code.split_once("```").expect("its end");
    let port = free_port();
    assert!(code.contains("9500"), "{code}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("consumer.py"), code.replace("9500", &port.to_string())).unwrap();
    // Installs the library and Thrift's compiler.
    drop(example("python", &["setup"]));
    let idl = root.join("idl/hqueue.thrift");
    let generated = Command::new("thrift").args(["--gen", "py", "-out"]).arg(folder.path()).arg(idl).status().unwrap();
    assert!(generated.success());
    let mut command = Command::new(built(root).join("languages/python/venv/bin/python"));
    command.arg(folder.path().join("consumer.py"));
    let (_program, stdout) = Program::start(command);
    let (line, lines) = mpsc::channel();
    std::thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
    wait("it listens", PATIENCE, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    let broker = Broker::start();
    broker.create("q1", 1);
    let address = format!("127.0.0.1:{port}");
    broker.run(&["add_subscriber", "q1", "printer", "--address", &address, "--from", "earliest"]).text();
    broker.run(&["put", "q1", "--topic", "greeting", "hello world"]).text();
    assert_eq!(lines.recv_timeout(PATIENCE).unwrap(), "0 b'greeting' b'hello world'");
}

/// As `clients/lib.sh` finds it.
fn built(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
