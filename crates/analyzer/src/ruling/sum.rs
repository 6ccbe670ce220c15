//! Whether a store has kept its promise of the sum that every transaction keeps.

use schemas::isolation::Isolation;
use schemas::run::ReplayReport;
use schemas::verdict::Figures;

/// The weakest level at which no update is lost. A level below it promises nothing of the sum.
///
/// MariaDB and MySQL call a level repeatable read that does lose updates, unless `innodb_snapshot_isolation` is on. They
/// are judged by what the name promises (`docs/src/explanation/isolation.md`), so their sum is a broken promise.
const KEEPS_SUMS: Isolation = Isolation::RepeatableRead;

/// What the store promised of transactions, and has broken: the sum is off, although it ran all of them
/// at a level that keeps the sum. None if it has not promised that, or kept its promise.
pub(crate) fn broken_promise(figures: &Figures, report: Option<&ReplayReport>) -> Option<String> {
    let sum = figures.sum.as_ref().filter(|sum| sum.is_off() && sum.is_atomic())?;
    let promised = Isolation::promised(&report?.store_settings)?;
    (promised >= KEEPS_SUMS).then(|| {
        let money = sum.in_words();
        format!("{money}, although the store says that its transactions are {}", promised.name())
    })
}

#[cfg(test)]
mod tests {
    use schemas::verdict::SumFigures;

    use super::*;

    #[test]
    fn only_a_store_that_promised_it_breaks_a_promise() {
        let broken = |isolation: &str, sum: SumFigures| {
            let mut report = ReplayReport::default();
            report.store_settings.insert("transactions".to_string(), isolation.to_string());
            let figures = Figures { sum: Some(sum), ..Figures::default() };
            broken_promise(&figures, Some(&report)).is_some()
        };
        let off = SumFigures { off: 1, transactions: 9, score: Some(1.0 / 9.0), ..SumFigures::default() };
        for (isolation, expect) in [
            ("serializable", true),
            ("snapshot: MVCC", true),
            ("repeatable read", true),
            ("read committed", false),
            ("none", false),
            ("linearizable", false),
        ] {
            assert_eq!(broken(isolation, off.clone()), expect, "{isolation}");
        }
        assert!(!broken("serializable", SumFigures { apart: 9, ..off.clone() }));
        assert!(!broken("serializable", SumFigures { off: 0, ..off.clone() }));
        assert!(!broken("serializable", SumFigures { score: None, ..off.clone() }));
        assert!(broken_promise(&Figures { sum: Some(off), ..Figures::default() }, None).is_none());
    }
}
