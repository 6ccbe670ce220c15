//! Which tables a set of statements needs.

use std::collections::BTreeSet;

use super::super::logical::{Condition, Does, Logical, Match, Relation};
use super::super::recommend::{equal, has_key, needed};
use super::super::tables::Tables;
use super::design::{WideDesign, WideTable, clustered, name_of, no_key};

/// A table that is being made.
struct Draft {
    table: usize,
    partition: Vec<usize>,
    clustering: Vec<(usize, bool)>,
    columns: BTreeSet<usize>,
}

/// The design for these statements. The error says which table has none.
pub(super) fn recommend(tables: &Tables, statements: &[Logical]) -> Result<WideDesign, String> {
    let mut drafts = Vec::new();
    for (place, table) in tables.0.iter().enumerate() {
        if table.key.is_empty() {
            return Err(format!("table {}", no_key(table)));
        }
        let (partition, columns) = (table.key.clone(), (0..table.columns.len()).collect());
        drafts.push(Draft { table: place, partition, clustering: Vec::new(), columns });
    }
    for logical in statements {
        let table = &tables.0[logical.table];
        let equal = equal(&logical.conditions);
        let Does::Read { order, .. } = &logical.does else { continue };
        // A query of all rows has no access path.
        if equal.is_empty() || has_key(table, &equal) {
            continue;
        }
        let order = clustering(&logical.conditions, order, &equal);
        let mut columns = needed(logical);
        columns.extend(&table.key);
        let is_same = |draft: &&mut Draft| {
            draft.table == logical.table
                && draft.partition.iter().copied().collect::<BTreeSet<_>>() == equal
                && has_order(&draft.clustering, &order)
        };
        match drafts[tables.0.len()..].iter_mut().find(is_same) {
            Some(draft) => draft.columns.extend(columns),
            None => {
                let rest = table.key.iter().copied().filter(|column| !equal.contains(column));
                let rest =
                    rest.filter(|column| order.iter().all(|(own, _)| own != column)).map(|column| (column, false));
                let clustering = order.iter().copied().chain(rest).collect();
                drafts.push(Draft {
                    table: logical.table,
                    partition: equal.into_iter().collect(),
                    clustering,
                    columns,
                });
            }
        }
    }
    let mut names = BTreeSet::new();
    let mut own = Vec::new();
    drafts.sort_by_key(|draft| draft.table);
    for draft in drafts {
        let table = &tables.0[draft.table];
        let is_whole = draft.partition == table.key && draft.clustering.is_empty();
        let path = table.names(draft.partition.iter().copied()).join("_");
        let base = if is_whole { table.name.clone() } else { format!("{}_by_{path}", table.name) };
        let mut name = name_of(&base);
        let mut number = 2;
        while !names.insert(name.clone()) || name.starts_with("encore_") || name == "usertable" {
            let short: String = name_of(&base).chars().take(44).collect();
            name = format!("{short}_{number}");
            number += 1;
        }
        own.push(WideTable {
            name,
            table: table.name.clone(),
            partition: table.names(draft.partition.iter().copied()),
            clustering: draft.clustering.iter().map(|(column, down)| clustered(table, *column, *down)).collect(),
            columns: table.names(draft.columns),
        });
    }
    Ok(WideDesign { tables: own })
}

/// The clustering columns that a query asks for: those of its order, or else that of its range.
fn clustering(conditions: &[Condition], order: &[(usize, bool)], equal: &BTreeSet<usize>) -> Vec<(usize, bool)> {
    let mut all: Vec<(usize, bool)> = Vec::new();
    for (column, descends) in order {
        if !equal.contains(column) && all.iter().all(|(own, _)| own != column) {
            all.push((*column, *descends));
        }
    }
    let is_range = |condition: &&Condition| matches!(condition.is, Match::Is(relation, _) if relation != Relation::Equal && relation != Relation::NotEqual);
    if all.is_empty()
        && let Some(range) = conditions.iter().find(is_range)
    {
        all.push((range.column, false));
    }
    all
}

/// Whether rows in an order of clustering columns are in the other order too, from either end.
pub(super) fn has_order(clustering: &[(usize, bool)], wanted: &[(usize, bool)]) -> bool {
    is_reversed(clustering, wanted).is_some()
}

/// Whether the order is that of the clustering columns read backwards; None if it is neither way theirs.
pub(super) fn is_reversed(clustering: &[(usize, bool)], wanted: &[(usize, bool)]) -> Option<bool> {
    if wanted.is_empty() {
        return Some(false);
    }
    let both = clustering.iter().zip(wanted);
    let is_prefix = wanted.len() <= clustering.len() && both.clone().all(|(own, wanted)| own.0 == wanted.0);
    let mut turned = both.map(|(own, wanted)| own.1 != wanted.1);
    let first = turned.next()?;
    (is_prefix && turned.all(|one| one == first)).then_some(first)
}
