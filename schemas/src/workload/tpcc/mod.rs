//! The `tpcc` family: the TPC-C benchmark (Standard Specification, revision 5.11). Its trace sets hold statements
//! of SQL, so a store needs to know no more of them than of those of the `sql` family.
//!
//! An actor is a terminal. A fragment owns whole warehouses; the remote transactions of a warehouse go to those of
//! other fragments too.

mod draws;
mod goals;
mod statistics;

use serde::{Deserialize, Serialize};

use super::sql::{Results, SqlSet, rules_of};
use super::{ActorWords, SessionGoals, Workload};
use crate::spec::{Spec, SpecOf, Wrong};
use crate::trace::Rules;
use crate::vocabulary::sql::Sql;
use crate::vocabulary::sql::text::Dialect;
use crate::words::{plural, thousands};

pub use draws::{draws_batch, draws_of, draws_path, draws_schema};
pub use statistics::{Draws, TpccStatistics};

/// Districts of a warehouse.
pub const DISTRICTS: u64 = 10;

/// Items, if a specification does not scale them down.
pub const ITEMS: u64 = 100_000;

/// Customers of a district, and its first orders, if a specification does not scale them down.
pub const CUSTOMERS: u64 = 3_000;

/// Terminals of a warehouse, if a specification says nothing else (clause 4.2.2).
pub const TERMINALS: u64 = 10;

/// A transaction (clause 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Delivers the oldest new order of each district.
    Delivery,
    /// Enters an order.
    NewOrder,
    /// Reads the last order of a customer.
    OrderStatus,
    /// Takes a payment of a customer.
    Payment,
    /// Counts items of the last orders that run out.
    StockLevel,
}

impl Kind {
    /// Every transaction, in the order of their names.
    pub const ALL: [Kind; 5] = [Kind::Delivery, Kind::NewOrder, Kind::OrderStatus, Kind::Payment, Kind::StockLevel];

    /// The name in a specification's mix.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Delivery => "delivery",
            Kind::NewOrder => "new_order",
            Kind::OrderStatus => "order_status",
            Kind::Payment => "payment",
            Kind::StockLevel => "stock_level",
        }
    }

    /// The kind with this name; None if there is none.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The share that a specification has which gives no mix: at least the minimum of clause 5.2.3.
    pub const fn share(self) -> f64 {
        match self {
            Kind::NewOrder => 45.0,
            Kind::Payment => 43.0,
            Kind::Delivery | Kind::OrderStatus | Kind::StockLevel => 4.0,
        }
    }

    /// How long a user types before the transaction, in seconds (clause 5.2.5.7).
    pub const fn keying_s(self) -> u32 {
        match self {
            Kind::NewOrder => 18,
            Kind::Payment => 3,
            Kind::Delivery | Kind::OrderStatus | Kind::StockLevel => 2,
        }
    }

    /// How long a user looks at the answer on average, in seconds (clause 5.2.5.7).
    pub const fn think_s(self) -> u32 {
        match self {
            Kind::NewOrder | Kind::Payment => 12,
            Kind::OrderStatus => 10,
            Kind::Delivery | Kind::StockLevel => 5,
        }
    }
}

/// What a specification of the family says besides what every one has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TpccWorkload {
    /// The data set and the terminals.
    pub data: Data,
    /// Which waits of users there are.
    pub waits: Waits,
    /// What is logged of what statements return.
    pub results: Results,
}

/// The data set and the terminals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Data {
    /// Warehouses.
    pub warehouses: u64,
    /// Terminals of each warehouse.
    pub terminals: u64,
    /// Items. TPC-C has 100,000.
    pub items: u64,
    /// Customers of each district, and its first orders. TPC-C has 3,000.
    pub customers: u64,
    /// How lines of new orders, and orders of deliveries, are read and written.
    #[serde(skip_serializing_if = "Lines::is_each")]
    pub lines: Lines,
}

/// How lines of new orders, and orders of deliveries, are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// Each by statements of its own, of single rows.
    #[default]
    Each,
    /// All items, stock and lines of a new order, and all orders of a delivery, by one statement each, which saves round
    /// trips.
    Together,
}

impl Lines {
    fn is_each(&self) -> bool {
        *self == Lines::Each
    }
}

impl Default for Data {
    fn default() -> Data {
        Data { warehouses: 1, terminals: TERMINALS, items: ITEMS, customers: CUSTOMERS, lines: Lines::Each }
    }
}

impl Data {
    /// Whether the cardinalities are those of TPC-C.
    pub fn is_whole(&self) -> bool {
        (self.items, self.customers) == (ITEMS, CUSTOMERS)
    }

    /// How many of a district's first orders are delivered; the others are new: 2,100 of 3,000 in TPC-C.
    pub fn delivered(&self) -> u64 {
        self.customers * 7 / 10
    }
}

/// Which waits of users there are (clause 5.2.5.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Waits {
    /// A user types before a transaction.
    pub keying: bool,
    /// A user looks at the answer after a transaction.
    pub thinking: bool,
}

impl Waits {
    /// Whether there is any.
    pub fn is_any(self) -> bool {
        self.keying || self.thinking
    }
}

impl Workload for TpccWorkload {
    const FAMILY: &'static str = "tpcc";
    const KEYS: &'static [&'static str] = &["data", "waits", "results"];
    const ACTORS: ActorWords = ActorWords { plural: "terminals", keys: &["data.warehouses", "data.terminals"] };
    type Vocabulary = Sql;
    type Statistics = TpccStatistics;

    fn check(spec: &SpecOf<TpccWorkload>) -> Result<(), Wrong> {
        let (common, data) = (&spec.common, &spec.own.data);
        let limits = [
            ("data.warehouses", data.warehouses, 1_000_000),
            ("data.terminals", data.terminals, 100_000),
            ("data.items", data.items, ITEMS),
            ("data.customers", data.customers, CUSTOMERS),
        ];
        for (key, value, most) in limits {
            if !(1..=most).contains(&value) {
                let message = format!("{} is not between 1 and {}", thousands(value), thousands(most));
                return Err(Wrong::new(key, message));
            }
        }
        let all = Kind::ALL.map(Kind::name).join(", ");
        if let Some((name, _)) = common.kinds().into_iter().find(|(name, _)| Kind::from_name(name).is_none()) {
            return Err(Wrong::new(format!("mix.{name}"), format!("is no transaction of TPC-C; use one of {all}")));
        }
        if u64::from(common.fragments) > data.warehouses {
            let message = format!(
                "{} is more than the {} that there are, and a fragment owns whole warehouses; use fewer fragments or raise \
                 data.warehouses",
                common.fragments,
                plural(data.warehouses, "warehouse")
            );
            return Err(Wrong::new("fragments", message));
        }
        if !common.fragment_weights.is_empty() {
            let message = "a fragment's weight is its share of the warehouses; remove the key";
            return Err(Wrong::new("fragment_weights", message));
        }
        if spec.own.waits.is_any() && common.inter_arrival_time.mean_us > 0 {
            let message = "keying and think times are the time between two sessions; remove inter_arrival_time";
            return Err(Wrong::new("waits", message));
        }
        if spec.own.waits.is_any() && common.arrivals.is_some() {
            let message = "arrivals say when sessions begin, and so do keying and think times; remove one";
            return Err(Wrong::new("waits", message));
        }
        Ok(())
    }

    fn rules(
        _spec: &SpecOf<TpccWorkload>,
        statistics: &TpccStatistics,
        _fragment: u32,
    ) -> Result<Box<dyn Rules<Sql>>, String> {
        rules_of(&statistics.sql)
    }

    fn provide(&mut self, common: &mut Spec) -> Result<(), Wrong> {
        if common.mix.is_empty() {
            common.mix = Kind::ALL.map(|kind| (kind.name().to_string(), kind.share())).into();
        }
        Ok(())
    }

    fn sql(&self) -> Option<SqlSet> {
        Some(SqlSet { dialect: Dialect::Logical, log_results: self.results.log_results })
    }

    fn actors(&self) -> u64 {
        self.data.warehouses * self.data.terminals
    }

    fn size(&self) -> String {
        let Data { warehouses, items, customers, .. } = self.data;
        let scaled = match self.data.is_whole() {
            true => String::new(),
            false => format!(
                " scaled down to {} and {} a district, which is not TPC-C",
                plural(items, "item"),
                plural(customers, "customer")
            ),
        };
        plural(warehouses, "warehouse") + &scaled
    }

    fn has_conditions(_spec: &SpecOf<TpccWorkload>) -> bool {
        true
    }

    fn session_goals(_spec: &SpecOf<TpccWorkload>) -> SessionGoals {
        goals::goals()
    }

    fn unchecked(_spec: &SpecOf<TpccWorkload>) -> Option<String> {
        Some(
            "what each statement returns is not checked; the consistency conditions of TPC-C are checked on the data after \
             the load and after each experiment"
                .into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &str) -> Result<SpecOf<TpccWorkload>, String> {
        let text = format!("name = 't'\nfamily = 'tpcc'\nsessions = 9\n{more}\n");
        SpecOf::parse(&text, "t.toml").map_err(|e| e.to_string())
    }

    #[test]
    fn a_specification_that_says_nothing_is_one_warehouse_of_tpcc() {
        let spec = read("").unwrap();
        assert_eq!(
            spec.own.data,
            Data { warehouses: 1, terminals: 10, items: 100_000, customers: 3_000, lines: Lines::Each }
        );
        assert_eq!(spec.common.mix.get("payment"), Some(&43.0));
        assert_eq!((spec.own.size().as_str(), spec.own.data.delivered()), ("1 warehouse", 2_100));
        let small = read("[data]\nitems = 5\ncustomers = 30").unwrap();
        assert!(small.own.size().contains("which is not TPC-C"), "{}", small.own.size());
    }

    #[test]
    fn values_that_contradict_each_other_are_refused() {
        for (more, expect) in [
            ("[data]\nwarehouses = 0", "data.warehouses: 0 is not between 1 and"),
            ("[data]\nitems = 100_001", "data.items: 100,001 is not between 1 and 100,000"),
            ("fragments = 2", "fragments: 2 is more than the 1 warehouse"),
            ("fragment_weights = [1]", "fragment_weights: a fragment's weight"),
            ("[mix]\nneworder = 1", "mix.neworder: is no transaction of TPC-C; use one of delivery, new_order"),
            ("[waits]\nkeying = true\n[arrivals]\nrate = 5", "waits: arrivals say when"),
        ] {
            let error = read(more).unwrap_err();
            assert!(error.contains(expect), "{more}: {error}");
        }
    }
}
