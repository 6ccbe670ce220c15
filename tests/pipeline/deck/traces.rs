//! Trace sets that the deck generates.

use super::Deck;
use crate::support::{Workplace, until};

#[test]
fn a_trace_set_is_generated_and_taken_up() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let send = |fields: &[(&str, &str)]| deck.post("/new", &[&[("kind", "trace")][..], fields].concat());
    let wrong = send(&[("name", "a b"), ("do", "check")]).body;
    assert!(wrong.contains("id=\"why-name\""), "{wrong}");
    let numbers = [("name", "small"), ("spec", "busy.toml"), ("sessions", "many"), ("fragments", "-1")];
    let wrong = send(&[&numbers[..], &[("do", "check")]].concat()).body;
    assert!(wrong.contains("id=\"why-sessions\"") && wrong.contains("id=\"why-fragments\""), "{wrong}");
    let wrong = send(&[("name", "small"), ("spec", "busy.toml"), ("set", "data.members=-1"), ("do", "check")]).body;
    assert!(wrong.contains("id=\"why-"), "{wrong}");
    let right = [("name", "small"), ("spec", "busy.toml"), ("sessions", "500")];
    let checked = send(&[&right[..], &[("do", "check")]].concat()).body;
    let line = "trace gen busy.toml --sessions=500 --output=runs/traces/small.trace";
    assert!(checked.contains("All is correct") && checked.contains(line), "{checked}");
    assert!(!place.path("runs/traces").exists(), "nothing has been generated");
    let started = send(&[&right[..], &[("do", "start")]].concat());
    assert!(started.status == 303 && started.head.contains("/runs/traces/small.trace"), "{}", started.head);
    let page = deck.until("/runs/traces/small.trace", "Rate a store with it");
    assert!(page.contains("500") && page.contains("trace show runs/traces/small.trace"), "{page}");
    place.run(&["trace", "verify", "runs/traces/small.trace"]).succeeds();
    let taken = send(&[&right[..], &[("do", "start")]].concat()).body;
    assert!(taken.contains("id=\"why-name\"") && taken.contains("already"), "{taken}");
    // The forms of ratings and runs have it.
    let form = deck.get("/new?kind=rate&spec=runs/traces/small.trace").body;
    assert!(form.contains("<option value=\"runs/traces/small.trace\" selected"), "{form}");
    assert!(form.contains("rate --trace=runs/traces/small.trace"), "{form}");
    // Another choice takes it away again.
    let taken = [("kind", "rate"), ("trace", "runs/traces/small.trace"), ("taken", "runs/traces/small.trace")];
    let other = deck.post("/new", &[&taken[..], &[("spec", ""), ("do", "choose")]].concat()).body;
    assert!(!other.contains("--trace="), "{other}");
    let typed = deck.post("/new", &[&taken[..2], &[("spec", ""), ("do", "choose")]].concat()).body;
    assert!(typed.contains("--trace=runs/traces/small.trace"), "{typed}");
    let fields = [("kind", "run"), ("name", "one"), ("spec", "runs/traces/small.trace"), ("threads", "2")];
    let run = deck.post("/new", &[&fields[..], &[("store", "memory:?latency_us=2000"), ("do", "start")]].concat());
    assert_eq!(run.status, 303, "{}", run.body);
    let page = deck.until("/runs/one", ">complete<");
    assert!(page.contains("--trace=runs/traces/small.trace"), "{page}");
}

#[test]
fn a_generation_is_stopped_also_under_a_later_deck() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let fields = [("kind", "trace"), ("name", "long"), ("spec", "busy.toml"), ("sessions", "200000000")];
    assert_eq!(deck.post("/new", &[&fields[..], &[("do", "start")]].concat()).status, 303);
    deck.until("/runs/traces/long.trace", "The trace set is being generated");
    // Its folder, under another name until it is whole: from then on the command answers to Ctrl-C.
    let has_begun = || std::fs::read_dir(place.path("runs/traces")).is_ok_and(|mut files| files.next().is_some());
    until("the folder of the generation", has_begun);
    drop(deck);
    let deck = Deck::start(&place);
    deck.until("/runs/traces/long.trace", "Stop it safely");
    assert_eq!(deck.post("/runs/traces/long.trace", &[("act", "stop")]).status, 303);
    let ended = deck.until("/runs/traces/long.trace", "ended without a trace set");
    assert!(ended.contains("interrupted"), "{ended}");
    assert!(!place.path("runs/traces/long.trace").exists());
}
