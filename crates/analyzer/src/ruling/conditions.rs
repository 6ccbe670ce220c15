//! Whether a store has kept its promise of the conditions that the data keep.

use schemas::isolation::Isolation;
use schemas::run::ReplayReport;
use schemas::verdict::Figures;
use schemas::words::plural;

/// What the store promised of transactions, and has broken: rows violate conditions that every transaction keeps if
/// it runs alone, although transactions were as if one came after the other. A level below promises nothing of
/// conditions. None if the store has not promised that, or kept its promise.
pub(super) fn broken_promise(figures: &Figures, report: Option<&ReplayReport>) -> Option<String> {
    let conditions = figures.conditions.as_ref()?;
    let violated = conditions.violated();
    let promised = Isolation::promised(&report?.store_settings)?;
    (promised >= Isolation::Serializable && !violated.is_empty()).then(|| {
        format!(
            "{} of {} are violated ({}), although the store says that its transactions are {}",
            violated.len(),
            plural(conditions.checked, "condition"),
            violated.join(", "),
            promised.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use schemas::verdict::{BrokenCondition, ConditionFigures};

    use super::*;

    #[test]
    fn only_a_store_that_promised_it_breaks_a_promise() {
        let broken = |isolation: &str, violations: Option<u64>| {
            let mut report = ReplayReport::default();
            report.store_settings.insert("transactions".to_string(), isolation.to_string());
            let one = BrokenCondition { name: "3.3.2.1".into(), title: "T".into(), violations, ..Default::default() };
            let conditions = ConditionFigures { checked: 12, holds: 11, broken: vec![one], ..Default::default() };
            let figures = Figures { conditions: Some(conditions), ..Figures::default() };
            broken_promise(&figures, Some(&report))
        };
        let expect = "1 of 12 conditions are violated (3.3.2.1), although the store says that its transactions are \
                      serializable";
        assert_eq!(broken("serializable: SSI", Some(2)).as_deref(), Some(expect));
        // A query that failed says nothing of the store.
        assert_eq!(broken("serializable", None), None);
        for isolation in ["snapshot", "repeatable read", "read committed", "off: begin, commit and abort do nothing"] {
            assert_eq!(broken(isolation, Some(2)), None, "{isolation}");
        }
        assert_eq!(broken_promise(&Figures::default(), None), None);
    }
}
