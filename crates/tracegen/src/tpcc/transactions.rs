//! The five transactions (clause 2): what is drawn for each, and its statements.

use std::collections::BTreeSet;

use schemas::vocabulary::sql::Type;
use schemas::workload::sql::rows::decimal;
use schemas::workload::tpcc::{DISTRICTS, Kind, Lines};

use super::dataset::LINES;
use super::random::{last_name, percent, uniform};
use super::sessions::{Drawing, Terminal};
use super::statements::OrderLines;
use crate::sql::{Call, Column, Known, Script, Transaction};

/// How many of the lines of new orders are supplied by another warehouse, in percent (clause 2.4.1.5).
const REMOTE_LINES: u64 = 1;

/// How many of the new orders name an item that does not exist, in percent (clause 2.4.1.4).
const ROLLED_BACK: u64 = 1;

/// How many payments are of customers of another warehouse, in percent (clause 2.5.1.2).
const REMOTE_PAYMENTS: u64 = 15;

/// How many customers are found by their last name, in percent (clauses 2.5.1.2 and 2.6.1.2).
const BY_NAME: u64 = 60;

/// Makes a transaction of this kind. `now` is its time.
pub(super) fn make(kind: Kind, drawing: &mut Drawing<'_>, terminal: Terminal, now: &str, script: &mut Script) {
    match kind {
        Kind::NewOrder => new_order(drawing, terminal, now, script),
        Kind::Payment => payment(drawing, terminal, now, script),
        Kind::OrderStatus => order_status(drawing, terminal, script),
        Kind::Delivery => delivery(drawing, terminal, now, script),
        Kind::StockLevel => stock_level(drawing, terminal, script),
    }
}

/// Clause 2.4.
fn new_order(drawing: &mut Drawing<'_>, terminal: Terminal, now: &str, script: &mut Script) {
    let statements = &drawing.catalog.new_order;
    let w = terminal.warehouse;
    let d = uniform(&mut drawing.chance, 1, DISTRICTS);
    let c = drawing.constants.customer(&mut drawing.chance, drawing.data.customers);
    let lines = draw_lines(drawing, w);
    let is_rolled_back = lines.last().is_some_and(|line| line.item > drawing.data.items);
    let is_local = lines.iter().all(|line| line.warehouse == w);
    drawing.draws.new_orders += 1;
    drawing.draws.rollbacks += u64::from(is_rolled_back);

    let mut transaction = script.begin();
    if let Some(read_warehouse) = statements.read_warehouse {
        transaction.statement(read_warehouse).id(w).run();
    }
    transaction.statement(statements.read_customer).id(w).id(d).id(c).run();
    let begin_order = |transaction: &mut Transaction<'_>| {
        let order = transaction.statement(statements.read_district).id(w).id(d).keep().first(0);
        transaction.statement(statements.count_order).result(order, Type::Integer).id(w).id(d).run();
        let add = transaction.statement(statements.add_order).result(order, Type::Integer).id(d).id(w).id(c);
        add.timestamp(now).id(lines.len() as u64).id(u64::from(is_local)).run();
        transaction.statement(statements.add_new_order).result(order, Type::Integer).id(d).id(w).run();
        Entered { order, district: d, warehouse: w }
    };
    match &statements.lines {
        OrderLines::Each { read_item, read_stock, add_line } => {
            let order = begin_order(&mut transaction);
            for (number, line) in (1..).zip(&lines) {
                let read = transaction.statement(*read_item).id(line.item);
                if line.item > drawing.data.items {
                    // The item does not exist: the transaction ends without the line.
                    read.run();
                    break;
                }
                let price = read.keep().first(0);
                let read = transaction.statement(read_stock[d as usize - 1]).id(line.item).id(line.warehouse);
                let about = read.keep().first(0);
                take_stock(&mut transaction, statements.take_stock, line, w);
                let add = order.begin_line(transaction.statement(*add_line), number, line);
                add.result(price, Type::Decimal).result(about, Type::Text).run();
            }
        }
        // All orders of a district wait for its row, so it is locked after the stock.
        OrderLines::Together(by_count) => {
            let all = by_count[lines.len() - LINES.0 as usize];
            let read = transaction.statement(all.read_items);
            let items = lines.iter().fold(read, |call, line| call.id(line.item)).keep();
            // An item that does not exist has no row: the transaction ends without the lines.
            if is_rolled_back {
                begin_order(&mut transaction);
            } else {
                let read = transaction.statement(all.read_stock).id(d);
                let stock = lines.iter().fold(read, |call, line| call.id(line.warehouse).id(line.item)).keep();
                // Two lines of one item take from its stock one after the other.
                match has_items_once(&lines) {
                    true => take_all_stock(&mut transaction, all.take_stock, &lines, w),
                    false => lines.iter().for_each(|line| take_stock(&mut transaction, statements.take_stock, line, w)),
                }
                let order = begin_order(&mut transaction);
                let add = (1..).zip(&lines).fold(transaction.statement(all.add_lines), |call, (number, line)| {
                    let price = items.nth(row_of(&lines, line, |line| line.item), 0);
                    let about = stock.nth(row_of(&lines, line, |line| (line.warehouse, line.item)), 0);
                    order.begin_line(call, number, line).result(price, Type::Decimal).result(about, Type::Text)
                });
                add.run();
            }
        }
    }
    if is_rolled_back {
        transaction.abort()
    } else {
        transaction.commit()
    };
}

/// The number of the row of a line in a result that has one row for each key, ordered by it.
fn row_of<K: Ord>(lines: &[Line], own: &Line, key: impl Fn(&Line) -> K) -> u8 {
    let before: BTreeSet<K> = lines.iter().map(&key).filter(|other| *other < key(own)).collect();
    before.len() as u8
}

fn has_items_once(lines: &[Line]) -> bool {
    lines.iter().map(|line| line.item).collect::<BTreeSet<_>>().len() == lines.len()
}

/// The order that a line belongs to.
struct Entered {
    order: Column,
    district: u64,
    warehouse: u64,
}

impl Entered {
    /// The parameters that a new line begins with, up to the factor of its price.
    fn begin_line<'a>(&self, call: Call<'a>, number: u64, line: &Line) -> Call<'a> {
        let call = call.result(self.order, Type::Integer).id(self.district).id(self.warehouse).id(number);
        call.id(line.item).id(line.warehouse).id(line.quantity).id(line.quantity)
    }
}

fn take_stock(transaction: &mut Transaction<'_>, statement: Known, line: &Line, home: u64) {
    let take = transaction.statement(statement);
    let take = take.id(line.quantity).id(line.quantity).id(line.quantity).id(line.quantity);
    take.id(u64::from(line.warehouse != home)).id(line.item).id(line.warehouse).run();
}

fn take_all_stock(transaction: &mut Transaction<'_>, statement: Known, lines: &[Line], home: u64) {
    let taken = |call| lines.iter().fold(call, |call: Call<'_>, line| call.id(line.item).id(line.quantity));
    let take = taken(taken(transaction.statement(statement))).id(home);
    lines.iter().fold(take, |call, line| call.id(line.warehouse).id(line.item)).run();
}

/// A line of a new order.
struct Line {
    item: u64,
    warehouse: u64,
    quantity: u64,
}

fn draw_lines(drawing: &mut Drawing<'_>, home: u64) -> Vec<Line> {
    let count = uniform(&mut drawing.chance, LINES.0, LINES.1);
    let is_rolled_back = percent(&mut drawing.chance, ROLLED_BACK);
    let mut lines = Vec::with_capacity(count as usize);
    for number in 1..=count {
        let item = match is_rolled_back && number == count {
            true => drawing.data.items + 1,
            false => drawing.constants.item(&mut drawing.chance, drawing.data.items),
        };
        let is_remote = percent(&mut drawing.chance, REMOTE_LINES) && drawing.data.warehouses > 1;
        let warehouse = if is_remote { drawing.other_warehouse(home) } else { home };
        let quantity = uniform(&mut drawing.chance, 1, 10);
        drawing.draws.remote_lines += u64::from(is_remote);
        lines.push(Line { item, warehouse, quantity });
    }
    drawing.draws.order_lines += count;
    lines
}

/// Clause 2.5.
fn payment(drawing: &mut Drawing<'_>, terminal: Terminal, now: &str, script: &mut Script) {
    let statements = &drawing.catalog.payment;
    let w = terminal.warehouse;
    let d = uniform(&mut drawing.chance, 1, DISTRICTS);
    let is_remote = percent(&mut drawing.chance, REMOTE_PAYMENTS) && drawing.data.warehouses > 1;
    let (c_w, c_d) = match is_remote {
        true => (drawing.other_warehouse(w), uniform(&mut drawing.chance, 1, DISTRICTS)),
        false => (w, d),
    };
    let by = Customer::draw(drawing);
    let amount = decimal(uniform(&mut drawing.chance, 100, 500_000).into(), 2);
    drawing.draws.payments += 1;
    drawing.draws.remote_payments += u64::from(is_remote);
    drawing.draws.payments_by_name += u64::from(matches!(by, Customer::Name(_)));

    // The rows that most payments share are locked last, the warehouse for no longer than the commit takes.
    let mut transaction = script.begin();
    let warehouse = transaction.statement(statements.read_warehouse).id(w).keep();
    let district = transaction.statement(statements.read_district).id(w).id(d).keep();
    let found = match &by {
        Customer::Id(c) => transaction.statement(statements.read_customer).id(c_w).id(c_d).id(*c).keep().first(0),
        Customer::Name(name) => {
            transaction.statement(statements.find_customer).id(c_w).id(c_d).text(name).keep().middle(0)
        }
    };
    let about = format!("{d} {w} {amount}|");
    let pay = transaction.statement(statements.pay_customer).decimal(&amount).decimal(&amount).text(&about);
    pay.id(c_w).id(c_d).result(found, Type::Integer).run();
    let add = transaction.statement(statements.add_history).result(found, Type::Integer).id(c_d).id(c_w).id(d).id(w);
    let add = add.timestamp(now).decimal(&amount);
    add.result(warehouse.first(0), Type::Text).result(district.first(0), Type::Text).run();
    transaction.statement(statements.pay_district).decimal(&amount).id(w).id(d).run();
    transaction.statement(statements.pay_warehouse).decimal(&amount).id(w).run();
    transaction.commit();
}

/// How a customer is found.
enum Customer {
    Id(u64),
    Name(String),
}

impl Customer {
    fn draw(drawing: &mut Drawing<'_>) -> Customer {
        match percent(&mut drawing.chance, BY_NAME) {
            true => {
                let names = drawing.last_names();
                let mut name = String::new();
                last_name(drawing.constants.last_name(&mut drawing.chance, names), &mut name);
                Customer::Name(name)
            }
            false => Customer::Id(drawing.constants.customer(&mut drawing.chance, drawing.data.customers)),
        }
    }
}

/// Clause 2.6.
fn order_status(drawing: &mut Drawing<'_>, terminal: Terminal, script: &mut Script) {
    let statements = &drawing.catalog.order_status;
    let w = terminal.warehouse;
    let d = uniform(&mut drawing.chance, 1, DISTRICTS);
    let by = Customer::draw(drawing);
    drawing.draws.order_statuses += 1;
    drawing.draws.order_statuses_by_name += u64::from(matches!(by, Customer::Name(_)));

    let mut transaction = script.begin();
    let found = match &by {
        Customer::Id(c) => transaction.statement(statements.read_customer).id(w).id(d).id(*c).keep().first(0),
        Customer::Name(name) => transaction.statement(statements.find_customer).id(w).id(d).text(name).keep().middle(0),
    };
    let order = transaction.statement(statements.last_order).id(w).id(d).result(found, Type::Integer).keep().first(0);
    transaction.statement(statements.read_lines).id(w).id(d).result(order, Type::Integer).run();
    transaction.commit();
}

/// Clause 2.7, all districts in one transaction. A district without a new order has no oldest one: the number
/// is NULL, and the statements touch no row.
fn delivery(drawing: &mut Drawing<'_>, terminal: Terminal, now: &str, script: &mut Script) {
    let carrier = uniform(&mut drawing.chance, 1, 10);
    let w = terminal.warehouse;
    let mut transaction = script.begin();
    match drawing.data.lines {
        Lines::Each => (1..=DISTRICTS).for_each(|d| deliver(&mut transaction, drawing, (w, d), carrier, now)),
        Lines::Together => deliver_all(&mut transaction, drawing, w, carrier, now),
    }
    transaction.commit();
}

fn deliver(transaction: &mut Transaction<'_>, drawing: &Drawing<'_>, (w, d): (u64, u64), carrier: u64, now: &str) {
    let statements = &drawing.catalog.delivery;
    let integer = Type::Integer;
    let order: Column = transaction.statement(statements.oldest).id(w).id(d).keep().first(0);
    transaction.statement(statements.take_new_orders).id(w).id(d).result(order, integer).run();
    let customer = transaction.statement(statements.read_orders).id(w).id(d).result(order, integer).keep().first(0);
    transaction.statement(statements.ship_orders).id(carrier).id(w).id(d).result(order, integer).run();
    transaction.statement(statements.ship_lines).timestamp(now).id(w).id(d).result(order, integer).run();
    let sum = transaction.statement(statements.sum_lines).id(w).id(d).result(order, integer).keep().first(0);
    let charge = transaction.statement(statements.charge_customers).result(sum, Type::Decimal).id(w).id(d);
    charge.result(customer, integer).run();
}

fn deliver_all(transaction: &mut Transaction<'_>, drawing: &Drawing<'_>, w: u64, carrier: u64, now: &str) {
    let statements = &drawing.catalog.delivery;
    let oldest = |d| Oldest(w, d, transaction.statement(statements.oldest).id(w).id(d).keep().first(0));
    let orders: Vec<Oldest> = (1..=DISTRICTS).map(oldest).collect();
    Oldest::all(&orders, transaction.statement(statements.take_new_orders)).run();
    let delivered = Oldest::all(&orders, transaction.statement(statements.read_orders)).keep();
    Oldest::all(&orders, transaction.statement(statements.ship_orders).id(carrier)).run();
    Oldest::all(&orders, transaction.statement(statements.ship_lines).timestamp(now)).run();
    let sums = Oldest::all(&orders, transaction.statement(statements.sum_lines)).keep();
    // Rows that are missing, as some districts had no new order, are NULL and match no customer.
    let rows = 0..DISTRICTS as u8;
    let charge = rows.clone().fold(transaction.statement(statements.charge_customers), |call, row| {
        call.result(sums.nth(row, 0), Type::Integer).result(sums.nth(row, 1), Type::Decimal)
    });
    let charge = rows.fold(charge, |call, row| {
        call.id(w).result(delivered.nth(row, 0), Type::Integer).result(delivered.nth(row, 1), Type::Integer)
    });
    charge.run();
}

/// The oldest new order: its warehouse, its district, and where its number stands.
struct Oldest(u64, u64, Column);

impl Oldest {
    /// Its key as parameters.
    fn key<'a>(&self, call: Call<'a>) -> Call<'a> {
        call.id(self.0).id(self.1).result(self.2, Type::Integer)
    }

    fn all<'a>(orders: &[Oldest], call: Call<'a>) -> Call<'a> {
        orders.iter().fold(call, |call, order| order.key(call))
    }
}

/// Clause 2.8. The district is that of the terminal.
fn stock_level(drawing: &mut Drawing<'_>, terminal: Terminal, script: &mut Script) {
    let statements = &drawing.catalog.stock_level;
    let (w, d) = (terminal.warehouse, terminal.number % DISTRICTS + 1);
    let threshold = uniform(&mut drawing.chance, 10, 20);
    let mut transaction = script.begin();
    let next = transaction.statement(statements.read_district).id(w).id(d).keep().first(0);
    let count = transaction.statement(statements.count_low).id(w).id(d);
    count.result(next, Type::Integer).result(next, Type::Integer).id(threshold).run();
    transaction.commit();
}
