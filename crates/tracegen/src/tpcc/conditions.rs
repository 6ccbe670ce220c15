//! The twelve consistency conditions of TPC-C (clause 3.3.2) as queries: each returns the rows that violate it, with
//! both values.
//!
//! Each query reads a table once and groups it, so that it takes about a second a warehouse. Sums of money are rounded to
//! cents, since not every database has exact decimal numbers.

use schemas::workload::sql::checks::{Check, When};
use schemas::workload::tpcc::Data;

/// What each condition says: its number in clause 3.3.2, the condition, and its query.
const ALL: [(u32, &str, &str); 11] = [
    (
        1,
        "W_YTD of a warehouse is the sum of D_YTD of its districts",
        "SELECT w_id, w_ytd, ytd AS sum_of_d_ytd FROM warehouse \
         LEFT JOIN (SELECT d_w_id, ROUND(SUM(d_ytd), 2) AS ytd FROM district GROUP BY d_w_id) paid ON d_w_id = w_id \
         WHERE ytd IS NULL OR ROUND(w_ytd - ytd, 2) <> 0",
    ),
    (
        2,
        "D_NEXT_O_ID - 1 of a district is its greatest O_ID, and its greatest NO_O_ID if it has new orders",
        "SELECT d_w_id, d_id, d_next_o_id, greatest AS max_o_id, greatest_new AS max_no_o_id FROM district \
         LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS greatest FROM orders GROUP BY o_w_id, o_d_id) entered \
         ON o_w_id = d_w_id AND o_d_id = d_id \
         LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS greatest_new FROM new_order GROUP BY no_w_id, no_d_id) waiting \
         ON no_w_id = d_w_id AND no_d_id = d_id \
         WHERE greatest IS NULL OR greatest <> d_next_o_id - 1 OR greatest_new <> d_next_o_id - 1",
    ),
    (
        3,
        "The new orders of a district have numbers without a gap: max(NO_O_ID) - min(NO_O_ID) + 1 is their number",
        "SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS new_orders FROM new_order \
         GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    ),
    (
        4,
        "The sum of O_OL_CNT of a district is its number of order lines",
        "SELECT d_w_id, d_id, expected AS sum_of_o_ol_cnt, found AS order_lines FROM district \
         LEFT JOIN (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS expected FROM orders GROUP BY o_w_id, o_d_id) entered \
         ON o_w_id = d_w_id AND o_d_id = d_id \
         LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) filled \
         ON ol_w_id = d_w_id AND ol_d_id = d_id \
         WHERE COALESCE(expected, 0) <> COALESCE(found, 0)",
    ),
    (
        5,
        "O_CARRIER_ID of an order is NULL if and only if it is a new order",
        "SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders \
         LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
         WHERE (o_carrier_id IS NULL AND no_o_id IS NULL) OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL)",
    ),
    (
        6,
        "O_OL_CNT of an order is its number of order lines",
        "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, found AS order_lines FROM orders \
         LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS found FROM order_line \
         GROUP BY ol_w_id, ol_d_id, ol_o_id) filled \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE o_ol_cnt <> COALESCE(found, 0)",
    ),
    (
        7,
        "OL_DELIVERY_D of an order line is NULL if and only if O_CARRIER_ID of its order is",
        "SELECT o_w_id, o_d_id, o_id, o_carrier_id, undelivered AS lines_without_delivery, found AS order_lines FROM orders \
         JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS found, \
         SUM(CASE WHEN ol_delivery_d IS NULL THEN 1 ELSE 0 END) AS undelivered FROM order_line \
         GROUP BY ol_w_id, ol_d_id, ol_o_id) filled \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE undelivered <> CASE WHEN o_carrier_id IS NULL THEN found ELSE 0 END",
    ),
    (
        8,
        "W_YTD of a warehouse is the sum of H_AMOUNT of its payments",
        "SELECT w_id, w_ytd, paid AS sum_of_h_amount FROM warehouse \
         LEFT JOIN (SELECT h_w_id, ROUND(SUM(h_amount), 2) AS paid FROM history GROUP BY h_w_id) payments ON h_w_id = w_id \
         WHERE ROUND(w_ytd - COALESCE(paid, 0), 2) <> 0",
    ),
    (
        9,
        "D_YTD of a district is the sum of H_AMOUNT of its payments",
        "SELECT d_w_id, d_id, d_ytd, paid AS sum_of_h_amount FROM district \
         LEFT JOIN (SELECT h_w_id, h_d_id, ROUND(SUM(h_amount), 2) AS paid FROM history GROUP BY h_w_id, h_d_id) payments \
         ON h_w_id = d_w_id AND h_d_id = d_id \
         WHERE ROUND(d_ytd - COALESCE(paid, 0), 2) <> 0",
    ),
    (
        10,
        "C_BALANCE of a customer is the sum of OL_AMOUNT of the delivered lines, less that of H_AMOUNT",
        "SELECT c_w_id, c_d_id, c_id, c_balance, charged AS sum_of_ol_amount, paid AS sum_of_h_amount FROM customer \
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, ROUND(SUM(ol_amount), 2) AS charged FROM orders \
         JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) deliveries \
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, ROUND(SUM(h_amount), 2) AS paid FROM history \
         GROUP BY h_c_w_id, h_c_d_id, h_c_id) payments \
         ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
         WHERE ROUND(c_balance - COALESCE(charged, 0) + COALESCE(paid, 0), 2) <> 0",
    ),
    (
        12,
        "C_BALANCE + C_YTD_PAYMENT of a customer is the sum of OL_AMOUNT of the delivered lines",
        "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, charged AS sum_of_ol_amount FROM customer \
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, ROUND(SUM(ol_amount), 2) AS charged FROM orders \
         JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) deliveries \
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         WHERE ROUND(c_balance + c_ytd_payment - COALESCE(charged, 0), 2) <> 0",
    ),
];

/// The conditions, in their order.
pub(super) fn conditions(data: &Data) -> Vec<Check> {
    let condition = |(number, title, query): &(u32, &str, &str)| Check {
        name: format!("3.3.2.{number}"),
        title: title.to_string(),
        when: When::Always,
        query: query.to_string(),
    };
    let mut all: Vec<Check> = ALL.iter().map(condition).collect();
    // A delivery takes away a new order and leaves its order. The first one of a district takes its oldest new order.
    let delivered = data.delivered();
    let oldest = delivered + 1;
    let eleventh = Check {
        name: "3.3.2.11".into(),
        title: format!("A district has {delivered} more orders than new orders, until its first delivery"),
        when: When::Always,
        query: format!(
            "SELECT d_w_id, d_id, COALESCE(found, 0) AS orders, COALESCE(waiting, 0) AS new_orders FROM district \
             LEFT JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS found FROM orders GROUP BY o_w_id, o_d_id) entered \
             ON o_w_id = d_w_id AND o_d_id = d_id \
             LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS waiting FROM new_order GROUP BY no_w_id, no_d_id) still \
             ON no_w_id = d_w_id AND no_d_id = d_id \
             LEFT JOIN (SELECT o_w_id AS first_w_id, o_d_id AS first_d_id FROM orders \
             WHERE o_id = {oldest} AND o_carrier_id IS NOT NULL) delivered ON first_w_id = d_w_id AND first_d_id = d_id \
             WHERE first_d_id IS NULL AND COALESCE(found, 0) - COALESCE(waiting, 0) <> {delivered}"
        ),
    };
    all.insert(10, eleventh);
    all
}
