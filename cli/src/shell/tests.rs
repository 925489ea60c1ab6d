//! Lines, from the text to the command. The random tests print their input when they fail.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::complete::{Source, candidates};
use super::error::LineError;
use super::parser::{Input, Parser};
use crate::connection::{Connection, Format};
use crate::table::{ENTRIES, Entry, Kind, Word};

/// Made once: clap takes its time.
fn parser() -> &'static Parser {
    static PARSER: LazyLock<Parser> = LazyLock::new(|| {
        Parser::new(&Connection { connect: "hqueue://127.0.0.1:1".to_owned(), zookeeper_auth: None, format: Format::Text })
    });
    &PARSER
}

/// The command of a line, in all its fields.
#[track_caller]
fn command(parser: &Parser, line: &str) -> String {
    match parser.parse(line) {
        Ok(Input::Run(command)) => format!("{command:?}"),
        other => panic!("{line}: {other:?}"),
    }
}

#[track_caller]
fn refused(line: &str) -> LineError {
    match parser().parse(line) {
        Err(error) => error,
        Ok(input) => panic!("{line}: {input:?}"),
    }
}

#[test]
fn both_forms_of_every_example_are_the_same_command() {
    let parser = parser();
    for entry in ENTRIES.iter().filter(|entry| entry.in_shell() && entry.on_command_line()) {
        let plain = command(parser, entry.example);
        if entry.original.is_some() {
            assert_eq!(command(parser, entry.original_example), plain, "{}", entry.name);
        }
    }
}

#[test]
fn quotes_may_be_straight_curly_or_primes() {
    let parser = parser();
    let straight = command(parser, "create 'q1', 32, 86400");
    for line in [
        "create ‘q1′, 32, 86400",
        "create ‘q1’,32,86400",
        "create \"q1\" , 32 , 86400",
        "create “q1”, ‘32′, ″86400″",
        "  create\tq1, 32, 86400  ",
        "create q1 --partitions 32 --ttl=86400",
        "create ‘q1′ --partitions ″32″ --ttl='86400'",
    ] {
        assert_eq!(command(parser, line), straight, "{line}");
    }
}

#[test]
fn odd_values_are_kept_as_they_are() {
    let parser = parser();
    for (line, value) in [
        ("put 'q', 't', ''", vec![]),
        ("put 'q', 't', 'it\\'s “so” \\n'", "it's “so” \\n".into()),
        (r#"put 'q', 't', "a\tb\n\\\xff\u{200b}\"""#, b"a\tb\n\\\xff\xe2\x80\x8b\"".to_vec()),
        ("put 'q', 't', ' {a => 1}, # '", " {a => 1}, # ".into()),
        ("put 'q', 't', 5", "5".into()),
        ("put q --topic t '{\"a\": 1}'", "{\"a\": 1}".into()),
        ("put q --topic t a,b,c", "a,b,c".into()),
        ("put 'q', 't', 'x\t\u{a0}y'", "x\t\u{a0}y".into()),
    ] {
        let shown = format!("{:?}", [std::os::unix::ffi::OsStringExt::from_vec(value)] as [std::ffi::OsString; 1]);
        let command = command(parser, line);
        assert!(command.contains(&format!("values: {shown}")), "{line}: {shown} is not in {command}");
    }
    let dash = command(parser, "put 'q', '-t', '-'");
    assert!(dash.contains("topic: \"-t\"") && dash.contains("literal: [\"-\"]"), "no standard input: {dash}");
}

#[test]
fn dictionaries_are_flags() {
    let parser = parser();
    for (original, plain) in [
        ("scan 'q', {}", "scan q"),
        ("scan 'q', {'limit' => '10',}", "scan q --limit 10"),
        ("scan 'q',{LIMIT=>10,start=>-10m}", "scan q --limit 10 --start -10m"),
        ("add_subscriber 'q','s',{'topic'=>'a,b','on_poison'=>'block'}", "add_subscriber q s --topic a,b --on-poison block"),
        ("add_subscriber 'q','s',{'topics'=>'','partitions'=>'1,2'}", "add_subscriber q s --partition 1 --partition 2"),
        ("put 'q','t',{'file'=>'f','whole'=>'true'}", "put q --topic t --file f --whole"),
        ("put 'q','t','v',{'whole'=>'false'}", "put q --topic t v"),
        ("create 'q',1,1,{'hbase.a'=>'b=c'}", "create q --partitions 1 --ttl 1 --set hbase.a=b=c"),
        (
            "create 'q',1,1,{'max_bytes'=>'5','when_full'=>'drop_oldest','keep_unread'=>'true'}",
            "create q --partitions 1 --ttl 1 --max-bytes 5 --when-full drop_oldest --keep-unread",
        ),
    ] {
        assert_eq!(command(parser, original), command(parser, plain), "{original}");
    }
}

#[test]
fn commands_that_destroy_do_not_ask_and_lines_follow_the_shell() {
    let parser =
        Parser::new(&Connection { connect: "hqueue://127.0.0.1:7".to_owned(), zookeeper_auth: None, format: Format::Json });
    for line in ["drop 'q'", "truncate_queue q", "delete_subscriber 'q', 's'", "dlq drop q s"] {
        let command = command(&parser, line);
        assert!(command.contains("yes: true") && command.contains("format: Json") && command.contains(":7\""), "{command}");
    }
    assert!(command(&parser, "list --format text --connect hqueue://h:8").contains("hqueue://h:8"));
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (line, says, at) in [
        ("craete 'q1', 1, 60", "nearest known one is create", "craete"),
        ("create 'q1', many, 60", "many", "many"),
        ("create q1 --partitions many --ttl 60", "many", "many"),
        ("create q1 --partitions=many --ttl 60", "many", "--partitions=many"),
        ("create 'q1', 1", "TTL is missing", ""),
        ("create q1 --partitions 1", "--ttl", ""),
        ("create 'q1', 1, 60, 7", "one too many", "7"),
        ("create 'q1' 1, 60", "behind every word", "1,"),
        ("create 'q1', 1 60", "comma is missing", "6"),
        ("create 'q1', 1,", "a word is missing", ""),
        ("create 'q1', , 1", "a word is missing", ","),
        ("create 'q1, 1, 60", "not closed", "'"),
        ("create 'q1', 1, 60, {'a' => 'b'", "not closed", "{"),
        ("create 'q1', 1, 60, {'a' 'b'}", "=>", "'"),
        ("create 'q1', 1, 60, {'a' => }", "a value is missing", "}"),
        ("create 'q1', 1, 60, {'a' => '1', 'a' => '2'}", "twice", "'a'"),
        ("create 'q1', 1, 60, {'a=b' => '1'}", "no =", "'a=b'"),
        ("create 'q1', 1, 60, {}, 5", "at the end", ","),
        ("scan 'q', {'limt' => '1'}", "nearest known one is limit", "'limt'"),
        ("scan 'q', {'limit' => 'x'}", "'x'", "'limit' => 'x'"),
        ("put 'q', 't', {'whole' => 'maybe'}", "true or false", "'maybe'"),
        ("describe 'q', {}", "no dictionary", "{}"),
        ("dlq 'list', 'q', 's'", "without commas", "'list'"),
        ("standalone", "hqueue standalone", "standalone"),
        ("put 'q', 't', \"\\q\"", "no escape \\q", "\\q"),
        ("put 'q', 't', \"\\xg0\"", "hexadecimal", "\\x"),
        ("put 'q', 't', \"\\u{d800}\"", "\\u{200b}", "\\u"),
        // Copied from a page.
        ("create q –ttl 5", "dash – (U+2013)", "–"),
        ("put q “topic”‘value’", "a space is missing", "‘"),
        ("put q\u{a0}--topic t v", "no-break space (U+00A0)", "\u{a0}"),
        ("list\u{a0}", "no-break space (U+00A0)", "\u{a0}"),
        ("put q --topic t don’t", "middle of a word", "’"),
        ("put q --topic t {\"a\":1}", "middle of a word", "\""),
        ("put q --topic t a\\tb", "backslash", "\\"),
        ("'list'", "without quotes", "'"),
        ("list'q'", "a space is missing", "'"),
        ("exit now", "stands alone", "now"),
        ("help craete", "create", "craete"),
        ("put q --topic t --frobnicate v", "--frobnicate", "--frobnicate"),
        ("put q --topic t --topic u v", "--topic", "--topic"),
        ("dlq lst q s", "lst", "lst"),
    ] {
        let error = refused(line);
        assert!(error.message.contains(says), "{line}: {says:?} is not in {error:?}");
        let place = &line[error.at.clone()];
        assert!(place == at || at.is_empty() && error.at == (line.len()..line.len()), "{line}: {place:?} is marked, not {at:?}");
        assert!(error.message.lines().count() <= 4, "{error:?}");
    }
}

#[test]
fn empty_lines_and_comments_are_nothing() {
    for line in ["", "  \t", "# list", "  # create 'q"] {
        assert!(matches!(parser().parse(line), Ok(Input::Nothing)), "{line}");
    }
}

/// A value in quotes, and what it becomes on the way through a plain word.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn value_of(word: &Word) -> BoxedStrategy<String> {
    match word.kind {
        Kind::Queue | Kind::Subscriber => "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,10}".boxed(),
        // Only a topic, which is not empty.
        Kind::Text => any::<String>().prop_map(|text| if text.is_empty() { "'".to_owned() } else { text }).boxed(),
        // A dash in front, and no name at all, have other fields on the command line.
        Kind::Value => "([^-].{0,20})?".boxed(),
        Kind::Bare if word.name == "POSITION" => "earliest|latest|-[1-9][0-9]?[smh]|1[0-9]{12}(:[0-9]{1,4})?".boxed(),
        Kind::Bare if word.name == "ID" => "1[0-9]{12}:[0-9]{1,4}".boxed(),
        Kind::Bare => (0..=32766_u16).prop_map(|n| n.max(1).to_string()).boxed(),
    }
}

/// A command, and a value for each of its words; some may have none.
fn filled() -> impl Strategy<Value = (&'static Entry, Vec<String>)> {
    let with_form: Vec<&'static Entry> = ENTRIES.iter().filter(|entry| entry.original.is_some()).collect();
    proptest::sample::select(with_form).prop_flat_map(|entry| {
        let words = entry.original.as_ref().unwrap().words;
        let least = words.iter().filter(|word| !word.optional).count();
        let values: Vec<_> = words.iter().map(value_of).collect();
        (Just(entry), values, least..=words.len()).prop_map(|(entry, mut values, count)| {
            values.truncate(count);
            (entry, values)
        })
    })
}

/// Text with many of the signs that mean something.
fn line_like() -> impl Strategy<Value = String> {
    let names = ENTRIES.iter().map(|entry| entry.name.to_owned()).collect::<Vec<_>>();
    let signs = "['\"‘’′“”″,{}=>\\\\ \t#–\u{a0}a1x-]{0,30}";
    prop_oneof![
        any::<String>(),
        signs,
        (proptest::sample::select(names), signs).prop_map(|(name, rest)| format!("{name} {rest}"))
    ]
}

struct Known;

impl Source for Known {
    fn queues(&self) -> Vec<String> {
        vec!["q1".to_owned(), "q2".to_owned(), "other".to_owned()]
    }

    fn subscribers(&self, queue: &str) -> Vec<String> {
        if queue == "q1" { vec!["mailer".to_owned()] } else { Vec::new() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_original_form_is_its_plain_twin((entry, values) in filled()) {
        let words = entry.original.as_ref().unwrap().words;
        // Without a word, or with one, there is no comma and no difference.
        let original = format!("{} {}", entry.name, values.iter().map(|v| quoted(v)).collect::<Vec<_>>().join(", "));
        let plain = values.iter().zip(words).map(|(value, word)| match word.flag {
            Some(flag) => format!("--{flag}={}", quoted(value)),
            None => quoted(value),
        });
        let plain = format!("{} {}", entry.name, plain.collect::<Vec<_>>().join(" "));
        let parser = parser();
        match (parser.parse(&original), parser.parse(&plain)) {
            (Ok(Input::Run(a)), Ok(Input::Run(b))) => prop_assert_eq!(format!("{a:?}"), format!("{b:?}"), "{}", original),
            (a, b) => prop_assert!(false, "{}\n{:?}\n{}\n{:?}", original, a, plain, b),
        }
    }

    #[test]
    fn any_line_is_understood_or_refused_at_a_place_in_it(line in line_like()) {
        if let Err(error) = parser().parse(&line) {
            prop_assert!(line.get(error.at.clone()).is_some(), "{:?} is no place in {:?}", error, line);
            prop_assert!(!error.message.is_empty());
            let shown = error.show(&line);
            prop_assert!(shown.ends_with('^') && !shown.contains('\u{1b}') || error.message.contains('\u{1b}'), "{}", shown);
        }
    }

    #[test]
    fn any_beginning_can_be_completed(line in line_like()) {
        let parser = parser();
        let (start, _) = candidates(parser.clap(), &line, &Known);
        prop_assert!(line.is_char_boundary(start));
    }
}

#[test]
fn completion_knows_what_stands_where() {
    let parser = parser();
    for (line, written) in [
        ("des", &["describe"][..]),
        ("help des", &["describe"]),
        ("describe ", &["q1", "q2", "other"]),
        ("describe q", &["q1", "q2"]),
        ("describe 'q", &["'q1'", "'q2'"]),
        ("describe ‘o", &["‘other’"]),
        ("pause 'q1', ", &["'mailer'"]),
        ("pause 'q1', 'm", &["'mailer'"]),
        ("pause q1 ", &["mailer"]),
        ("pause 'q2', ", &[]),
        ("dlq ", &["list", "redrive", "drop"]),
        ("dlq list o", &["other"]),
        ("dlq list q1 ", &["mailer"]),
        ("subscribe q1 --name m", &["mailer"]),
        ("scan q1 --li", &["--limit"]),
        ("add_subscriber q1 s --on-poison ", &["dead-letter", "block"]),
        ("add_subscriber q1 s --on-poison=b", &["--on-poison=block"]),
        ("put q1 --topic=", &[]),
        ("add_subscriber 'q1', 's', {'on_poison' => 'b", &["'block'"]),
        ("add_subscriber 'q1', 's', {'on-p", &["'on-poison'"]),
        ("add_subscriber 'q1', 's', {'on-poison' => '", &["'dead-letter'", "'block'"]),
        ("add_subscriber 'q1', 's', {'topics' => 'a', 'on-p", &["'on-poison'"]),
        ("list --format ", &["text", "json"]),
        ("drop q1 --y", &[]),
        ("nonsense ", &[]),
        ("describe 'q1' ", &[]),
        ("describe 'q1'", &[]),
    ] {
        let (_, found) = candidates(parser.clap(), line, &Known);
        let found: Vec<&str> = found.iter().map(|(_, written)| written.as_str()).collect();
        assert_eq!(found, written, "{line}");
    }
}
