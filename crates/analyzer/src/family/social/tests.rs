//! Tests the items of the family against brute force, and its views against the vocabulary.

use proptest::prelude::*;
use schemas::oplog::Outcome;
use schemas::social::{Action, Change, Observation, Operation};
use schemas::workload::social::dataset::Table;

use super::initial::Initial;
use super::items::SocialItems;
use super::{names, views};
use crate::fixtures::row;
use crate::validate::brute::{Write, at, brute_force, open_ended};
use crate::validate::{Findings, Interval, ItemRead, Items, Validator, Violation};

/// Members 0 to 3; `invited` have invited member 0.
fn items(invited: &[u64]) -> SocialItems {
    let mut rows = |table: Table, each: &mut dyn FnMut(&[u64])| {
        match table {
            Table::Members => (0..4).for_each(|member| each(&[member])),
            Table::Invitations => invited.iter().for_each(|inviter| each(&[*inviter, 0])),
            _ => {}
        }
        Ok(())
    };
    SocialItems::new(Initial::from_rows(&mut rows, &|table| table.name().to_string(), 5).unwrap())
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
    /// Member 1 or 2 invites member 0, or member 0 rejects the invitation.
    Write { inviter: u64, present: bool },
    /// Member 0 views her profile and sees this many invitations.
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

/// The findings of the streaming validator, by step.
fn stream(steps: &[Step], invited: &[u64]) -> Vec<Findings> {
    let mut validator = Validator::new(items(invited));
    let mut found = vec![Findings::default(); steps.len()];
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|i| steps[*i].at.start);
    let mut drain = |validator: &mut Validator<SocialItems, Operation>, now: Option<i64>| {
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

/// The violations that brute force finds in one step.
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
                let item = "pending_count";
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
                    let item = "pending";
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

    /// Settling, the window and the merge of lists change nothing: for each read the stream finds
    /// what brute force over the whole history finds.
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

fn check_answer(operation: Operation, observed: &[i64], expect: &[(&str, Option<i64>, i64, i64)]) {
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
    SocialItems::new(initial).check(&operation, observed, at(0, 1), 0, &mut findings).unwrap();
    assert_eq!(findings.items, [], "nothing was ever written");
    let found: Vec<_> = findings.violations.iter().map(|v| (v.item, v.element, v.observed, v.low)).collect();
    assert_eq!(found, expect, "{observed:?}");
}

#[test]
fn answers_of_the_wrong_shape_and_fixed_items_are_checked() {
    let read = |action, target| Operation { action, socialite: 0, target, comment: None };
    let profile = read(Action::ViewProfile, 1);
    check_answer(profile, &[1, 7], &[]);
    check_answer(profile, &[1, 6], &[("resource_count", None, 6, 7)]);
    check_answer(profile, &[1, 7, 0], &[("shape", None, 3, 2)]);
    check_answer(read(Action::ViewProfile, 0), &[1, 0], &[("shape", None, 2, 3)]);

    let top = read(Action::ViewTopKResources, 1);
    check_answer(top, &[16, 15, 14, 13, 12], &[]);
    check_answer(top, &[16, 15, 14, 12, 13], &[("top_k", Some(3), 12, 13), ("top_k", Some(4), 13, 12)]);
    check_answer(top, &[16, 15, 14, 13], &[("top_k", Some(4), -1, 12)]);
    check_answer(top, &[16, 15, 14, 13, 12, 11], &[("top_k", Some(5), 11, -1)]);
    check_answer(read(Action::ViewTopKResources, 0), &[-1], &[("top_k", Some(0), -1, -1)]);

    let comments = "comments";
    let view = read(Action::ViewComments, 12);
    check_answer(view, &[5, 3], &[]);
    check_answer(view, &[5, 3, 5], &[(comments, Some(5), 2, 1)]);
    check_answer(view, &[-7, 5], &[(comments, Some(-7), 1, 0), (comments, Some(3), 0, 1)]);
}

#[test]
fn an_unknown_id_is_an_error() {
    let operation = Operation { action: Action::InviteFriend, socialite: 1, target: 99, comment: None };
    let mut items = items(&[]);
    let error = items.register(&operation, at(0, 1), 0).unwrap_err();
    assert_eq!(error.to_string(), "member 99 is not in the fragment's data set");
}

/// Writes that ran long before the experiment count as neither wrong nor stale.
#[test]
fn earlier_writes_are_settled() {
    let mut items = items(&[]);
    for (before, present) in [true, false, true].into_iter().enumerate() {
        let long_ago = i64::MIN / 2 + before as i64;
        let write = operation(&What::Write { inviter: 2, present });
        items.register(&write, at(long_ago, long_ago), long_ago).unwrap();
    }
    let mut findings = Findings::default();
    items.check(&operation(&What::List(vec![])), &[2], at(0, 1), 0, &mut findings).unwrap();
    items.check(&operation(&What::Count(0)), &[0, 0, 1], at(0, 1), 0, &mut findings).unwrap();
    assert_eq!(findings, Findings::default());
}

/// The views in SQL say of random operations what the vocabulary says of them.
#[test]
fn the_views_are_what_the_vocabulary_says() {
    let database = duckdb::Connection::open_in_memory().unwrap();
    let table = "CREATE TABLE operations (experiment BIGINT, fragment BIGINT, session BIGINT, step SMALLINT, \
                 operation VARCHAR, actor BIGINT, target BIGINT, \"comment\" BIGINT, outcome VARCHAR, \
                 start_ns BIGINT, end_ns BIGINT, warmup BOOLEAN, drained BOOLEAN)";
    database.execute_batch(&format!("{table};{}", views::views())).unwrap();
    let (mut updates, mut reads) = (Vec::new(), Vec::new());
    let mut session = 0;
    for action in Action::ALL {
        for (socialite, target) in [(7, 8), (7, 7)] {
            let operation = Operation { action, socialite, target, comment: Some(9) };
            let row = "INSERT INTO operations VALUES (1, 0, ?, 0, ?, ?, ?, 9, 'ok', 1, 2, false, false)";
            database.execute(row, duckdb::params![session, action.name(), socialite, target]).unwrap();
            updates.extend(operation.changes().iter().map(|change| match change {
                Change::Count { kind, owner, delta } => {
                    (session, names::count(kind).to_string(), owner, None, i64::from(delta))
                }
                Change::Element { kind, owner, element, present } => {
                    (session, names::list(kind).to_string(), owner, Some(element), if present { 1 } else { -1 })
                }
            }));
            reads.extend(operation.observations().iter().filter_map(|observation| match observation {
                Observation::Count { kind, owner } => Some((session, names::count(kind).to_string(), owner)),
                Observation::List { kind, owner } => Some((session, names::list(kind).to_string(), owner)),
                Observation::ResourceCount { .. } | Observation::TopK { .. } => None,
            }));
            session += 1;
        }
    }
    let mut found = database.prepare("SELECT session, item, owner, element, change FROM item_updates").unwrap();
    let row = |row: &duckdb::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    let mut found: Vec<(u64, String, u64, Option<u64>, i64)> =
        found.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap();
    found.sort();
    updates.sort();
    assert_eq!(found, updates);
    let mut found = database.prepare("SELECT session, item, owner FROM item_reads").unwrap();
    let row = |row: &duckdb::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let mut found: Vec<(u64, String, u64)> = found.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap();
    found.sort();
    reads.sort();
    assert_eq!(found, reads);
}
