//! The examples in the help of each command are run, on the command line and in the shell.

use hqueue_tests::run;

use crate::session::Session;

/// They serve until they are told to stop.
const GO_ON: [&str; 3] = ["subscribe", "standalone", "broker"];

/// They are for several brokers with messages in HBase, and a broker that is alone says so.
const FOR_SEVERAL: [&str; 2] = ["move", "balancer"];

/// The shell carries them out itself.
const OF_THE_SHELL: [&str; 2] = ["help create", "exit"];

#[test]
fn every_example_of_the_help_works() {
    let names = commands();
    assert!(names.len() >= 24, "{names:?}");
    let mut session = Session::start();
    session.start_broker();
    for name in &names {
        let (on_command_line, in_shell) = examples(name);
        prepare(&mut session, name);
        if name == "standalone" || name == "broker" {
            // They need the ports.
            session.all_end();
        }
        if GO_ON.contains(&name.as_str()) {
            session.go_on(&in_a_folder_of_its_own(&on_command_line));
            session.all_end();
            session.start_broker();
        } else if FOR_SEVERAL.contains(&name.as_str()) {
            let (code, printed) = session.run(&on_command_line);
            assert!(code == Some(1) && printed.contains("this broker is the only one"), "{on_command_line}: {printed}");
        } else {
            let (code, printed) = session.run(&on_command_line);
            assert_eq!(code, Some(0), "{on_command_line}: {printed}");
        }
        if let Some(line) = in_shell {
            prepare(&mut session, name);
            let (code, printed) = session.shell(&line);
            assert_eq!(code, Some(0), "in the shell, {line}: {printed}");
        }
    }
    for line in OF_THE_SHELL {
        let (code, printed) = session.shell(line);
        assert_eq!(code, Some(0), "in the shell, {line}: {printed}");
    }
    session.all_end();
}

/// The folder of a standalone broker, which is the default, is not that of one of several.
fn in_a_folder_of_its_own(example: &str) -> String {
    if example.contains(" broker ") { format!("{example} --data other-data") } else { example.to_owned() }
}

/// The commands of `hqueue help`: the words in front of their descriptions.
fn commands() -> Vec<String> {
    let done = run(["help"], b"");
    let lines = done.text().lines().skip_while(|line| !line.starts_with("Queues:"));
    let lines = lines.take_while(|line| !line.starts_with("Options:"));
    lines
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .map(str::to_owned)
        .filter(|name| name != "help")
        .collect()
}

/// The example, and the same in the shell if it is another.
fn examples(name: &str) -> (String, Option<String>) {
    let done = run([name, "--help"], b"");
    let (_, text) = done.text().split_once("Example:\n").unwrap_or_else(|| panic!("no example in the help of {name}"));
    let example = text.lines().next().unwrap_or_default().trim().to_owned();
    let in_shell = text.split_once("The same in the shell:\n").and_then(|(_, rest)| rest.lines().next());
    (example, in_shell.map(|line| line.trim().to_owned()))
}

/// What the example of this command takes for granted: a queue q1 with a subscriber mailer.
fn prepare(session: &mut Session, name: &str) {
    let (code, listed) = session.run("hqueue list");
    assert_eq!(code, Some(0), "{listed}");
    let mut script = String::new();
    if listed.lines().any(|line| line.split_whitespace().next() == Some("q1")) {
        script.push_str("hqueue disable q1; hqueue drop q1 --yes\n");
    }
    if name != "create" {
        script.push_str("hqueue create q1 --partitions 32 --ttl 86400\n");
        if name != "add_subscriber" {
            script.push_str("hqueue add_subscriber q1 mailer --address 127.0.0.1:9500\n");
        }
    }
    match name {
        "drop" | "enable" => script.push_str("hqueue disable q1\n"),
        "resume" => script.push_str("hqueue pause q1 mailer\n"),
        _ => {}
    }
    let (code, printed) = session.run(&script);
    assert_eq!(code, Some(0), "before the example of {name}: {printed}");
}
