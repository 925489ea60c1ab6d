//! Consumers: everything comes, in order, whatever the library does.

use std::time::{Duration, Instant};

use hqueue_tests::matrix::Case;
use hqueue_tests::order::check_order;
use hqueue_tests::{Broker, PATIENCE, wait};

use super::messages::{check_complete, check_no_failure, check_partition, large, odd, put};
use super::{PATIENT, QUICK};
use crate::harness::{BINARY, BUFFERED, COMPACT, FRAMED, Language, OnThrow, Scripted, Server};
use crate::table;

/// Detection asks up to three wrong dialects for a second each; ten runtimes start at once.
const LONG: Duration = Duration::from_secs(120);

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// Every server of the library in every dialect takes messages of any bytes and of 3 MiB, found out by the broker itself.
pub(crate) fn every_dialect(language: &Language) {
    language.tell_absent();
    let begin = |case| move |server: &Server| language.cell(*server, case);
    let complete: Vec<_> = language.servers.iter().map(begin(Case::Complete)).collect();
    let three_mib: Vec<_> = language.servers.iter().map(begin(Case::Large)).collect();
    let broker = Broker::start();
    broker.create("q", 3);
    put(&broker, "q", 0, odd());
    broker.put("q", 1, &numbers(0..200));
    put(&broker, "q", 2, vec![large()]);
    let count = (0..3).map(|partition| broker.scan("q", partition).len()).sum();
    let mut consumers: Vec<Scripted> = std::thread::scope(|scope| {
        let start = |server: &Server| {
            let server = *server;
            scope.spawn(move || Scripted::start(language, server, ""))
        };
        let starting: Vec<_> = language.servers.iter().map(start).collect();
        starting.into_iter().map(|thread| thread.join().expect("the consumer starts")).collect()
    });
    for (number, consumer) in consumers.iter().enumerate() {
        broker.subscribe("q", &format!("s{number}"), &consumer.address(), &PATIENT);
    }
    wait(&format!("every consumer of {} has everything", language.name), LONG, || {
        consumers.iter_mut().for_each(Scripted::supervise);
        consumers.iter().all(|consumer| consumer.count() >= count)
    });
    let cells = complete.into_iter().zip(three_mib);
    for ((number, consumer), (complete, three_mib)) in consumers.iter().enumerate().zip(cells) {
        let name = format!("s{number}");
        let who = format!("{} {:?}", language.name, consumer.server);
        broker.wait_for_no_lag("q", &name);
        if consumer.lives() == 1 && !resets_large_calls(language, consumer.server) {
            check_no_failure(&broker.subscription("q", &name), &who);
        }
        let accepted = consumer.accepted();
        check_complete(&broker, "q", 2, &accepted, &who);
        complete.passed();
        check_partition(&broker, "q", 2, &accepted, &who);
        three_mib.passed();
    }
}

/// Python's nonblocking server reads 8 KiB after 8 KiB until one read is shorter. When what has come is a multiple of that, "nothing more at this
/// moment" is an error to it: it resets the connection in the middle of a large call, which comes again.
fn resets_large_calls(language: &Language, server: Server) -> bool {
    language.name == "python" && server.kind == "nonblocking"
}

/// Each result that a handler can have, and an exception.
pub(crate) fn answers(language: &Language) {
    language.dialects().for_each(|server| reason_of_exception(language, server, language.on_throw));
    for (kind, on_throw) in &language.others_throw {
        let server = Server { kind, ..language.usual() };
        reason_of_exception(language, server, *on_throw);
    }
    language.dialects().for_each(|server| each_result(language, server));
}

fn each_result(language: &Language, server: Server) {
    let cell = language.cell(server, Case::Results);
    let broker = Broker::start();
    broker.create("q", 1);
    let values = numbers(0..40);
    broker.put("q", 0, &values);
    let mut consumer = Scripted::start(language, server, "10,3,-1,-2,99,2147483647,-2147483648,throw,-3");
    broker.subscribe("q", "s", &consumer.address(), &[&QUICK[..], &[("batch-messages", "10")]].concat());
    wait("the exception is answered", PATIENCE, || {
        consumer.supervise();
        consumer.calls().len() > 8
    });
    consumer.wait_for(39, PATIENCE);
    broker.wait_for_no_lag("q", "s");
    let calls = consumer.calls();
    let begins: Vec<&str> = calls.iter().map(|call| call.messages[0].text()).collect();
    let wanted = [&["0", "10"][..], &["13"; 7]].concat();
    assert_eq!(begins[..9], wanted, "what was consumed does not come again, the rest does");
    // What is refused for good is a dead letter, where dead letters are kept.
    let dead = broker.subscription("q", "s").0.dead_lettered == Some(1);
    assert_eq!(begins[9], if dead { "14" } else { "13" });
    let accepted: Vec<String> = consumer.accepted().iter().map(|m| m.text().to_owned()).collect();
    let wanted: Vec<String> = values.into_iter().filter(|value| !dead || value != "13").collect();
    assert_eq!(accepted, wanted);
    cell.passed();
}

/// The text of an exception reaches the status, as far as the library sends it.
fn reason_of_exception(language: &Language, server: Server, wanted: OnThrow) {
    let cell = language.cell(server, Case::Throws);
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    let mut consumer = Scripted::start(language, server, "throw");
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    let words: &[&str] = match wanted {
        OnThrow::Answers(text) => &[text],
        OnThrow::Closes => &["closed the connection"],
        OnThrow::SaysNothing => &["no answer"],
        OnThrow::Dies => &["closed the connection", "refused"],
    };
    wait(&format!("the last error says one of {words:?}"), PATIENCE, || {
        consumer.supervise();
        let status = broker.subscription("q", "s");
        words.iter().any(|word| status.last_error().contains(word))
    });
    cell.passed();
}

/// `kill -9` while idle, an end in the middle of a call, and back each time.
pub(crate) fn killed_and_back(language: &Language) {
    for server in language.dialects() {
        let cell = language.cell(server, Case::Killed);
        killed_while_idle(language, server);
        killed_in_a_call(language, server);
        cell.passed();
    }
}

fn killed_while_idle(language: &Language, server: Server) {
    let broker = Broker::start();
    broker.create("q", 2);
    let mut consumer = Scripted::start(language, server, "");
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &numbers(0..50));
    consumer.wait_for(50, PATIENCE);
    // Printed is not answered yet.
    broker.wait_for_no_lag("q", "s");
    consumer.stop();
    broker.put("q", 1, &numbers(0..50));
    wait("the broker notices", PATIENCE, || broker.subscription("q", "s").last_error().contains("refused"));
    consumer.restart();
    consumer.wait_for(100, PATIENCE);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(broker.subscription("q", "s").attempts(), 0, "that nobody is there is no attempt");
    check_complete(&broker, "q", 2, &consumer.accepted(), language.name);
}

fn killed_in_a_call(language: &Language, server: Server) {
    let broker = Broker::start();
    broker.create("p", 1);
    broker.put("p", 0, &numbers(0..50));
    let mut consumer = Scripted::start(language, server, "1,die,2,die,3");
    broker.subscribe("p", "s", &consumer.address(), &QUICK);
    for _ in 0..2 {
        wait("it ends in the call", PATIENCE, || consumer.ended());
        consumer.restart();
    }
    consumer.wait_for(50, PATIENCE);
    broker.wait_for_no_lag("p", "s");
    check_complete(&broker, "p", 1, &consumer.accepted(), language.name);
}

/// A connection that was idle longer than the library allows: the next message comes at once, and nothing has failed.
pub(crate) fn idle(language: &Language) {
    std::thread::scope(|scope| {
        for server in language.dialects() {
            scope.spawn(move || idle_with(language, server, 0));
        }
        for kind in &language.leaves_idle {
            // The first time nobody can know: one call runs into its timeout.
            scope.spawn(move || idle_with(language, Server { kind, ..language.usual() }, 1));
        }
    });
}

fn idle_with(language: &Language, server: Server, timeouts: i64) {
    let cell = language.cell(server, Case::Idle);
    let broker = Broker::start();
    broker.create("q", 1);
    let mut consumer = Scripted::start(language, server, "");
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "20ms"), ("retry-max", "100ms"), ("call-timeout", "4s")]);
    let rounds = if timeouts == 0 { 2 } else { 3 };
    let mut at_first = None;
    for round in 1..=rounds {
        broker.put("q", 0, &[round.to_string()]);
        let began = Instant::now();
        consumer.wait_for(round, PATIENCE);
        broker.wait_for_no_lag("q", "s");
        if round == rounds {
            assert!(began.elapsed() < Duration::from_secs(3), "the message came after {:?}", began.elapsed());
            break;
        }
        at_first = at_first.or(broker.subscription("q", "s").0.failed);
        // The time is what this is about: the library's own limit has to pass.
        std::thread::sleep(language.idle);
    }
    let status = broker.subscription("q", "s");
    // Not counting the questions in which dialect it speaks, for which a runtime that starts may be too slow.
    assert_eq!(status.0.failed, at_first.map(|failed| failed + timeouts), "{}", status.last_error());
    assert_eq!(status.attempts(), 0);
    check_complete(&broker, "q", 1, &consumer.accepted(), language.name);
    cell.passed();
}

/// 10,000 messages of several partitions.
pub(crate) fn ten_thousand(language: &Language) {
    language.dialects().for_each(|server| ten_thousand_to(language, server));
}

fn ten_thousand_to(language: &Language, server: Server) {
    let cell = language.cell(server, Case::Many);
    let broker = Broker::start();
    broker.create("q", 4);
    let mut consumer = Scripted::start(language, server, "");
    broker.subscribe("q", "s", &consumer.address(), &PATIENT);
    for round in 0..5 {
        for partition in 0..4 {
            broker.put("q", partition, &numbers(round * 500..(round + 1) * 500));
        }
    }
    consumer.wait_for(10_000, LONG);
    broker.wait_for_no_lag("q", "s");
    let accepted = consumer.accepted();
    assert_eq!(check_order(&accepted), 0, "nothing came twice");
    check_complete(&broker, "q", 4, &accepted, language.name);
    cell.passed();
}

/// An endpoint of another language and dialect takes the place of one under the same address, and the other way round.
pub(crate) fn replaced(language: &Language) {
    language.dialects().for_each(|server| replaced_by(language, server));
}

fn replaced_by(language: &Language, server: Server) {
    let cell = language.cell(server, Case::Replaced);
    let other = if ["python", "thriftpy2"].contains(&language.name) { table::node() } else { table::python() };
    let unlike = Server {
        transport: if server.transport == BUFFERED { FRAMED } else { BUFFERED },
        protocol: if server.protocol == BINARY { COMPACT } else { BINARY },
        ..other.usual()
    };
    let broker = Broker::start();
    broker.create("q", 1);
    let mut first = Scripted::start(&other, unlike, "");
    broker.subscribe("q", "s", &first.address(), &QUICK);
    broker.put("q", 0, &numbers(0..20));
    first.wait_for(20, LONG);
    broker.wait_for_no_lag("q", "s");
    first.stop();
    let mut second = Scripted::start_on(first.port(), language, server, "");
    broker.put("q", 0, &numbers(20..40));
    second.wait_for(20, LONG);
    broker.wait_for_no_lag("q", "s");
    second.stop();
    first.restart();
    broker.put("q", 0, &numbers(40..60));
    first.wait_for(40, LONG);
    let mut accepted = first.accepted();
    accepted.splice(20..20, second.accepted());
    check_complete(&broker, "q", 1, &accepted, language.name);
    // What a broken connection may have cost is settled with the answer.
    broker.wait_for_no_lag("q", "s");
    assert_eq!(broker.subscription("q", "s").attempts(), 0);
    cell.passed();
}
