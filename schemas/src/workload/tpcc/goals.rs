//! What TPC-C asks of its transactions (clauses 5.2.3 and 5.2.5.3), and tpmC.

use super::Kind;
use crate::verdict::Headline;
use crate::workload::{KindGoal, SessionGoals};

/// The longest 90th percentile of the response times (clause 5.2.5.3), in seconds.
const fn p90_max_s(kind: Kind) -> u64 {
    match kind {
        Kind::StockLevel => 20,
        Kind::Delivery | Kind::NewOrder | Kind::OrderStatus | Kind::Payment => 5,
    }
}

/// The smallest share of the mix (clause 5.2.3), in percent. New orders are what is left.
const fn share_min_percent(kind: Kind) -> Option<f64> {
    match kind {
        Kind::NewOrder => None,
        Kind::Payment => Some(43.0),
        Kind::Delivery | Kind::OrderStatus | Kind::StockLevel => Some(4.0),
    }
}

/// All of it.
pub(super) fn goals() -> SessionGoals {
    let goal = |kind: Kind| KindGoal {
        kind: kind.name().to_string(),
        p90_max_ns: Some(p90_max_s(kind) * 1_000_000_000),
        share_min_percent: share_min_percent(kind),
    };
    let headline = Headline { name: "tpmC".into(), kind: Kind::NewOrder.name().into() };
    SessionGoals { headline: Some(headline), kinds: Kind::ALL.map(goal).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Figures, SessionFigures};

    #[test]
    fn figures_are_held_against_the_clauses() {
        let own = |p90_s: u64, share_percent| SessionFigures {
            committed: 9,
            p90_ns: p90_s * 1_000_000_000,
            share_percent,
            ..SessionFigures::default()
        };
        let mut figures = Figures::default();
        let all = [("new_order", own(5, 45.0)), ("payment", own(6, 42.0)), ("stock_level", own(20, 4.0))];
        figures.by_session = all.into_iter().map(|(kind, own)| (kind.to_string(), own)).collect();
        goals().put_into(&mut figures);
        let missed = |kind: &str| figures.by_session[kind].misses(kind).len();
        assert_eq!([missed("new_order"), missed("payment"), missed("stock_level")], [0, 2, 0]);
        assert_eq!(figures.headline.map(|headline| headline.name).as_deref(), Some("tpmC"));
        // Without a session nothing is known.
        let mut none = Figures::default();
        goals().put_into(&mut none);
        assert_eq!(none, Figures::default());
    }
}
