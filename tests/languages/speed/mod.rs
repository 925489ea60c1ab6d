//! How fast a consumer in each language gets messages: pushed by the broker, beside what a plain loop of its own library's client brings to
//! the same server. If the share is far below 1, it is the broker that limits the consumer. `tests/languages/rates` runs it.
//!
//! Each round runs both, one after the other; the server goes on through all rounds. Messages are of 1 KiB, 100 a call, and numbered: a run
//! in which one is missing, repeated or out of place has no figure. The broker pushes what was stored before.

mod backlog;
mod counting;
mod page;

use hqueue_tests::Broker;

use self::backlog::{MESSAGES_A_PUT, fill};
use self::counting::{Counting, TIME, Window};
use self::page::{Measured, Row};
use crate::harness::{Language, Program, test_program};
use crate::table;

/// Enough for a broker that is many times faster.
const LEAST_STORED: u64 = 400_000;
/// As many as fit into memory with all that reads them: what is measured is not the disk.
const MOST_STORED: u64 = 3_000_000;
/// The broker may be faster than the library's own client; it pushes for the whole time if it is not more so than this.
const FASTER: f64 = 4.0;

/// `HQUEUE_RATES` names the languages, `HQUEUE_RATES_ROUNDS` says how many rounds (5), `HQUEUE_RATES_PAGE` where the table goes.
#[test]
#[ignore = "it measures: tests/languages/rates"]
fn rates() {
    let named = std::env::var("HQUEUE_RATES").unwrap_or_default();
    let rounds = std::env::var("HQUEUE_RATES_ROUNDS").map_or(5, |rounds| rounds.parse().expect("a number of rounds"));
    let wanted = |language: &Language| named.is_empty() || named.split(' ').any(|name| name == language.name);
    let rows: Vec<Row> = table::languages().into_iter().filter(wanted).map(|language| measure(&language, rounds)).collect();
    let page = page::print(&rows, rounds);
    println!("{page}");
    if let Some(path) = std::env::var_os("HQUEUE_RATES_PAGE") {
        std::fs::write(path, page).expect("the page can be written");
    }
}

fn measure(language: &Language, rounds: usize) -> Row {
    println!("{}: makes ready", language.name);
    let mut row = Row { language: language.name, rounds: Vec::new(), fault: None };
    let ready = test_program(language.name, &["rate", "setup"]).status().expect("the script can be run");
    assert!(ready.success(), "{} rate setup", language.name);
    let counting = Counting::start(language);
    let broker = Broker::with_flags(&["--durability", "async"]);
    broker.create("q", 1);
    // It warms the server up, too, and says how much has to be stored.
    let stored = own_client(language, &counting, Window::SHORT).map(|own| {
        let wanted = own.per_second * (TIME.warm_up + TIME.length).as_secs_f64() * FASTER;
        let stored = (wanted as u64).clamp(LEAST_STORED, MOST_STORED).next_multiple_of(MESSAGES_A_PUT);
        fill(&broker, stored);
    });
    let measured = stored.and_then(|()| {
        (0..rounds).try_for_each(|round| {
            let measured = one_round(language, &counting, &broker, round)?;
            println!("{}: {measured}", language.name);
            row.rounds.push(measured);
            Ok(())
        })
    });
    row.fault = measured.err();
    row
}

/// Every other round begins with the broker, so that what drifts is nobody's advantage.
fn one_round(language: &Language, counting: &Counting, broker: &Broker, round: usize) -> Result<Measured, String> {
    let own = || own_client(language, counting, TIME);
    let pushed = || pushed(counting, broker, round);
    if round.is_multiple_of(2) {
        let own = own()?;
        Ok(Measured { own, pushed: pushed()? })
    } else {
        let pushed = pushed()?;
        Ok(Measured { own: own()?, pushed })
    }
}

fn own_client(language: &Language, counting: &Counting, time: Window) -> Result<counting::Rate, String> {
    counting.forget();
    let (mut program, _stdout) = Program::start(test_program(language.name, &["rate", "call", &counting.port().to_string()]));
    let rate = counting.measure(time, || false);
    let ended = program.ended();
    rate.map_err(|why| format!("its own client ({ended:?}): {why} {}", program.errors()))
}

fn pushed(counting: &Counting, broker: &Broker, round: usize) -> Result<counting::Rate, String> {
    counting.forget();
    let name = format!("round-{round}");
    broker.subscribe("q", &name, &format!("127.0.0.1:{}", counting.port()), &[("batch-messages", "100")]);
    let rate = counting.measure(TIME, || broker.subscription("q", &name).lag() == 0);
    let last_error = broker.subscription("q", &name).last_error().to_owned();
    broker.run(&["delete_subscriber", "q", &name, "--yes"]).text();
    rate.map_err(|why| format!("pushed by the broker: {why} {last_error}"))
}
