//! What the manifest of a trace set says of its transactions.

use serde::{Deserialize, Serialize};

use crate::verdict::DrawRule;
use crate::workload::sql::SqlStatistics;

/// Statistics of a trace set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TpccStatistics {
    /// Its statements.
    #[serde(flatten)]
    pub sql: SqlStatistics,
    /// What was drawn for its transactions.
    pub draws: Draws,
}

/// What was drawn for transactions: the numbers that clause 9.2.2.5 sets limits to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Draws {
    /// New orders.
    pub new_orders: u64,
    /// New orders that are rolled back, since an item does not exist.
    pub rollbacks: u64,
    /// Lines of new orders.
    pub order_lines: u64,
    /// Lines whose supplying warehouse is not that of the terminal.
    pub remote_lines: u64,
    /// Payments.
    pub payments: u64,
    /// Payments of customers of another warehouse.
    pub remote_payments: u64,
    /// Payments that find the customer by the last name.
    pub payments_by_name: u64,
    /// Order-Status transactions.
    pub order_statuses: u64,
    /// Those that find the customer by the last name.
    pub order_statuses_by_name: u64,
}

impl Draws {
    /// Adds those of others.
    pub fn merge(&mut self, other: &Draws) {
        self.counts_mut().into_iter().zip(other.counts()).for_each(|((_, mine), (_, theirs))| *mine += theirs);
    }

    /// Every count, by the name of its field.
    pub fn counts(&self) -> [(&'static str, u64); 9] {
        let mut own = *self;
        own.counts_mut().map(|(name, count)| (name, *count))
    }

    pub(super) fn counts_mut(&mut self) -> [(&'static str, &mut u64); 9] {
        [
            ("new_orders", &mut self.new_orders),
            ("rollbacks", &mut self.rollbacks),
            ("order_lines", &mut self.order_lines),
            ("remote_lines", &mut self.remote_lines),
            ("payments", &mut self.payments),
            ("remote_payments", &mut self.remote_payments),
            ("payments_by_name", &mut self.payments_by_name),
            ("order_statuses", &mut self.order_statuses),
            ("order_statuses_by_name", &mut self.order_statuses_by_name),
        ]
    }

    /// What was drawn since `before`.
    pub fn since(mut self, before: &Draws) -> Draws {
        let before = before.counts();
        self.counts_mut().into_iter().zip(before).for_each(|((_, now), (_, before))| *now -= before);
        self
    }

    /// The shares that clause 9.2.2.5 sets limits to. Remote shares are left out where there is one warehouse.
    pub fn rules(&self, has_remote: bool) -> Vec<DrawRule> {
        let rule = |name: &str, (part, of): (u64, u64), (least, most): (f64, f64)| DrawRule {
            name: name.to_string(),
            clause: "9.2.2.5".into(),
            part,
            of,
            is_percent: true,
            least,
            most,
        };
        let lines = rule("lines a new order", (self.order_lines, self.new_orders), (9.5, 10.5));
        let mut rules = vec![
            rule("new orders rolled back", (self.rollbacks, self.new_orders), (0.9, 1.1)),
            DrawRule { is_percent: false, ..lines },
            rule("payments by last name", (self.payments_by_name, self.payments), (57.0, 63.0)),
            rule("order status by last name", (self.order_statuses_by_name, self.order_statuses), (57.0, 63.0)),
        ];
        if has_remote {
            rules.push(rule("remote lines", (self.remote_lines, self.order_lines), (0.95, 1.05)));
            rules.push(rule("remote payments", (self.remote_payments, self.payments), (14.0, 16.0)));
        }
        rules
    }
}
