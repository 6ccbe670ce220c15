//! What the manifest of a trace set says of its transactions.

use serde::{Deserialize, Serialize};

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
    /// Adds those of another fragment.
    pub fn merge(&mut self, other: &Draws) {
        self.new_orders += other.new_orders;
        self.rollbacks += other.rollbacks;
        self.order_lines += other.order_lines;
        self.remote_lines += other.remote_lines;
        self.payments += other.payments;
        self.remote_payments += other.remote_payments;
        self.payments_by_name += other.payments_by_name;
        self.order_statuses += other.order_statuses;
        self.order_statuses_by_name += other.order_statuses_by_name;
    }

    /// The shares that clause 9.2.2.5 sets limits to: name, value, least and most. Remote shares are left
    /// out where there is one warehouse.
    pub fn rules(&self, has_remote: bool) -> Vec<(&'static str, f64, f64, f64)> {
        let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        let mut rules = vec![
            ("new orders rolled back, %", share(self.rollbacks, self.new_orders), 0.9, 1.1),
            ("lines a new order", self.order_lines as f64 / self.new_orders.max(1) as f64, 9.5, 10.5),
            ("payments by last name, %", share(self.payments_by_name, self.payments), 57.0, 63.0),
            ("order status by last name, %", share(self.order_statuses_by_name, self.order_statuses), 57.0, 63.0),
        ];
        if has_remote {
            rules.push(("remote lines, %", share(self.remote_lines, self.order_lines), 0.95, 1.05));
            rules.push(("remote payments, %", share(self.remote_payments, self.payments), 14.0, 16.0));
        }
        rules
    }
}
