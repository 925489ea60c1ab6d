//! The shell: the original's syntax and the plain one, scripts, refusals with their place, a terminal.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use hqueue_tests::{Broker, Done, PATIENCE, hqueue, run, wait, wait_for};
use serde_json::json;

fn script(broker: &Broker, text: impl AsRef<[u8]>) -> Done {
    run(["shell", "--connect", &broker.url()], text.as_ref())
}

#[test]
fn a_queue_and_its_subscriber_as_the_original_writes_them() {
    let broker = Broker::start();
    let lines = [
        "create ‘q1′, 32, 86400",
        "create 'q2', 2, 86400, {'hbase.hqueue.partitionsPerRegion' => '4', 'hbase.hstore.compaction.min' => '16'}",
        "put 'q2', 'greeting', 'hello world', {'partition' => '1'}",
        "put “q2”, “greeting”, “again”, {partition => 1}",
        "scan 'q2', {'limit' => '10'}",
        "add_subscriber 'q2', 'subscriber_1', {'topics' => 'a,b', 'from' => 'earliest'}",
        "pause 'q2', 'subscriber_1'",
        "resume 'q2', 'subscriber_1'",
        "seek 'q2', 'subscriber_1', latest, 1",
        "list_subscribers 'q2'",
        "locations 'q2'",
        "status",
        "status 'q2'",
        "delete_subscriber 'q2', 'subscriber_1'",
        "truncate_queue 'q2'",
        "disable 'q1'",
        "drop 'q1'",
        "list",
        "exit",
        "this is not read",
    ];
    let done = script(&broker, lines.join("\n"));
    let text = done.text();
    assert!(text.contains("\tgreeting\thello world\n") && text.contains("\tgreeting\tagain\n"), "{done}");
    assert!(text.contains("subscriber_1  waiting") && text.contains("a,b"), "{done}");
    assert!(done.err.contains("partitionsPerRegion is kept"), "what has no effect is said: {done}");
    let listed = broker.run(&["list", "--format", "json"]).json();
    assert_eq!(listed["queues"].as_array().unwrap().len(), 1, "no yes is asked for: {listed}");
    let described = broker.run(&["describe", "q2", "--format", "json"]).json();
    assert_eq!(described["configuration"], json!({"hbase.hqueue.partitionsPerRegion": "4", "hbase.hstore.compaction.min": "16"}));
    assert_eq!(broker.run(&["scan", "q2"]).text(), "");
}

#[test]
fn both_ways_to_write_a_line_and_both_ways_to_print() {
    let broker = Broker::start();
    let lines = "create q --partitions 1 --ttl 60\n\n# a comment\r\nput q --topic t 'a b'\r\nscan q\nlist --format text\n";
    let done = run(["shell", "--format", "json", "--connect", &broker.url()], lines.as_bytes());
    let printed: Vec<&str> = done.text().lines().collect();
    let scanned: serde_json::Value = serde_json::from_str(printed[1]).unwrap();
    assert_eq!((&scanned["value"], scanned["partition"].as_i64()), (&json!("a b"), Some(0)));
    assert!(printed[0].starts_with('{') && printed[2].starts_with("NAME"), "{done}");
    let with_e =
        run(["shell", "--connect", &broker.url(), "-e", "put 'q', 't', 'c'", "--execute", "scan q --limit 1"], b"list\n");
    assert!(with_e.text().lines().count() == 2 && !with_e.text().contains("NAME"), "standard input is not read: {with_e}");
    let from_input = run(["shell", "--connect", &broker.url(), "-e", "put q --topic t -"], b"x\ny\n");
    assert_eq!(from_input.text().lines().count(), 2, "it is free for messages: {from_input}");
    script(&broker, "put q --topic t -\n").refused(1, &["line 1", "--file"]);
    let mut command = Command::new(hqueue());
    command.args(["shell", "-e", "list"]).env("HQUEUE_CONNECT", broker.url());
    assert!(String::from_utf8_lossy(&command.output().unwrap().stdout).contains("q"));
}

#[test]
fn the_first_line_that_fails_ends_a_script_with_its_number() {
    let broker = Broker::start();
    let done = script(&broker, "\u{feff}create 'q', 1, 60\r\n\n# next\ncreate 'q', 1, 60\ncreate 'r', 1, 60\n");
    done.refused(1, &["line 4: ", "exists"]);
    assert!(broker.run(&["describe", "r"]).code == Some(1), "what stands behind is not run");
    script(&broker, "create 'r', many, 60").refused(1, &["line 1: ", "many", "\n  create 'r', many, 60\n              ^^^^"]);
    script(&broker, b"list\nput 'q', 't', '\xff'\n").err.contains("line 2: this is not UTF-8").then_some(()).unwrap();
    let done = run(["shell", "--connect", &broker.url(), "-e", "list", "-e", "drop 'q'"], b"");
    assert!(done.code == Some(1) && done.err.contains("-e 2: ") && done.err.contains("disable"), "{done}");
    assert_eq!(script(&broker, "create 'last', 1, 60").text(), "", "a last line needs no end");
    broker.run(&["describe", "last"]).text();
    let nobody = run(["shell", "--connect", "hqueue://127.0.0.1:1", "-e", "help", "-e", "list"], b"");
    assert!(nobody.code == Some(1) && nobody.err.contains("-e 2: ") && nobody.err.contains("127.0.0.1:1"), "{nobody}");
}

/// The original's pages have both orders.
#[test]
fn swapped_words_are_recognised() {
    let broker = Broker::start();
    script(&broker, "create 'q1', 1, 60\nadd_subscriber 'q1', 's1'").text();
    script(&broker, "delete_subscriber 's1', 'q1'").refused(1, &["swapped", "delete_subscriber 'q1', 's1'"]);
    broker.run(&["delete_subscriber", "s1", "q1", "--yes"]).refused(1, &["swapped", "hqueue delete_subscriber q1 s1"]);
    let other = script(&broker, "delete_subscriber 'q1', 'nobody'");
    assert!(other.code == Some(1) && !other.err.contains("swapped"), "{other}");
    script(&broker, "delete_subscriber 'q1', 's1'").text();
}

/// Case V1: one rule for names, whatever the entrance.
#[test]
fn names_that_are_none_are_refused_and_leave_nothing() {
    let broker = Broker::start();
    script(&broker, "create 'q', 1, 60").text();
    let long = "x".repeat(5000);
    for name in [
        "a/b", "..", ".", "a//b", "/x", "x/", "a b", r"a\nb", r"a\0b", "%2f", r"\x7f", "漢字", "🦀", "é", "e\u{301}", &long, "",
        "-x", r"\xff", "q.dlq",
    ] {
        for line in
            [format!("create \"{name}\", 1, 60"), format!("add_subscriber 'q', \"{name}\""), format!("describe \"{name}\"")]
        {
            // The original's rule ends queues, not subscribers.
            if name == "q.dlq" && !line.starts_with("create") {
                continue;
            }
            let done = script(&broker, &line);
            assert!(done.code == Some(1) && done.out.is_empty() && done.err.contains("line 1: "), "{line}: {done}");
            assert!(!done.err.contains("panicked") && done.err.len() < 6000, "{line}: {done}");
        }
    }
    let listed = broker.run(&["list", "--format", "json"]).json();
    assert_eq!(listed["queues"].as_array().unwrap().len(), 1, "{listed}");
    let status = broker.run(&["status", "q", "--format", "json"]).json();
    assert_eq!(status["subscriptions"], json!([]));
    // What can be made can be seen and removed.
    for name in ["zookeeper", "_", "A.b-c_9", "0"] {
        script(&broker, format!("create '{name}', 1, 60\ndescribe '{name}'\ndisable '{name}'\ndrop '{name}'")).text();
    }
}

/// Cases V3 and V7: what is stored is what was meant, or nothing.
#[test]
fn odd_values_arrive_as_they_were_meant_or_not_at_all() {
    let broker = Broker::start();
    script(&broker, "create 'q', 1, 60").text();
    let lines = [
        "put 'q', 't', ''",
        "put q --topic t '' x ''",
        "put 'q', 't', '-'",
        "put 'q', '-t', '--whole'",
        "put q --topic t -- --x",
        r#"put 'q', 't', "tab\t nl\n esc\x1b byte\xff \\ \"" "#,
        "put 'q', 't', 'it’s {a => 1}, # \u{a0}'",
    ];
    script(&broker, lines.join("\n")).text();
    let scan = broker.run(&["scan", "q"]);
    let values: Vec<&str> = scan.text().lines().map(|line| line.splitn(4, '\t').nth(3).unwrap()).collect();
    let odd = r#"tab\t nl\n esc\x1b byte\xff \\ ""#;
    assert_eq!(values, ["", "", "x", "", "-", "--whole", "--x", odd, "it’s {a => 1}, # \u{a0}"]);
    // What scan prints can be put again.
    script(&broker, format!("put 'q', 'again', \"{}\"", odd.replace('"', "\\\""))).text();
    let again = broker.run(&["scan", "q", "--topic", "again", "--format", "json"]).json_lines();
    let first = broker.run(&["scan", "q", "--topic", "t", "--format", "json"]).json_lines();
    assert_eq!(again[0]["value_base64"], first[6]["value_base64"]);
    assert!(again[0]["value_base64"].is_string());
    for (line, says) in [
        ("put q “topic” ‘value’", "--topic"),
        ("put 'q' ‘t’ “v”", "--topic"),
        ("put q –topic t v", "U+2013"),
        ("put q\u{a0}--topic t v", "U+00A0"),
        ("put q --topic t don’t", "U+2019"),
        ("put 'q', 't', 'v’", "not closed"),
        ("put 'q', 't'", "nothing to put"),
        ("put 'q', '', 'v'", "topic"),
    ] {
        script(&broker, line).refused(1, &["line 1: ", says]);
    }
    assert_eq!(broker.run(&["scan", "q"]).text().lines().count(), 10, "nothing was stored of these");
}

#[test]
fn help_has_every_command_and_explains_each() {
    let no_broker = |lines: &str| run(["shell", "--connect", "hqueue://127.0.0.1:1"], lines.as_bytes());
    let overview = no_broker("help\n");
    let commands: Vec<&str> = overview
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .take_while(|c| *c != "help")
        .collect();
    assert!(commands.len() > 15 && commands.contains(&"truncate_queue"), "{commands:?}");
    for command in commands {
        let help = no_broker(&format!("help {command}"));
        assert!(help.text().contains("Example:\n  ") && help.text().contains("Usage:"), "{help}");
        assert_eq!(no_broker(&format!("{command} --help")).text(), help.text());
    }
    no_broker("help craete").refused(1, &["nearest known one is create"]);
}

/// The shell keeps one connection, and makes it anew when the broker was away.
#[test]
fn a_broker_that_comes_back_is_found_again() {
    let mut broker = Broker::start();
    let mut child = Command::new(hqueue())
        .args(["shell", "--connect", &broker.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let screen = Screen::of(child.stdout.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"create 'q', 1, 60\nlist\n").unwrap();
    screen.shows("enabled");
    broker.kill();
    broker.restart();
    input.write_all(b"disable 'q'\nlist\n").unwrap();
    screen.shows("disabled");
    drop(input);
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn bash_completes_commands_and_flags() {
    let completions = run(["completions", "bash"], b"");
    let ask = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (at, last, before) = (words.len() - 1, words[words.len() - 1], words[words.len() - 2]);
        let call =
            format!("COMP_WORDS=({line}); COMP_CWORD={at}; _hqueue hqueue '{last}' '{before}'; echo \"${{COMPREPLY[*]}}\"");
        let program = format!("{}\n{call}", completions.text());
        let output = Command::new("bash").arg("-c").arg(program).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(ask("hqueue trunc"), "truncate_queue");
    assert_eq!(ask("hqueue add_subscriber --on"), "--on-poison");
    assert_eq!(ask("hqueue add_subscriber --on-poison dead"), "dead-letter");
    for (shell, sign) in [("zsh", "#compdef hqueue"), ("fish", "complete -c hqueue")] {
        let script = run(["completions", shell], b"");
        assert!(script.text().contains(sign) && script.text().contains("truncate_queue"), "{shell}");
    }
    run(["completions", "powershell"], b"").refused(2, &["powershell", "bash"]);
}

/// What a program has printed so far.
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn of(mut output: impl Read + Send + 'static) -> Self {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let copy = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut some) {
                copy.lock().unwrap().extend_from_slice(&some[..n]);
            }
        });
        Self(shown)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    /// Waits until this is there, and forgets what was before.
    #[track_caller]
    fn shows(&self, text: &str) {
        let seen = || {
            let mut shown = self.0.lock().unwrap();
            let at = shown.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = at {
                shown.drain(..at + text.len());
            }
            at.is_some()
        };
        let deadline = std::time::Instant::now() + PATIENCE;
        while !seen() {
            assert!(std::time::Instant::now() < deadline, "{text:?} does not come: {:?}", self.text());
            // The step of a look with a deadline.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// A shell at a terminal, which the `script` of util-linux makes.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Screen,
}

impl Terminal {
    fn start(broker: &Broker, state: &Path) -> Self {
        // In the shell's place: ^C goes to all in the foreground, and some shells end by it after their child.
        let line = format!("exec '{}' shell --connect {}", hqueue().display(), broker.url());
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.env("TERM", "xterm").env("XDG_STATE_HOME", state).env("SHELL", "/bin/sh").env_remove("HQUEUE_CONNECT");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script, of Debian's bsdutils, is there");
        let (keys, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keys, screen: Screen::of(output) }
    }

    /// Waits for the prompt, then types.
    #[track_caller]
    fn types(&mut self, keys: &str) {
        self.screen.shows("hqueue> ");
        self.press(keys);
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Its exit code.
    #[track_caller]
    fn ends(mut self) -> Option<i32> {
        let ended = wait_for("the shell ends", PATIENCE, || self.child.try_wait().unwrap());
        ended.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const UP: &str = "\u{1b}[A";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

#[test]
fn a_person_at_a_terminal_has_completion_and_history() {
    let broker = Broker::start();
    broker.create("only_one", 3);
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&broker, state.path());
    terminal.types("descr\t 'on\t\r");
    terminal.screen.shows("describe 'only_one'");
    terminal.screen.shows("partitions   3");
    terminal.types("put 'only_one', 'half a line");
    terminal.press(CTRL_C);
    terminal.types("list --zookeeper-auth me:secret\r");
    terminal.screen.shows("enabled");
    terminal.types("craete 'q'\r");
    terminal.screen.shows("nearest known one is create");
    terminal.types("locations 'only_one'\r");
    terminal.screen.shows("2 127.0.0.1");
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends(), Some(0), "a mistake on the way is no failure");

    let history = std::fs::read_to_string(state.path().join("hqueue/history")).unwrap();
    assert!(history.contains("describe 'only_one'") && !history.contains("secret"), "{history}");
    let mut terminal = Terminal::start(&broker, state.path());
    terminal.types(UP);
    terminal.screen.shows("locations 'only_one'");
    terminal.press("\r");
    terminal.screen.shows("2 127.0.0.1");
    terminal.types("exit\r");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(broker.scan("only_one", 0).len(), 0);
}

#[test]
fn ctrl_c_leaves_a_command_and_not_the_shell() {
    let broker = Broker::start();
    broker.create("q", 1);
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&broker, state.path());
    for value in ["first", "second"] {
        terminal.types("subscribe q --name s --from earliest\r");
        wait("it is subscribed", PATIENCE, || {
            broker.run(&["status", "q", "--format", "json"]).json()["subscriptions"][0]["state"] == "active"
        });
        broker.run(&["put", "q", "--topic", "t", value]).text();
        terminal.screen.shows(value);
        terminal.press(CTRL_C);
    }
    terminal.types("list_subscribers q\r");
    terminal.screen.shows("waiting");
    terminal.types("quit\r");
    assert_eq!(terminal.ends(), Some(0));
}
