//! The statements of TPC-C's transactions (clause 2). Money is rounded to cents where it is added, so that a
//! database without exact decimal numbers keeps exact sums too.
//!
//! A row is read `FOR UPDATE` if what is written depends on what was read: the next order of a district, the oldest new
//! order and its customer, the stock. MariaDB would read them as of the transaction's start otherwise. A store can be told
//! to leave that out.

use schemas::vocabulary::sql::Type::{self, Decimal, Integer, Text, Timestamp};
use schemas::vocabulary::sql::text::Dialect;
use schemas::workload::tpcc::{DISTRICTS, Lines};

use super::dataset::LINES;
use crate::core::error::GenerateError;
use crate::sql::{Known, Statements};

/// The statements, by what they do.
pub(super) struct Catalog {
    pub(super) list: Statements,
    pub(super) new_order: NewOrder,
    pub(super) payment: Payment,
    pub(super) order_status: OrderStatus,
    pub(super) delivery: Delivery,
    pub(super) stock_level: StockLevel,
}

pub(super) struct NewOrder {
    /// None if the customer is read with the warehouse.
    pub(super) read_warehouse: Option<Known>,
    pub(super) read_customer: Known,
    pub(super) read_district: Known,
    pub(super) count_order: Known,
    pub(super) add_order: Known,
    pub(super) add_new_order: Known,
    /// The stock of one line.
    pub(super) take_stock: Known,
    pub(super) lines: OrderLines,
}

/// The statements of the lines of a new order.
pub(super) enum OrderLines {
    /// One line at a time.
    Each {
        read_item: Known,
        /// For each district, since each reads another column.
        read_stock: Vec<Known>,
        add_line: Known,
    },
    /// All lines at a time, by how many there are more than the fewest.
    Together(Vec<AllLines>),
}

/// The statements of so many lines.
#[derive(Clone, Copy)]
pub(super) struct AllLines {
    pub(super) read_items: Known,
    pub(super) read_stock: Known,
    /// For lines that have no item in common.
    pub(super) take_stock: Known,
    pub(super) add_lines: Known,
}

pub(super) struct Payment {
    pub(super) pay_warehouse: Known,
    pub(super) read_warehouse: Known,
    pub(super) pay_district: Known,
    pub(super) read_district: Known,
    pub(super) read_customer: Known,
    pub(super) find_customer: Known,
    pub(super) pay_customer: Known,
    pub(super) add_history: Known,
}

pub(super) struct OrderStatus {
    pub(super) read_customer: Known,
    pub(super) find_customer: Known,
    pub(super) last_order: Known,
    pub(super) read_lines: Known,
}

/// The first is for one district; the others are for one too, or for all at a time.
pub(super) struct Delivery {
    pub(super) oldest: Known,
    pub(super) take_new_orders: Known,
    pub(super) read_orders: Known,
    pub(super) ship_orders: Known,
    pub(super) ship_lines: Known,
    pub(super) sum_lines: Known,
    pub(super) charge_customers: Known,
}

pub(super) struct StockLevel {
    pub(super) read_district: Known,
    pub(super) count_low: Known,
}

/// One of several rows of the stock.
const STOCK: &str = "(s_w_id = ? AND s_i_id = ?)";

const CUSTOMER: &str = "c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
                        c_credit, c_credit_lim, c_discount, c_balance";

impl Catalog {
    /// All statements of the transactions of a data set.
    pub(super) fn new(lines: Lines) -> Result<Catalog, GenerateError> {
        let mut list = Statements::new(Dialect::Logical);
        let mut add = |name: &str, text: &str, types: &[Type]| list.add(name, text, types);
        let new_order = NewOrder::new(&mut add, lines)?;
        let payment = Payment::new(&mut add)?;
        let order_status = OrderStatus::new(&mut add)?;
        let delivery = Delivery::new(&mut add, lines)?;
        let stock_level = StockLevel::new(&mut add)?;
        Ok(Catalog { list, new_order, payment, order_status, delivery, stock_level })
    }
}

type Add<'a> = &'a mut dyn FnMut(&str, &str, &[Type]) -> Result<Known, GenerateError>;

impl NewOrder {
    fn new(add: Add<'_>, lines: Lines) -> Result<NewOrder, GenerateError> {
        let read_warehouse = match lines {
            Lines::Each => Some(add("new order: warehouse", "SELECT w_tax FROM warehouse WHERE w_id = ?", &[Integer])?),
            Lines::Together => None,
        };
        let read_customer = match lines {
            Lines::Each => {
                "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Lines::Together => {
                "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
        };
        Ok(NewOrder {
            read_warehouse,
            read_customer: add("new order: customer", read_customer, &[Integer; 3])?,
            read_district: add(
                "new order: district",
                "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
                &[Integer; 2],
            )?,
            count_order: add(
                "new order: next order",
                "UPDATE district SET d_next_o_id = ? + 1 WHERE d_w_id = ? AND d_id = ?",
                &[Integer; 3],
            )?,
            add_order: add(
                "new order: order",
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                &[Integer, Integer, Integer, Integer, Timestamp, Integer, Integer],
            )?,
            add_new_order: add(
                "new order: new order",
                "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
                &[Integer; 3],
            )?,
            take_stock: add(
                "new order: take stock",
                "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= ? + 10 THEN s_quantity - ? ELSE s_quantity - ? + 91 \
                 END, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
                 WHERE s_i_id = ? AND s_w_id = ?",
                &[Integer; 7],
            )?,
            lines: match lines {
                Lines::Each => OrderLines::each(add)?,
                Lines::Together => OrderLines::together(add)?,
            },
        })
    }
}

/// The parameters of a new line.
const LINE: [Type; 10] = [Integer, Integer, Integer, Integer, Integer, Integer, Integer, Integer, Decimal, Text];

impl OrderLines {
    fn each(add: Add<'_>) -> Result<OrderLines, GenerateError> {
        let read_stock = |district: u64| {
            let text = format!(
                "SELECT s_dist_{district:02}, s_quantity, s_data FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE"
            );
            add(&format!("new order: stock for district {district}"), &text, &[Integer; 2])
        };
        Ok(OrderLines::Each {
            read_stock: (1..=DISTRICTS).map(read_stock).collect::<Result<_, _>>()?,
            read_item: add("new order: item", "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", &[Integer])?,
            add_line: add(
                "new order: line",
                "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                 ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ROUND(? * ?, 2), ?)",
                &LINE,
            )?,
        })
    }

    /// Rows are locked in the order of their keys, so that two orders do not wait for each other.
    fn together(add: Add<'_>) -> Result<OrderLines, GenerateError> {
        let districts: Vec<String> = (1..=DISTRICTS).map(|d| format!("WHEN {d} THEN s_dist_{d:02}")).collect();
        let of = |count: u64| -> Result<AllLines, GenerateError> {
            let times = |text: &str, between: &str| vec![text; count as usize].join(between);
            let pairs = vec![Integer; 2 * count as usize];
            let items = format!(
                "SELECT i_price, i_name, i_data, i_id FROM item WHERE i_id IN ({}) ORDER BY i_id",
                times("?", ", ")
            );
            let stock = format!(
                "SELECT CASE ? {} END, s_quantity, s_data, s_w_id, s_i_id FROM stock WHERE {} \
                 ORDER BY s_w_id, s_i_id FOR UPDATE",
                districts.join(" "),
                times(STOCK, " OR ")
            );
            // What is left of the stock is 10 to 100: 91 are added where less than 10 would be (clause 2.4.2.2). With
            // the remainder of a division, the quantity of a line stands there once.
            let taken = format!("CASE s_i_id {} ELSE 0 END", times("WHEN ? THEN ?", " "));
            let take = format!(
                "UPDATE stock SET s_quantity = (s_quantity - {taken} + 81) % 91 + 10, s_ytd = s_ytd + {taken}, \
                 s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + CASE s_w_id WHEN ? THEN 0 ELSE 1 END \
                 WHERE {}",
                times(STOCK, " OR ")
            );
            let lines = format!(
                "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                 ol_amount, ol_dist_info) VALUES {}",
                times("(?, ?, ?, ?, ?, ?, ?, ROUND(? * ?, 2), ?)", ", ")
            );
            Ok(AllLines {
                read_items: add(&format!("new order: {count} items"), &items, &pairs[count as usize..])?,
                read_stock: add(
                    &format!("new order: stock of {count} lines"),
                    &stock,
                    &[&[Integer], &pairs[..]].concat(),
                )?,
                take_stock: add(
                    &format!("new order: take stock of {count} lines"),
                    &take,
                    &[&pairs[..], &pairs[..], &[Integer], &pairs[..]].concat(),
                )?,
                add_lines: add(&format!("new order: {count} lines"), &lines, &LINE.repeat(count as usize))?,
            })
        };
        Ok(OrderLines::Together((LINES.0..=LINES.1).map(of).collect::<Result<_, _>>()?))
    }
}

impl Payment {
    fn new(add: Add<'_>) -> Result<Payment, GenerateError> {
        Ok(Payment {
            pay_warehouse: add(
                "payment: add to warehouse",
                "UPDATE warehouse SET w_ytd = ROUND(w_ytd + ?, 2) WHERE w_id = ?",
                &[Decimal, Integer],
            )?,
            read_warehouse: add(
                "payment: warehouse",
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?",
                &[Integer],
            )?,
            pay_district: add(
                "payment: add to district",
                "UPDATE district SET d_ytd = ROUND(d_ytd + ?, 2) WHERE d_w_id = ? AND d_id = ?",
                &[Decimal, Integer, Integer],
            )?,
            read_district: add(
                "payment: district",
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
                 WHERE d_w_id = ? AND d_id = ?",
                &[Integer; 2],
            )?,
            read_customer: add(
                "payment: customer",
                &format!("SELECT {CUSTOMER} FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"),
                &[Integer; 3],
            )?,
            find_customer: add(
                "payment: customers by last name",
                &format!(
                    "SELECT {CUSTOMER} FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
                     ORDER BY c_first, c_id"
                ),
                &[Integer, Integer, Text],
            )?,
            // Bad credit: what is known of the payment comes before the data, which keep their length.
            pay_customer: add(
                "payment: take from customer",
                "UPDATE customer SET c_balance = ROUND(c_balance - ?, 2), c_ytd_payment = ROUND(c_ytd_payment + ?, 2), \
                 c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' \
                 THEN SUBSTR(CONCAT(c_id, ' ', c_d_id, ' ', c_w_id, ' ', ?, c_data), 1, 500) ELSE c_data END \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[Decimal, Decimal, Text, Integer, Integer, Integer],
            )?,
            add_history: add(
                "payment: history",
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, CONCAT(?, '    ', ?))",
                &[Integer, Integer, Integer, Integer, Integer, Timestamp, Decimal, Text, Text],
            )?,
        })
    }
}

impl OrderStatus {
    fn new(add: Add<'_>) -> Result<OrderStatus, GenerateError> {
        Ok(OrderStatus {
            read_customer: add(
                "order status: customer",
                "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[Integer; 3],
            )?,
            find_customer: add(
                "order status: customers by last name",
                "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first, c_id",
                &[Integer, Integer, Text],
            )?,
            last_order: add(
                "order status: last order",
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
                 ORDER BY o_id DESC LIMIT 1",
                &[Integer; 3],
            )?,
            read_lines: add(
                "order status: lines",
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                &[Integer; 3],
            )?,
        })
    }
}

impl Delivery {
    fn new(add: Add<'_>, lines: Lines) -> Result<Delivery, GenerateError> {
        match lines {
            Lines::Each => Delivery::each(add),
            Lines::Together => Delivery::together(add),
        }
    }

    fn each(add: Add<'_>) -> Result<Delivery, GenerateError> {
        Ok(Delivery {
            oldest: Delivery::oldest(add)?,
            take_new_orders: add(
                "delivery: take new order",
                "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
                &[Integer; 3],
            )?,
            read_orders: add(
                "delivery: order",
                "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE",
                &[Integer; 3],
            )?,
            ship_orders: add(
                "delivery: ship order",
                "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
                &[Integer; 4],
            )?,
            ship_lines: add(
                "delivery: ship lines",
                "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                &[Timestamp, Integer, Integer, Integer],
            )?,
            sum_lines: add(
                "delivery: sum of lines",
                "SELECT ROUND(SUM(ol_amount), 2) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                &[Integer; 3],
            )?,
            charge_customers: add(
                "delivery: charge customer",
                "UPDATE customer SET c_balance = ROUND(c_balance + ?, 2), c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[Decimal, Integer, Integer, Integer],
            )?,
        })
    }

    /// The orders and the sums have a row for each district with a new order, in the same order.
    fn together(add: Add<'_>) -> Result<Delivery, GenerateError> {
        let all = |table: &str, order: &str| {
            vec![format!("({table}_w_id = ? AND {table}_d_id = ? AND {order} = ?)"); DISTRICTS as usize].join(" OR ")
        };
        let keys = [Integer; 3 * DISTRICTS as usize];
        Ok(Delivery {
            oldest: Delivery::oldest(add)?,
            take_new_orders: add(
                "delivery: take new orders",
                &format!("DELETE FROM new_order WHERE {}", all("no", "no_o_id")),
                &keys,
            )?,
            read_orders: add(
                "delivery: orders",
                &format!("SELECT o_d_id, o_c_id FROM orders WHERE {} ORDER BY o_d_id", all("o", "o_id")),
                &keys,
            )?,
            ship_orders: add(
                "delivery: ship orders",
                &format!("UPDATE orders SET o_carrier_id = ? WHERE {}", all("o", "o_id")),
                &[&[Integer], &keys[..]].concat(),
            )?,
            ship_lines: add(
                "delivery: ship lines of all orders",
                &format!("UPDATE order_line SET ol_delivery_d = ? WHERE {}", all("ol", "ol_o_id")),
                &[&[Timestamp], &keys[..]].concat(),
            )?,
            sum_lines: add(
                "delivery: sums of lines",
                &format!(
                    "SELECT ol_d_id, ROUND(SUM(ol_amount), 2) FROM order_line WHERE {} GROUP BY ol_d_id ORDER BY ol_d_id",
                    all("ol", "ol_o_id")
                ),
                &keys,
            )?,
            charge_customers: add(
                "delivery: charge customers",
                &format!(
                    "UPDATE customer SET c_balance = ROUND(c_balance + CASE c_d_id {} ELSE 0.00 END, 2), \
                     c_delivery_cnt = c_delivery_cnt + 1 WHERE {}",
                    ["WHEN ? THEN ?"; DISTRICTS as usize].join(" "),
                    all("c", "c_id")
                ),
                &[&[Integer, Decimal].repeat(DISTRICTS as usize)[..], &keys[..]].concat(),
            )?,
        })
    }

    fn oldest(add: Add<'_>) -> Result<Known, GenerateError> {
        add(
            "delivery: oldest new order",
            "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE",
            &[Integer; 2],
        )
    }
}

impl StockLevel {
    fn new(add: Add<'_>) -> Result<StockLevel, GenerateError> {
        Ok(StockLevel {
            read_district: add(
                "stock level: district",
                "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
                &[Integer; 2],
            )?,
            count_low: add(
                "stock level: low stock",
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? - 20 AND ol_o_id < ? AND s_quantity < ?",
                &[Integer; 5],
            )?,
        })
    }
}
