//! Orders of handing out and finishing, by hand and at random.

use super::*;
use proptest::prelude::*;
use schemas::social::{Action, Operation};

fn chunk(socialites: &[u64]) -> Chunk {
    let row = |(session, socialite): (usize, &u64)| TraceRow {
        session: session as u64,
        step: 0,
        kind: 0,
        noops: 0,
        think_us: 0,
        due_us: None,
        after: None,
        operation: Operation { action: Action::ListFriends, socialite: *socialite, target: 0, comment: None },
    };
    socialites.iter().enumerate().map(row).collect()
}

fn whole(weight: f64, sessions: usize) -> Stretch {
    Stretch { weight, first_session: 0, measured_from: 0, end_session: sessions as u64 }
}

fn take(dispatcher: &mut Dispatcher) -> Option<Session> {
    match dispatcher.hand_out() {
        Next::Session(session) => Some(session),
        _ => None,
    }
}

#[test]
fn a_busy_socialites_session_waits_and_then_goes_first() {
    let mut dispatcher = Dispatcher::new(&[whole(1.0, 4)], 2, true);
    dispatcher.supply(0, Some(chunk(&[7, 7, 8, 9])));
    let first = take(&mut dispatcher).unwrap();
    let second = take(&mut dispatcher).unwrap();
    assert_eq!((first.number(), second.number()), (0, 2));
    dispatcher.finish(&first, true);
    assert_eq!(take(&mut dispatcher).unwrap().number(), 1);
    assert_eq!(take(&mut dispatcher).unwrap().number(), 3);
    assert!(matches!(dispatcher.hand_out(), Next::Finished));
}

#[test]
fn closing_hands_out_what_waits_aside_and_no_more() {
    let mut dispatcher = Dispatcher::new(&[whole(1.0, 4)], 2, true);
    dispatcher.supply(0, Some(chunk(&[7, 7, 8, 9])));
    let first = take(&mut dispatcher).unwrap();
    let second = take(&mut dispatcher).unwrap();
    dispatcher.close();
    assert!(take(&mut dispatcher).is_none());
    dispatcher.finish(&second, true);
    assert!(take(&mut dispatcher).is_none());
    dispatcher.finish(&first, true);
    assert_eq!(take(&mut dispatcher).unwrap().number(), 1);
    assert_eq!(dispatcher.positions().collect::<Vec<_>>(), [3]);
}

/// A thread must not wait for work that is not there, nor leave work undone.
#[test]
fn it_is_over_when_nothing_is_left_or_it_was_closed() {
    let mut dispatcher = Dispatcher::new(&[whole(1.0, 3)], 2, true);
    dispatcher.supply(0, Some(chunk(&[7, 7, 8])));
    let first = take(&mut dispatcher).unwrap();
    assert!(!dispatcher.is_over());
    let last = take(&mut dispatcher).unwrap();
    assert_eq!(last.number(), 2);
    // Session 1 waits for its socialite, then for a thread.
    assert!(!dispatcher.is_over());
    dispatcher.finish(&first, true);
    assert!(!dispatcher.is_over());
    assert_eq!(take(&mut dispatcher).unwrap().number(), 1);
    assert!(dispatcher.is_over());

    let mut closed = Dispatcher::new(&[whole(1.0, 3)], 2, true);
    closed.close();
    assert!(closed.is_over());

    let mut exhausted = Dispatcher::new(&[whole(1.0, 3)], 2, true);
    exhausted.supply(0, None);
    assert!(exhausted.is_over() && exhausted.ran_out());
}

#[test]
fn the_warm_up_is_handed_out_alone_and_what_it_did_is_remembered() {
    let stretches = [(0, 2), (0, 1)].map(|(first_session, measured_from)| Stretch {
        weight: 0.5,
        first_session,
        measured_from,
        end_session: 4,
    });
    let mut dispatcher = Dispatcher::new(&stretches, 1, true).warming_up(&stretches);
    for fragment in 0..2 {
        dispatcher.supply(fragment, Some(chunk(&[7, 8, 9, 10])));
    }
    let run = |dispatcher: &mut Dispatcher, ok: bool| {
        let mut sessions = Vec::new();
        while let Some(session) = take(dispatcher) {
            dispatcher.finish(&session, ok);
            sessions.push((session.fragment, session.number()));
        }
        sessions
    };
    assert_eq!(run(&mut dispatcher, false), [(0, 0), (1, 0), (0, 1)]);
    assert!(dispatcher.is_over() && !dispatcher.ran_out());
    dispatcher.begin_measured();
    assert_eq!(run(&mut dispatcher, true), [(1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]);
    assert_eq!(dispatcher.dependency(0, 1), Dependency::NotOk);
    assert_eq!(dispatcher.dependency(0, 2), Dependency::Done);
}

#[test]
fn a_stuck_socialite_blocks_before_memory_grows() {
    let mut dispatcher = Dispatcher::new(&[whole(1.0, 10_000)], 2, true);
    dispatcher.supply(0, Some(chunk(&vec![7; 10_000])));
    let stuck = take(&mut dispatcher).unwrap();
    assert!(matches!(dispatcher.hand_out(), Next::Blocked));
    dispatcher.finish(&stuck, true);
    assert_eq!(take(&mut dispatcher).unwrap().number(), 1);
}

proptest! {
    /// Any threads, any order of finishing: every session runs exactly once,
    /// one socialite's sessions in order and never two at a time.
    #[test]
    fn every_session_runs_once_and_socialites_are_unique(
        socialites in prop::collection::vec(0u64..6, 1..200),
        threads in 1usize..9,
        picks in prop::collection::vec(0usize..64, 400),
    ) {
        let mut dispatcher = Dispatcher::new(&[whole(1.0, socialites.len())], threads, true);
        dispatcher.supply(0, Some(chunk(&socialites)));
        let (mut running, mut finished): (Vec<Session>, Vec<u64>) = (vec![], vec![]);
        let mut picks = picks.into_iter().cycle();
        loop {
            while running.len() < threads {
                let Some(session) = take(&mut dispatcher) else { break };
                prop_assert!(running.iter().all(|r| r.socialite() != session.socialite()));
                running.push(session);
            }
            if running.is_empty() {
                break;
            }
            let session = running.swap_remove(picks.next().unwrap() % running.len());
            dispatcher.finish(&session, true);
            finished.push(session.number());
        }
        for socialite in 0..6 {
            let of_one: Vec<u64> =
                finished.iter().copied().filter(|s| socialites[*s as usize] == socialite).collect();
            prop_assert!(of_one.is_sorted());
        }
        finished.sort();
        prop_assert_eq!(finished, (0..socialites.len() as u64).collect::<Vec<_>>());
    }
}
