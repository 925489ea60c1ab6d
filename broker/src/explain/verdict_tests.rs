//! The decision, without a broker.

use std::sync::Arc;
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_storage::store::MissingReason;

use super::facts::{Facts, Held, Letter, Past};
use super::verdict::{Reason, Verdict, Wait, explanation};
use super::words;
use crate::subscription::{Call, CallResult, Event, FlightPlace, Mover, OnItsWay, Standing, What};
use crate::time::Moment;

fn id(ms: i64) -> MessageId {
    MessageId::new(ms, 0)
}

fn standing(checkpoint: i64) -> Standing {
    Standing {
        checkpoint: id(checkpoint),
        began: None,
        attempts: 0,
        attempts_to: None,
        is_without_order: false,
        flight: None,
        span_is_full: false,
        calls_are_full: false,
        is_blocked: false,
        burying: None,
        is_busy: false,
        wait: None,
        pace: None,
        calls: Vec::new(),
    }
}

/// Of message 10, stored and wanted, of a subscription that is well and stands there.
fn facts(checkpoint: i64) -> Facts {
    Facts { wanted: Some(true), endpoint: Some("a:1".into()), standing: Some(standing(checkpoint)), ..Facts::unread(id(10)) }
}

fn with(facts: Facts, change: impl FnOnce(&mut Facts, &mut Standing)) -> Facts {
    let mut facts = facts;
    let mut standing = facts.standing.take().unwrap();
    change(&mut facts, &mut standing);
    Facts { standing: Some(standing), ..facts }
}

fn call(first: i64, last: i64, consumed_to: Option<i64>, result: CallResult) -> Call {
    Call {
        first: id(first),
        last: id(last),
        consumed_to: consumed_to.map(id),
        endpoint: "a:1".into(),
        attempt: 3,
        result,
        is_redelivery: false,
    }
}

fn past(what: What) -> Past {
    Past { event: Event { at: Moment(1_700_000_000_000), what }, carried: true }
}

fn consumed(first: i64, last: i64, to: i64) -> Past {
    past(What::Call(call(first, last, Some(to), CallResult::Consumed)))
}

fn moved(by: Mover, from: i64, to: i64) -> Past {
    past(What::Moved { by, from: id(from), to: id(to) })
}

fn on_its_way(first: i64, last: i64) -> OnItsWay {
    let (began, attempts) = (Moment(1_700_000_000_000), 2);
    OnItsWay { first: id(first), last: id(last), endpoint: "a:1".into(), began, attempts, is_redelivery: false }
}

#[track_caller]
fn state(facts: &Facts) -> String {
    let verdict = explanation(facts);
    let told = words::standing(b"s", facts, &verdict);
    assert!(told.text.is_some_and(|text| text.len() > 5), "{verdict:?}");
    assert_eq!(told.reason.is_some(), matches!(verdict, Verdict::Waiting(_)));
    let state = told.state.unwrap();
    told.reason.map_or(state.clone(), |reason| format!("{state} {reason}"))
}

#[track_caller]
fn wait(facts: &Facts) -> Wait {
    match explanation(facts) {
        Verdict::Waiting(wait) => wait,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_below_the_checkpoint_ended_as_was_noted() {
    let failed = past(What::Call(call(8, 12, None, CallResult::Failed("no".into()))));
    let unwanted = |past: Past| Past { carried: false, ..past };
    let redriven = past(What::Call(Call { is_redelivery: true, ..call(10, 10, Some(10), CallResult::Consumed) }));
    let buried = past(What::Buried { id: id(10) });
    let missed = past(What::Missed { from: id(5), to: id(15) });
    for (history, wanted) in [
        (vec![], "below_checkpoint"),
        (vec![failed.clone()], "below_checkpoint"),
        (vec![failed.clone(), consumed(8, 12, 12)], "delivered"),
        (vec![consumed(8, 12, 9)], "below_checkpoint"),
        (vec![unwanted(consumed(8, 12, 12))], "filtered"),
        (vec![failed.clone(), buried.clone()], "letter_gone"),
        (vec![failed, buried.clone(), redriven], "redriven"),
        (vec![consumed(8, 12, 12), moved(Mover::Seek, 12, 0), buried], "letter_gone"),
        (vec![moved(Mover::Seek, 4, 20)], "passed_over"),
        (vec![moved(Mover::Hand, 4, 20)], "passed_over"),
        (vec![moved(Mover::Seek, 20, 4)], "below_checkpoint"),
        (vec![moved(Mover::Commit, 4, 20)], "delivered"),
        (vec![consumed(8, 12, 12), moved(Mover::Seek, 20, 4), moved(Mover::Seek, 4, 20)], "delivered"),
        (vec![missed], "below_checkpoint"),
    ] {
        assert_eq!(state(&Facts { past: history.clone(), ..facts(20) }), wanted, "{history:?}");
    }
}

#[test]
fn what_was_before_the_start_was_not_delivered() {
    let began = |began| with(facts(20), |_, s| s.began = Some(id(began)));
    assert_eq!(state(&began(10)), "before_start");
    assert_eq!(state(&began(9)), "below_checkpoint");
    assert_eq!(state(&with(began(10), |f, _| f.wanted = Some(false))), "before_start");
}

#[test]
fn what_went_unread_is_told_as_that() {
    let gone = |checkpoint, why| Facts { gone: Some(why), wanted: None, ..facts(checkpoint) };
    assert_eq!(state(&gone(5, MissingReason::Expired)), "expired");
    assert_eq!(state(&gone(5, MissingReason::Damaged)), "damaged");
    assert_eq!(state(&gone(20, MissingReason::Expired)), "below_checkpoint", "it may have been delivered before");
    let missed = |f: &mut Facts| f.past = vec![past(What::Missed { from: id(5), to: id(15) })];
    assert_eq!(state(&with(gone(20, MissingReason::Dropped), |f, _| missed(f))), "dropped");
    let around = |f: &mut Facts| f.past = vec![past(What::Missed { from: id(9), to: id(11) }), consumed(8, 12, 12)];
    assert_eq!(state(&with(gone(20, MissingReason::Damaged), |f, _| around(f))), "damaged", "the call carried others");
    let delivered = |f: &mut Facts| f.past = vec![consumed(8, 12, 12), past(What::Missed { from: id(5), to: id(15) })];
    assert_eq!(state(&with(gone(20, MissingReason::Expired), |f, _| delivered(f))), "delivered", "above the checkpoint of then");
    let committed = |f: &mut Facts| f.past = vec![moved(Mover::Commit, 5, 15)];
    assert_eq!(state(&with(gone(20, MissingReason::Expired), |f, _| committed(f))), "below_checkpoint");
}

#[test]
fn what_is_not_wanted_waits_for_nothing() {
    let unwanted = |checkpoint| {
        with(facts(checkpoint), |f, s| {
            f.wanted = Some(false);
            f.held = Some(Held::Paused);
            s.calls = vec![on_its_way(8, 12)];
        })
    };
    assert_eq!(state(&unwanted(5)), "filtered");
    assert_eq!(state(&unwanted(20)), "filtered");
    assert_eq!(state(&Facts { standing: None, ..facts(0) }), "not_read");
    assert_eq!(state(&Facts { standing: None, held: Some(Held::Broken), ..facts(0) }), "waiting broken");
}

#[test]
fn a_letter_tells_more_than_the_checkpoint() {
    let letter = Some(Letter { id: id(99), attempts: 4, error: "no".to_owned() });
    let dead = |checkpoint| Facts { letter: letter.clone(), ..facts(checkpoint) };
    assert_eq!(state(&dead(20)), "dead_lettered");
    assert_eq!(state(&Facts { standing: None, ..dead(20) }), "dead_lettered", "of one that was deleted");
    assert_eq!(state(&dead(5)), "waiting next", "it was moved back");
    let buried = Facts { past: vec![past(What::Buried { id: id(10) })], ..facts(20) };
    assert_eq!(state(&buried), "letter_gone");
    assert_eq!(state(&Facts { letters_away: Some("away".to_owned()), ..buried }), "dead_lettered", "nothing else is known");
    let pushed = with(dead(20), |_, s| s.calls = vec![OnItsWay { is_redelivery: true, ..on_its_way(10, 10) }]);
    assert_eq!(state(&pushed), "in_flight");
    let told = words::standing(b"s", &dead(20), &explanation(&dead(20)));
    assert_eq!((told.attempts, told.letter_i_d, told.last_error.as_deref()), (Some(4), Some(words::wire(id(99))), Some("no")));
}

#[test]
fn a_message_waits_for_the_nearest_obstacle() {
    let endless = |s: &mut Standing| s.wait = Some(Duration::from_secs(9));
    let behind = |f: &mut Facts| (f.first, f.ahead) = (Some(id(6)), 4);
    for (facts, wanted, waits_behind) in [
        (facts(5), "waiting next", None),
        (with(facts(5), |f, _| behind(f)), "waiting messages", Some(6)),
        (with(facts(5), |f, _| f.held = Some(Held::Paused)), "waiting paused", None),
        (with(facts(5), |f, s| (f.held, s.is_blocked) = (Some(Held::Disabled), true)), "waiting disabled", None),
        (with(facts(5), |f, _| f.held = Some(Held::Changing)), "waiting changing", None),
        (with(facts(5), |_, s| s.is_blocked = true), "waiting blocked", None),
        (with(facts(5), |f, s| (f.first, s.is_blocked) = (Some(id(6)), true)), "waiting blocked", Some(6)),
        (with(facts(5), |_, s| s.burying = Some(id(10))), "waiting dead_letter_queue", None),
        (with(facts(5), |_, s| s.burying = Some(id(7))), "waiting dead_letter_queue", Some(7)),
        (with(facts(5), |f, s| (f.endpoint, s.attempts) = (None, 3)), "waiting no_endpoint", None),
        (with(facts(5), |f, s| (f.endpoint_is_away, s.attempts) = (true, 3)), "waiting endpoint_away", None),
        (with(facts(5), |f, _| f.is_failing = true), "waiting failing", None),
        (with(facts(5), |_, s| (s.attempts, s.attempts_to) = (2, Some(id(10)))), "waiting retrying", None),
        (
            with(facts(5), |f, s| (f.first, s.attempts, s.attempts_to) = (Some(id(6)), 2, Some(id(9)))),
            "waiting retrying",
            Some(6),
        ),
        (
            with(facts(5), |_, s| {
                s.is_busy = true;
                endless(s);
            }),
            "waiting busy",
            None,
        ),
        (with(facts(5), |_, s| s.pace = Some(Duration::from_secs(1))), "waiting rate_limit", None),
        (with(facts(5), |_, s| (s.calls, s.calls_are_full) = (vec![on_its_way(6, 8)], true)), "waiting call", Some(6)),
        (with(facts(5), |f, _| f.window_is_full = true), "waiting window", None),
    ] {
        assert_eq!(state(&facts), wanted, "{facts:?}");
        assert_eq!(wait(&facts).behind, waits_behind.map(id), "{facts:?}");
    }
}

#[test]
fn without_order_a_message_waits_by_itself() {
    let at = |place| with(facts(5), move |_, s| (s.is_without_order, s.attempts, s.flight) = (true, 2, place));
    let waits = |attempts, seconds| Some(FlightPlace::Waiting { attempts, wait: Duration::from_secs(seconds) });
    assert_eq!(state(&at(None)), "waiting next", "the attempts are those of others");
    assert_eq!(state(&at(waits(2, 3))), "waiting retrying");
    assert_eq!(state(&at(waits(0, 3))), "waiting busy");
    assert_eq!(state(&at(waits(0, 0))), "waiting next");
    assert_eq!(state(&at(Some(FlightPlace::Blocked { attempts: 2 }))), "waiting blocked");
    assert_eq!(state(&at(Some(FlightPlace::Burying))), "waiting dead_letter_queue");
    let done = at(Some(FlightPlace::Done));
    assert_eq!(state(&Facts { past: vec![consumed(9, 12, 12)], ..done.clone() }), "delivered", "above the checkpoint");
    assert_eq!(state(&done), "below_checkpoint");
    assert_eq!(state(&with(at(None), |_, s| s.span_is_full = true)), "waiting span");
}

/// Whatever the facts are.
#[test]
fn nothing_is_said_that_is_not_known() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let facts = any(&mut random);
        let verdict = explanation(&facts);
        let told = words::standing(b"s", &facts, &verdict);
        let checkpoint = facts.standing.as_ref().map(|s| s.checkpoint);
        let is_done = facts.standing.as_ref().is_some_and(|s| facts.id <= s.checkpoint || s.flight == Some(FlightPlace::Done));
        let what = format!("seed {seed}: {verdict:?} of {facts:?}");
        assert!(told.text.is_some_and(|text| !text.is_empty()), "{what}");
        match verdict {
            Verdict::Delivered { call, .. } | Verdict::Redriven { call, .. } => {
                let is_in_it = (call.first..=call.last).contains(&facts.id) && call.consumed_to >= Some(facts.id);
                assert!(is_done && is_in_it && call.result == CallResult::Consumed, "{what}");
            }
            Verdict::InFlight(call) => {
                assert!((call.first..=call.last).contains(&facts.id) && facts.wanted != Some(false), "{what}");
            }
            Verdict::Waiting(wait) => {
                assert!(facts.letter.is_none() || checkpoint.is_some(), "{what}");
                assert!(checkpoint.is_none() || !is_done, "{what}");
                assert!(checkpoint.is_none() || (facts.wanted != Some(false) && facts.gone.is_none()), "{what}");
                assert!(wait.behind.is_none_or(|behind| behind < facts.id || wait.reason == Reason::Call), "{what}");
                let is_held = facts.held == Some(Held::Paused) && checkpoint.is_some();
                assert_eq!(wait.reason == Reason::Paused, is_held, "{what}");
            }
            Verdict::BelowCheckpoint
            | Verdict::Committed { .. }
            | Verdict::PassedOver { .. }
            | Verdict::LetterAway { .. }
            | Verdict::LetterGone { .. } => {
                assert!(is_done && facts.letter.is_none(), "{what}");
            }
            Verdict::BeforeStart => {
                let began = facts.standing.as_ref().and_then(|s| s.began);
                assert!(is_done && began.is_some_and(|began| facts.id <= began), "{what}");
            }
            Verdict::Gone(why) => assert_eq!(facts.gone, Some(why), "{what}"),
            Verdict::DeadLettered(letter) => assert_eq!(facts.letter, Some(letter), "{what}"),
            Verdict::Filtered { then } => assert!(then || facts.wanted == Some(false), "{what}"),
            Verdict::NotRead => assert!(facts.standing.is_none(), "{what}"),
        }
    }
}

/// Facts at random, as far as they can be together.
fn any(random: &mut fastrand::Rng) -> Facts {
    let gone = [None, None, Some(MissingReason::Expired), Some(MissingReason::Damaged)][random.usize(0..4)];
    let wanted = if gone.is_some() { None } else { Some(random.u8(0..4) > 0) };
    let without_order = random.bool();
    let checkpoint = random.i64(0..20);
    let waits = FlightPlace::Waiting { attempts: random.u32(0..3), wait: Duration::from_millis(random.u64(0..2)) };
    let places = [FlightPlace::InFlight, waits, FlightPlace::Burying, FlightPlace::Blocked { attempts: 1 }, FlightPlace::Done];
    let calls = if random.u8(0..3) == 0 { vec![on_its_way(checkpoint + 1, checkpoint + random.i64(1..9))] } else { Vec::new() };
    let maybe = |random: &mut fastrand::Rng, one_in: u8| random.u8(0..one_in) == 0;
    let standing = Standing {
        began: maybe(random, 3).then(|| id(random.i64(1..20).min(checkpoint))),
        attempts: random.u32(0..3),
        attempts_to: maybe(random, 2).then(|| id(random.i64(1..20))),
        is_without_order: without_order,
        flight: (without_order && checkpoint < 10 && maybe(random, 2)).then(|| places[random.usize(0..places.len())]),
        span_is_full: maybe(random, 5),
        calls_are_full: !calls.is_empty(),
        is_blocked: maybe(random, 8),
        burying: maybe(random, 8).then(|| id(random.i64(1..20))),
        is_busy: maybe(random, 6),
        wait: maybe(random, 4).then(|| Duration::from_millis(random.u64(1..5000))),
        pace: maybe(random, 8).then(|| Duration::from_millis(5)),
        calls,
        ..standing(checkpoint)
    };
    let helds = [Held::Disabled, Held::Paused, Held::Broken, Held::Changing];
    Facts {
        gone,
        wanted,
        held: maybe(random, 5).then(|| helds[random.usize(0..helds.len())]),
        endpoint: (!maybe(random, 6)).then(|| Arc::from("a:1")),
        endpoint_is_away: maybe(random, 6),
        is_failing: maybe(random, 8),
        window_is_full: maybe(random, 8),
        standing: (!maybe(random, 10)).then_some(standing),
        past: (0..random.usize(0..5)).map(|_| any_past(random)).collect(),
        letter: maybe(random, 8).then(|| Letter { id: id(99), attempts: 1, error: String::new() }),
        first: maybe(random, 2).then(|| id(random.i64(1..11))),
        ahead: random.u64(0..3),
        last_error: maybe(random, 2).then(|| "no".to_owned()),
        ..Facts::unread(id(10))
    }
}

fn any_past(random: &mut fastrand::Rng) -> Past {
    let (first, last) = (random.i64(1..11), random.i64(10..20));
    let what = match random.u8(0..7) {
        0 => What::Call(call(first, last, None, CallResult::Failed("no".into()))),
        1 => What::Call(call(first, last, Some(random.i64(first..=last)), CallResult::Consumed)),
        2 => What::Call(Call { is_redelivery: true, ..call(10, 10, Some(10), CallResult::Consumed) }),
        3 => What::Moved { by: Mover::Seek, from: id(first - 1), to: id(last) },
        4 => What::Moved { by: Mover::Commit, from: id(first - 1), to: id(last) },
        5 => What::Buried { id: id(10) },
        _ => What::Missed { from: id(first), to: id(last) },
    };
    Past { carried: random.u8(0..4) > 0, ..past(what) }
}
