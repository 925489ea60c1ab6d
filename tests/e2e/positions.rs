//! Positions: where a subscriber begins and what a scan covers, in every form.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hqueue_tests::{Broker, Consumer, Id, PATIENCE, wait};

/// Three groups of messages, each a little later than the one before.
fn three_groups(broker: &Broker) -> Vec<Vec<Id>> {
    broker.create("q", 1);
    let put = |values: &[&str], then: u64| {
        let ids = broker.put("q", 0, values);
        // Positions are times: the groups have to differ in theirs.
        std::thread::sleep(Duration::from_millis(then));
        ids
    };
    vec![put(&["a1", "a2"], 100), put(&["b1", "b2"], 1500), put(&["c1", "c2"], 0)]
}

fn scan(broker: &Broker, flags: &[&str]) -> Vec<String> {
    let words: Vec<&str> = ["scan", "q", "--format", "json"].iter().chain(flags).copied().collect();
    broker.run(&words).json_lines().iter().map(|l| l["value"].as_str().unwrap().to_owned()).collect()
}

/// Milliseconds as RFC 3339, in the zone that is so many minutes east of UTC.
fn rfc3339(millis: i64, minutes: i64) -> String {
    let local = millis + minutes * 60_000;
    let (days, rest) = (local.div_euclid(86_400_000), local.rem_euclid(86_400_000));
    // Howard Hinnant's days_to_civil.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second, milli) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
    let zone = match minutes {
        0 => "Z".to_owned(),
        m => format!("{}{:02}:{:02}", if m < 0 { '-' } else { '+' }, m.abs() / 60, m.abs() % 60),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}{zone}")
}

#[test]
fn a_scan_from_to() {
    let broker = Broker::start();
    let groups = three_groups(&broker);
    let at = groups[1][0];
    let id = |id: Id| id.to_string();
    let b_and_c = ["b1", "b2", "c1", "c2"];
    for start in [
        id(at),
        at.timestamp.to_string(),
        rfc3339(at.timestamp, 0),
        rfc3339(at.timestamp, 330),
        rfc3339(at.timestamp, -210),
        rfc3339(groups[0][1].timestamp + 1, 60),
    ] {
        assert_eq!(scan(&broker, &["--start", &start]), b_and_c, "{start}");
    }
    assert_eq!(scan(&broker, &["--start", &id(groups[1][1])]), ["b2", "c1", "c2"], "inclusive");
    assert_eq!(scan(&broker, &["--start", &id(at), "--stop", &id(groups[2][0])]), ["b1", "b2"], "up to, and without");
    assert_eq!(scan(&broker, &["--stop", &at.timestamp.to_string()]), ["a1", "a2"]);
    assert_eq!(scan(&broker, &["--start", "earliest", "--stop", "latest"]).len(), 6);
    assert_eq!(scan(&broker, &["--start", "latest"]), Vec::<String>::new());
    assert_eq!(scan(&broker, &["--start", "-10m"]).len(), 6);
    assert_eq!(scan(&broker, &["--stop=-10m"]), Vec::<String>::new());
    assert_eq!(scan(&broker, &["--start", "0:0"]).len(), 6);
    assert_eq!(scan(&broker, &["--start", "9999999999999:0"]), Vec::<String>::new());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    // Right behind the second group: so long before the third that a slow start of the command does not matter.
    let ago = format!("-{}ms", now - (groups[1][1].timestamp + 1));
    assert_eq!(scan(&broker, &["--start", &ago]), ["c1", "c2"], "{ago}");
}

/// The zone of whoever asks makes no difference.
#[test]
fn the_local_zone_does_not_matter() {
    let broker = Broker::start();
    let groups = three_groups(&broker);
    let start = rfc3339(groups[1][0].timestamp, 0);
    for zone in ["Asia/Kolkata", "America/St_Johns", "UTC"] {
        let mut command = std::process::Command::new(hqueue_tests::hqueue());
        command.args(["scan", "q", "--start", &start, "--connect", &broker.url()]).env("TZ", zone);
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 4, "{zone}");
    }
}

#[test]
fn a_subscriber_begins_where_it_says() {
    let broker = Broker::start();
    let groups = three_groups(&broker);
    let at = groups[1][0];
    for (n, (from, expected)) in [
        ("earliest".to_owned(), &["a1", "a2", "b1", "b2", "c1", "c2"][..]),
        ("latest".to_owned(), &[]),
        (at.to_string(), &["b1", "b2", "c1", "c2"]),
        (at.timestamp.to_string(), &["b1", "b2", "c1", "c2"]),
        (rfc3339(at.timestamp, 330), &["b1", "b2", "c1", "c2"]),
        ("-10m".to_owned(), &["a1", "a2", "b1", "b2", "c1", "c2"]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("s{n}");
        let consumer = Consumer::start();
        let address = consumer.address();
        broker.run(&["add_subscriber", "q", &name, "--address", &address, "--from", &from]).text();
        let end = format!("end{n}");
        broker.put("q", 0, &[end.as_str()]);
        wait("what comes later is the last", PATIENCE, || consumer.has(&end));
        // The ends of those before are no matter here.
        let values: Vec<String> = consumer.values().into_iter().filter(|v| !v.starts_with("end")).collect();
        assert_eq!(values, expected, "{from}");
    }
}

#[test]
fn what_is_no_position_is_refused_by_its_words() {
    let broker = Broker::start();
    broker.create("q", 1);
    for bad in [
        "yesterday-ish",
        "",
        "10m",
        "-10x",
        "-m",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-03-29T02:30:00",
        "2026-03-29",
        "1700000000000:99999",
        "1700000000000:-1",
        "1700000000",
        "0",
        "1700000000000:",
        ":5",
        "1e12",
        "Earliest ",
        "99999999999999999999",
        "-99999999999999999h",
    ] {
        let start = format!("--start={bad}");
        let done = broker.run(&["scan", "q", &start]);
        assert_eq!(done.code, Some(2), "{bad:?}: {done}");
        assert!(done.err.contains(bad), "{bad:?}: {done}");
        assert!(!done.err.contains("panicked"), "{done}");
        let from = format!("--from={bad}");
        assert_eq!(broker.run(&["add_subscriber", "q", "s", &from]).code, Some(2), "{bad:?}");
    }
    assert!(broker.status("q").subscriptions.unwrap().is_empty());
}

/// What a scan prints leads back to the same message.
#[test]
fn a_printed_id_leads_back() {
    let broker = Broker::start();
    broker.create("q", 1);
    let values: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    broker.put("q", 0, &values);
    let text = broker.run(&["scan", "q"]);
    let ids: Vec<&str> = text.text().lines().map(|l| l.split('\t').nth(1).unwrap()).collect();
    for n in [0, 1, 250, 498, 499] {
        assert_eq!(scan(&broker, &["--start", ids[n], "--limit", "1"]), [n.to_string()]);
    }
}
