//! Which collections a set of statements needs.

use std::collections::BTreeSet;

use super::design::{Collection, Design};
use super::logical::{Condition, Does, Logical, Match, Relation, Returns};
use super::tables::{Table, Tables};

/// A collection that is being made.
struct Draft {
    table: usize,
    paths: Vec<BTreeSet<usize>>,
    columns: BTreeSet<usize>,
}

/// The columns that conditions compare with `=`.
pub(super) fn equal(conditions: &[Condition]) -> BTreeSet<usize> {
    let is_equal = |condition: &&Condition| matches!(condition.is, Match::Is(Relation::Equal, _));
    conditions.iter().filter(is_equal).map(|condition| condition.column).collect()
}

/// Whether these columns decide the row.
pub(super) fn has_key(table: &Table, columns: &BTreeSet<usize>) -> bool {
    !table.key.is_empty() && table.key.iter().all(|column| columns.contains(column))
}

/// The columns that a statement reads.
pub(super) fn needed(logical: &Logical) -> BTreeSet<usize> {
    let mut columns: BTreeSet<usize> = logical.conditions.iter().map(|condition| condition.column).collect();
    match &logical.does {
        Does::Read { returns, order, .. } => {
            columns.extend(order.iter().map(|(column, _)| *column));
            match returns {
                Returns::Columns(all) => columns.extend(all),
                Returns::Aggregates(all) => columns.extend(all.iter().filter_map(|one| one.aggregate.column())),
            }
        }
        Does::Update(set) => set.iter().for_each(|(_, term)| term.columns(&mut |column| _ = columns.insert(column))),
        Does::Insert(_) | Does::Delete => {}
    }
    columns
}

/// The design for these statements.
pub(super) fn recommend(tables: &Tables, statements: &[Logical]) -> Design {
    let whole = |(place, table): (usize, &Table)| Draft {
        table: place,
        paths: (!table.key.is_empty()).then(|| table.key.iter().copied().collect()).into_iter().collect(),
        columns: (0..table.columns.len()).collect(),
    };
    let mut drafts: Vec<Draft> = tables.0.iter().enumerate().map(whole).collect();
    for logical in statements {
        let equal = equal(&logical.conditions);
        let is_read = matches!(logical.does, Does::Read { .. });
        if !is_read || equal.is_empty() || has_key(&tables.0[logical.table], &equal) {
            continue;
        }
        let mut columns = needed(logical);
        columns.extend(&tables.0[logical.table].key);
        let own = drafts[tables.0.len()..].iter_mut();
        match own.into_iter().find(|draft| draft.table == logical.table && draft.paths[0] == equal) {
            Some(draft) => draft.columns.extend(columns),
            None => drafts.push(Draft { table: logical.table, paths: vec![equal], columns }),
        }
    }
    // A change must find its rows in each collection that it goes to, and what it reads there. That may add columns,
    // which other changes then go to.
    while statements.iter().any(|logical| grow(tables, &mut drafts, logical)) {}
    let collections = drafts.into_iter().map(|draft| collection(tables, draft));
    let mut collections: Vec<Collection> = collections.collect();
    // By table, the whole one first.
    collections.sort_by_key(|collection| tables.find(&collection.table));
    Design { collections }
}

/// Gives collections what a change needs there. Returns whether one has grown.
fn grow(tables: &Tables, drafts: &mut [Draft], logical: &Logical) -> bool {
    let changed: Option<BTreeSet<usize>> = match &logical.does {
        Does::Update(set) => Some(set.iter().map(|(column, _)| *column).collect()),
        Does::Delete => None,
        Does::Read { .. } | Does::Insert(_) => return false,
    };
    let table = &tables.0[logical.table];
    let equal = equal(&logical.conditions);
    let by_key = has_key(table, &equal);
    let mut has_grown = false;
    for draft in drafts.iter_mut().filter(|draft| draft.table == logical.table) {
        if changed.as_ref().is_some_and(|changed| changed.is_disjoint(&draft.columns)) {
            continue;
        }
        let before = draft.columns.len() + draft.paths.len();
        draft.columns.extend(logical.conditions.iter().map(|condition| condition.column));
        if let Does::Update(set) = &logical.does {
            for (column, term) in set {
                if draft.columns.contains(column) {
                    term.columns(&mut |read| _ = draft.columns.insert(read));
                }
            }
        }
        let is_found = by_key || equal.is_empty() || draft.paths.iter().any(|path| path.is_subset(&equal));
        if !is_found {
            draft.paths.push(equal.clone());
        }
        has_grown |= draft.columns.len() + draft.paths.len() > before;
    }
    has_grown
}

fn collection(tables: &Tables, draft: Draft) -> Collection {
    let table = &tables.0[draft.table];
    let is_whole = draft.columns.len() == table.columns.len()
        && draft.paths.first().is_none_or(|path| table.key.iter().copied().collect::<BTreeSet<_>>() == *path);
    let name = match (is_whole, draft.paths.first()) {
        (false, Some(path)) => format!("{}_by_{}", table.name, table.names(path.iter().copied()).join("_")),
        _ => table.name.clone(),
    };
    let path = |path: &BTreeSet<usize>| {
        // The key keeps its order.
        let is_key = table.key.iter().copied().collect::<BTreeSet<_>>() == *path;
        if is_key { table.names(table.key.iter().copied()) } else { table.names(path.iter().copied()) }
    };
    Collection {
        name,
        table: table.name.clone(),
        paths: draft.paths.iter().map(path).collect(),
        columns: table.names(draft.columns),
    }
}
