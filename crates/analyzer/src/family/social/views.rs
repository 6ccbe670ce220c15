//! The views `item_updates` and `item_reads`, written from what `schemas::social` says of each
//! action.

use std::fmt::Write;

use schemas::social::{Action, Change, Observation, Operation};

use super::names;

/// Ids that stand for the columns of an operation. An item's owner or element is one of them.
const ACTOR: u64 = 1;
const TARGET: u64 = 2;
const COMMENT: u64 = 3;

fn column(id: u64) -> &'static str {
    match id {
        ACTOR => "actor",
        TARGET => "target",
        COMMENT => "\"comment\"",
        _ => unreachable!("the items of an operation are named by its own ids"),
    }
}

fn operation(action: Action, target: u64) -> Operation {
    Operation { action, socialite: ACTOR, target, comment: Some(COMMENT) }
}

/// What an action changes, as a list of structs.
fn changed(action: Action) -> String {
    let item = |change| match change {
        Change::Count { kind, owner, delta } => {
            let (item, owner) = (names::count(kind), column(owner));
            format!("{{item: '{item}', owner: {owner}, element: NULL::BIGINT, change: {delta}}}")
        }
        Change::Element { kind, owner, element, present } => {
            let (item, owner, element) = (names::list(kind), column(owner), column(element));
            let change = if present { 1 } else { -1 };
            format!("{{item: '{item}', owner: {owner}, element: {element}, change: {change}}}")
        }
    };
    format!("[{}]", operation(action, TARGET).changes().iter().map(item).collect::<Vec<_>>().join(", "))
}

/// The changing items that an action about this target observes, as a list of structs.
fn observed(action: Action, target: u64) -> String {
    let item = |observation| match observation {
        Observation::Count { kind, owner } => Some((names::count(kind), owner)),
        Observation::List { kind, owner } => Some((names::list(kind), owner)),
        Observation::ResourceCount { .. } | Observation::TopK { .. } => None,
    };
    let items = operation(action, target).observations();
    let items = items.iter().filter_map(item);
    let items = items.map(|(item, owner)| {
        format!("{{item: '{item}', owner: {}, element: NULL::BIGINT, unit: '{item}'}}", column(owner))
    });
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// The definitions of both views.
pub(super) fn views() -> String {
    let mut changes = String::new();
    let mut observations = String::new();
    for action in Action::ALL {
        let name = action.name();
        if action.is_write() {
            let _ = write!(changes, "\n            WHEN '{name}' THEN {}", changed(action));
        }
        let (of_others, of_oneself) = (observed(action, TARGET), observed(action, ACTOR));
        if of_oneself != of_others.replace(column(TARGET), column(ACTOR)) {
            let condition = format!("operation = '{name}' AND actor = target");
            let _ = write!(observations, "\n            WHEN {condition} THEN {of_oneself}");
        }
        if of_others != "[]" {
            let _ = write!(observations, "\n            WHEN operation = '{name}' THEN {of_others}");
        }
    }
    let key = "experiment, fragment, session, step";
    format!(
        "CREATE VIEW item_updates AS
SELECT {key}, operation, outcome, start_ns, end_ns,
    unnest(CASE operation{changes}
        END, recursive := true)
FROM operations
WHERE outcome IN ('ok', 'unknown');

CREATE VIEW item_reads AS
SELECT {key}, start_ns, warmup, drained,
    unnest(CASE{observations}
        END, recursive := true)
FROM operations
WHERE outcome = 'ok';
"
    )
}
