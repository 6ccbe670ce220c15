//! The validator against brute force: every order of a small history that keeps precedence.

use std::collections::BTreeSet;

use proptest::prelude::*;
use schemas::dataset::Table;
use schemas::oplog::Outcome;
use schemas::social::{Action, Operation};

use super::*;
use crate::fixtures::row;
use crate::initial::Initial;

fn at(start: i64, end: i64) -> Interval {
    Interval { start, end }
}

/// A write as the brute force sees it.
#[derive(Debug, Clone, Copy)]
struct Write<E> {
    at: Interval,
    optional: bool,
    effect: E,
}

/// The states in which the read can find the item, over all linear extensions
/// and all choices of the optional writes.
fn brute_force<S: Copy + Ord, E: Copy>(
    initial: S,
    writes: &[Write<E>],
    read: Interval,
    apply: &dyn Fn(S, E) -> S,
) -> BTreeSet<S> {
    let mut found = BTreeSet::new();
    for chosen in 0u32..1 << writes.len() {
        let in_force: Vec<Write<E>> = (0..writes.len()).filter(|i| chosen >> i & 1 == 1).map(|i| writes[i]).collect();
        if (0..writes.len()).all(|i| chosen >> i & 1 == 1 || writes[i].optional) {
            extend(initial, &in_force, 0, read, apply, &mut found);
        }
    }
    found
}

fn extend<S: Copy + Ord, E: Copy>(
    state: S,
    writes: &[Write<E>],
    done: u32,
    read: Interval,
    apply: &dyn Fn(S, E) -> S,
    found: &mut BTreeSet<S>,
) {
    let waits_for = |at: Interval| (0..writes.len()).any(|i| done >> i & 1 == 0 && writes[i].at.end < at.start);
    if !waits_for(read) {
        found.insert(state);
    }
    for (i, write) in writes.iter().enumerate() {
        // A write that the read precedes comes after it, and no longer matters.
        if done >> i & 1 == 0 && !waits_for(write.at) && write.at.start <= read.end {
            extend(apply(state, write.effect), writes, done | 1 << i, read, apply, found);
        }
    }
}

fn interval() -> impl Strategy<Value = Interval> {
    (0i64..10, 0i64..5).prop_map(|(start, length)| at(start, start + length))
}

fn open_ended(at: Interval, optional: bool) -> Interval {
    if optional { Interval { end: FOREVER, ..at } } else { at }
}

#[test]
fn figure_10_of_bg_2013() {
    let write = |start, end, delta| CountWrite { at: at(start, end), delta };
    let writes = [write(1, 3, -1), write(2, 4, 1), write(5, 6, 2)];
    let read = at(0, 10);
    assert_eq!(acceptable_range(0, &writes, read), Range { low: -1, high: 2 });
    let brute: Vec<Write<i64>> = writes.iter().map(|w| Write { at: w.at, optional: false, effect: w.delta }).collect();
    let values = brute_force(0, &brute, read, &|sum, delta| sum + delta);
    assert_eq!(values.into_iter().collect::<Vec<_>>(), [-1, 0, 1, 2]);
}

/// Intervals that touch overlap, and one nanosecond more makes an order.
#[test]
fn touching_end_points_overlap() {
    let write = |end| [CountWrite { at: at(0, end), delta: 1 }];
    assert_eq!(acceptable_range(5, &write(10), at(10, 20)), Range { low: 5, high: 6 });
    assert_eq!(acceptable_range(5, &write(9), at(10, 20)), Range { low: 6, high: 6 });
    let states = acceptable_states(States::only(false), &[ElementWrite { at: at(20, 30), present: true }], at(10, 20));
    assert_eq!(states, States { absent: true, present: true });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn counts_are_what_brute_force_finds(
        base in -2i64..3,
        history in prop::collection::vec((interval(), any::<bool>(), prop::bool::weighted(0.2)), 0..=6),
        read in interval(),
    ) {
        let delta = |up: bool| if up { 1 } else { -1 };
        let brute: Vec<Write<i64>> = history
            .iter()
            .map(|(at, up, optional)| Write { at: open_ended(*at, *optional), optional: *optional, effect: delta(*up) })
            .collect();
        let writes: Vec<CountWrite> =
            history.iter().map(|(at, up, optional)| CountWrite { at: open_ended(*at, *optional), delta: delta(*up) }).collect();
        let found = acceptable_range(base, &writes, read);
        let expect = brute_force(base, &brute, read, &|sum, delta| sum + delta);
        prop_assert_eq!((found.low..=found.high).collect::<BTreeSet<_>>(), expect);
    }

    #[test]
    fn any_deltas_stay_between_the_bounds_that_brute_force_finds(
        history in prop::collection::vec((interval(), -3i64..4), 0..=6),
        read in interval(),
    ) {
        let brute: Vec<Write<i64>> =
            history.iter().map(|(at, delta)| Write { at: *at, optional: false, effect: *delta }).collect();
        let writes: Vec<CountWrite> = history.iter().map(|(at, delta)| CountWrite { at: *at, delta: *delta }).collect();
        let found = acceptable_range(0, &writes, read);
        let expect = brute_force(0, &brute, read, &|sum, delta| sum + delta);
        prop_assert_eq!(Some(&found.low), expect.first());
        prop_assert_eq!(Some(&found.high), expect.last());
    }

    #[test]
    fn memberships_are_what_brute_force_finds(
        initial in any::<bool>(),
        history in prop::collection::vec((interval(), any::<bool>(), prop::bool::weighted(0.2)), 0..=6),
        read in interval(),
    ) {
        let brute: Vec<Write<bool>> = history
            .iter()
            .map(|(at, present, optional)| Write { at: open_ended(*at, *optional), optional: *optional, effect: *present })
            .collect();
        let writes: Vec<ElementWrite> = history
            .iter()
            .map(|(at, present, optional)| ElementWrite { at: open_ended(*at, *optional), present: *present })
            .collect();
        let found = acceptable_states(States::only(initial), &writes, read);
        let expect = brute_force(initial, &brute, read, &|_, present| present);
        prop_assert_eq!(found, States { absent: expect.contains(&false), present: expect.contains(&true) });
    }
}

/// Members 0 to 3; `invited` have invited member 0.
fn state(invited: &[u64]) -> State {
    let mut rows = |table: Table, each: &mut dyn FnMut(&[u64])| {
        match table {
            Table::Members => (0..4).for_each(|member| each(&[member])),
            Table::Invitations => invited.iter().for_each(|inviter| each(&[*inviter, 0])),
            _ => {}
        }
        Ok(())
    };
    State::new(Initial::from_rows(&mut rows, &|table| table.name().to_string(), 5).unwrap())
}

/// One operation of a random history of member 0's invitations.
#[derive(Debug, Clone)]
struct Step {
    at: Interval,
    outcome: Outcome,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// Member 1 or 2 invites member 0, or member 0 rejects it.
    Write { inviter: u64, present: bool },
    /// Member 0 looks at her profile and sees this many.
    Count(i64),
    /// Member 0 lists her invitations and sees these.
    List(Vec<i64>),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![6 => Just(Outcome::Ok), 1 => Just(Outcome::Unknown), 1 => Just(Outcome::Failed)];
    let what = prop_oneof![
        3 => (1u64..3, any::<bool>()).prop_map(|(inviter, present)| What::Write { inviter, present }),
        2 => (-2i64..5).prop_map(What::Count),
        2 => prop::collection::vec(1i64..4, 0..4).prop_map(What::List),
    ];
    (0i64..14, 0i64..6, outcome, what).prop_map(|(start, length, outcome, what)| Step {
        at: at(start, start + length),
        outcome,
        what,
    })
}

fn operation(what: &What) -> Operation {
    let (action, socialite, target) = match what {
        What::Write { inviter, present: true } => (Action::InviteFriend, *inviter, 0),
        What::Write { inviter, present: false } => (Action::RejectFriendRequest, 0, *inviter),
        What::Count(_) => (Action::ViewProfile, 0, 0),
        What::List(_) => (Action::ViewFriendRequests, 0, 0),
    };
    Operation { action, socialite, target, comment: None }
}

/// What the streaming validator finds, by step.
fn stream(steps: &[Step], invited: &[u64]) -> Vec<Findings> {
    let mut validator = Validator::new(state(invited));
    let mut found = vec![Findings::default(); steps.len()];
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|i| steps[*i].at.start);
    let mut drain = |validator: &mut Validator, now: Option<i64>| {
        while let Some(row) = validator.leave(now) {
            let index = row.log.session as usize;
            let observed = match &steps[index].what {
                What::Write { .. } => Vec::new(),
                What::Count(seen) => vec![0, 0, *seen],
                What::List(seen) => seen.clone(),
            };
            found[index] = validator.check(&row, &observed).unwrap().clone();
        }
    };
    for index in order {
        let step = &steps[index];
        let mut row = row(index as u64, step.at.start, step.at.end, operation(&step.what));
        row.log.outcome = step.outcome;
        drain(&mut validator, Some(step.at.start));
        validator.enter(row).unwrap();
    }
    drain(&mut validator, None);
    found
}

/// What brute force says of one step.
fn expected(steps: &[Step], index: usize, invited: &[u64]) -> Vec<Violation> {
    let read = &steps[index];
    let writes: Vec<Write<(u64, bool)>> = steps
        .iter()
        .filter(|s| matches!(s.outcome, Outcome::Ok | Outcome::Unknown))
        .filter_map(|s| match s.what {
            What::Write { inviter, present } => {
                let optional = s.outcome == Outcome::Unknown;
                Some(Write { at: open_ended(s.at, optional), optional, effect: (inviter, present) })
            }
            _ => None,
        })
        .collect();
    let mut violations = Vec::new();
    if read.outcome != Outcome::Ok {
        return violations;
    }
    match &read.what {
        What::Write { .. } => {}
        What::Count(seen) => {
            let apply = |sum, (_, present)| sum + if present { 1 } else { -1 };
            let values = brute_force(invited.len() as i64, &writes, read.at, &apply);
            if !values.contains(seen) {
                let item = Item::Count(schemas::social::CountKind::PendingCount);
                let (low, high) = (*values.first().unwrap(), *values.last().unwrap());
                violations.push(Violation { item, owner: 0, element: None, observed: *seen, low, high });
            }
        }
        What::List(seen) => {
            for element in 1..4u64 {
                let times = seen.iter().filter(|s| **s == element as i64).count() as i64;
                let of_element: Vec<_> = writes.iter().copied().filter(|w| w.effect.0 == element).collect();
                let states = brute_force(invited.contains(&element), &of_element, read.at, &|_, (_, present)| present);
                if times > 1 || !states.contains(&(times == 1)) {
                    let item = Item::Element(schemas::social::ListKind::Pending);
                    let (low, high) = (i64::from(!states.contains(&false)), i64::from(states.contains(&true)));
                    violations.push(Violation {
                        item,
                        owner: 0,
                        element: Some(element as i64),
                        observed: times,
                        low,
                        high,
                    });
                }
            }
        }
    }
    violations
}

/// The items of a step that had been written before: member 0's invitations, as a
/// count or as a list. The friend count next to the pending one is never written.
fn expected_items(steps: &[Step], index: usize, is_fresh: bool) -> Vec<ItemRead> {
    let read = &steps[index];
    if read.outcome != Outcome::Ok || matches!(read.what, What::Write { .. }) {
        return Vec::new();
    }
    let is_complete = |step: &&Step| {
        let is_write = matches!(step.what, What::Write { .. });
        is_write && step.outcome == Outcome::Ok && step.at.end < read.at.start
    };
    let last = steps.iter().filter(is_complete).map(|step| step.at.end).max();
    last.map(|end| ItemRead { age_ns: read.at.start - end, is_fresh }).into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Settling, the window and the merge of lists change nothing: the stream
    /// finds for each read what brute force over the whole history finds.
    #[test]
    fn the_stream_finds_what_brute_force_finds(
        steps in prop::collection::vec(step(), 0..12)
            .prop_filter("brute force is for few writes", |steps| {
                steps.iter().filter(|s| matches!(s.what, What::Write { .. })).count() <= 6
            }),
        invited in prop::sample::subsequence(vec![1u64, 2, 3], 0..=3),
    ) {
        let found = stream(&steps, &invited);
        for (index, mut findings) in found.into_iter().enumerate() {
            findings.violations.sort_by_key(|v| v.element);
            let violations = expected(&steps, index, &invited);
            prop_assert_eq!(findings.items, expected_items(&steps, index, violations.is_empty()), "step {}", index);
            prop_assert_eq!(findings.violations, violations, "step {}", index);
        }
    }
}

fn check_answer(operation: Operation, observed: &[i64], expect: &[(Item, Option<i64>, i64, i64)]) {
    let mut rows = |table: Table, each: &mut dyn FnMut(&[u64])| {
        match table {
            Table::Members => (0..2).for_each(|member| each(&[member])),
            Table::Friendships => each(&[0, 1]),
            Table::Resources => (10..17).for_each(|resource| each(&[resource, 0, 1])),
            Table::Comments => [3, 5].iter().for_each(|comment| each(&[*comment, 12, 0])),
            Table::Invitations => {}
        }
        Ok(())
    };
    let initial = Initial::from_rows(&mut rows, &|table| table.name().to_string(), 5).unwrap();
    let mut findings = Findings::default();
    State::new(initial).check(&operation, observed, at(0, 1), 0, &mut findings).unwrap();
    assert_eq!(findings.items, [], "nothing was ever written");
    let found: Vec<_> = findings.violations.iter().map(|v| (v.item, v.element, v.observed, v.low)).collect();
    assert_eq!(found, expect, "{observed:?}");
}

#[test]
fn answers_of_the_wrong_shape_and_fixed_items_are_checked() {
    let read = |action, target| Operation { action, socialite: 0, target, comment: None };
    let profile = read(Action::ViewProfile, 1);
    check_answer(profile, &[1, 7], &[]);
    check_answer(profile, &[1, 6], &[(Item::ResourceCount, None, 6, 7)]);
    check_answer(profile, &[1, 7, 0], &[(Item::Shape, None, 3, 2)]);
    check_answer(read(Action::ViewProfile, 0), &[1, 0], &[(Item::Shape, None, 2, 3)]);

    let top = read(Action::ViewTopKResources, 1);
    check_answer(top, &[16, 15, 14, 13, 12], &[]);
    check_answer(top, &[16, 15, 14, 12, 13], &[(Item::TopK, Some(3), 12, 13), (Item::TopK, Some(4), 13, 12)]);
    check_answer(top, &[16, 15, 14, 13], &[(Item::TopK, Some(4), -1, 12)]);
    check_answer(top, &[16, 15, 14, 13, 12, 11], &[(Item::TopK, Some(5), 11, -1)]);
    check_answer(read(Action::ViewTopKResources, 0), &[-1], &[(Item::TopK, Some(0), -1, -1)]);

    let comments = Item::Element(schemas::social::ListKind::Comments);
    let view = read(Action::ViewComments, 12);
    check_answer(view, &[5, 3], &[]);
    check_answer(view, &[5, 3, 5], &[(comments, Some(5), 2, 1)]);
    check_answer(view, &[-7, 5], &[(comments, Some(-7), 1, 0), (comments, Some(3), 0, 1)]);
}

#[test]
fn an_unknown_id_is_an_error() {
    let operation = Operation { action: Action::InviteFriend, socialite: 1, target: 99, comment: None };
    let mut state = state(&[]);
    let error = state.register(&operation, at(0, 1), 0).unwrap_err();
    assert_eq!(error.to_string(), "member 99 is not in the fragment's data set");
}

/// Writes before the experiment happen one after the other.
#[test]
fn applied_writes_are_in_order() {
    let mut state = state(&[]);
    for present in [true, false, true] {
        state.apply(&operation(&What::Write { inviter: 2, present })).unwrap();
    }
    let mut findings = Findings::default();
    state.check(&operation(&What::List(vec![])), &[2], at(0, 1), 0, &mut findings).unwrap();
    state.check(&operation(&What::Count(0)), &[0, 0, 1], at(0, 1), 0, &mut findings).unwrap();
    // Neither wrong, nor counted as written: that was before the experiment.
    assert_eq!(findings, Findings::default());
}
