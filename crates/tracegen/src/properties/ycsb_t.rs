//! Converts YCSB+T's Closed Economy Workload (ycsb-t-2014, section IV-C, with the file of its Listing 2): the
//! keys of YCSB, the money, and deletes. Where YCSB+T's code differs from its paper, the paper's definition
//! holds, and a note says so.

use schemas::spec::{Spec, SpecOf};
use schemas::workload::Workload;
use schemas::workload::economy::EconomyWorkload;

use super::table::Table;
use super::{Converted, PropertiesError, Property, ycsb};

/// The money, if a file does not set it: the default of YCSB+T's code.
const TOTAL_CASH: u64 = 1_000_000;

/// The key of deletes. YCSB+T's code has none; its paper has deletes, and does not name the key.
const DELETES: (&str, &str) = ("deleteproportion", "delete");

/// Kinds of sessions that YCSB+T's code does in another way than its paper.
const DIFFERENT: [(&str, &str); 3] = [
    (
        "update",
        "an update reads a record and adds $1 of what deletes captured ($1 is captured of the record if nothing is \
         left), as in the paper; YCSB+T's code writes random bytes, so that its validation fails",
    ),
    (
        "insert",
        "an insert takes money that deletes captured, as in the paper; YCSB+T's code makes money, so that its \
         validation fails",
    ),
    (
        "read_modify_write",
        "a transfer of $1 goes from the record that is drawn first to the one drawn second; in YCSB+T's code, from the \
         higher key to the lower one",
    ),
];

/// Converts the entries of the table.
pub(super) fn convert(table: &mut Table) -> Result<Converted, PropertiesError> {
    let mut draft = ycsb::draft(table)?;
    ycsb::mix(table, &mut draft, &[DELETES])?;
    let (total, property) = total_cash(table)?;
    draft.origin("data.total_cash", property.as_ref());
    if property.is_none() {
        draft.notes.push(format!("totalcash is missing: using the default of YCSB+T's code, {TOTAL_CASH}"));
    }
    let data = &mut draft.spec.own.data;
    data.total_cash = Some(total);
    let rest = total.checked_rem(data.records).unwrap_or_default();
    if rest > 0 {
        draft.notes.push(format!(
            "totalcash is not a multiple of recordcount: the first {rest} records have $1 more than the others, while \
             YCSB+T's code loses that money, so that its validation fails"
        ));
    }
    for (kind, note) in DIFFERENT {
        if draft.spec.common.mix.contains_key(kind) {
            draft.notes.push(format!("{kind}: {note}"));
        }
    }
    draft.notes.push("every session is one transaction; encore analyze validate tells the anomaly score".into());
    let super::Draft { spec, notes, origins } = draft;
    let common = Spec { family: EconomyWorkload::FAMILY.to_string(), ..spec.common };
    let spec = SpecOf { common, own: EconomyWorkload(spec.own) };
    Ok(super::Draft { spec, notes, origins }.converted(ycsb::check))
}

/// The money: `totalcash` in the paper, `total_cash` in the code.
fn total_cash(table: &mut Table) -> Result<(u64, Option<Property>), PropertiesError> {
    let names = ["totalcash", "total_cash"].map(|key| table.number::<u64>(key));
    let [paper, code] = names;
    match (paper?, code?) {
        (Some((one, first)), Some((other, second))) if one != other => Err(PropertiesError::Contradiction {
            first: Box::new(first),
            second: Box::new(second),
            advice: "both are the money of all records together; remove one of them".into(),
        }),
        (Some((total, property)), _) | (None, Some((total, property))) => match i64::try_from(total) {
            Ok(_) => Ok((total, Some(property))),
            Err(_) => Err(ycsb::wrong(property, "is too large; use at most 9223372036854775807")),
        },
        (None, None) => Ok((TOTAL_CASH, None)),
    }
}
